# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The learned robot: a causal transformer on robot-centric tokens. Knows no engine and no ROS."""
