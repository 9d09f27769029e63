# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A hybrid simulator for ROS 2: learned robots among analytically solved obstacles."""

__version__ = '0.1.0'
