# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 face of the simulator; the only room that imports rclpy."""
