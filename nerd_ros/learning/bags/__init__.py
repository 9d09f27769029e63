# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of real robots, and how well a model follows them."""
