# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How well a model replaces its teacher."""
