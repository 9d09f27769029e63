# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The command `nerd-ros`; what a command needs is imported when it runs, to answer at once."""

from nerd_ros.cli.app import main

__all__ = ['main']
