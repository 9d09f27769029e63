# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""From trajectories to a model."""
