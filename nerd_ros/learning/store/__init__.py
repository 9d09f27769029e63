# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the user's robots have left: uploaded bags, kept in one folder."""
