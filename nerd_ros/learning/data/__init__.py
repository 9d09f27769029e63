# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Trajectories to learn from and to be judged on."""
