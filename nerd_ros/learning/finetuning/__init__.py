# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Models that learn from recordings of the real robot."""
