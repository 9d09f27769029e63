# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Data, training and evaluation of learned robots. Knows the scene, but no engine and no ROS."""
