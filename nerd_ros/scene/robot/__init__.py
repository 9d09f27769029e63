# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A robot: its RobotSpec, and what its URDF makes of a Newton model."""
