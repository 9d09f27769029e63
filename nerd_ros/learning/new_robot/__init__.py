# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The RobotSpec of a robot of which there is only a URDF."""
