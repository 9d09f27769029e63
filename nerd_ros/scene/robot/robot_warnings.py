# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Warnings about robot files: each once, however often a process builds the robot."""

from functools import cache
import logging

_log = logging.getLogger(__name__)


@cache
def warn(message: str) -> None:
    """Log a warning that has not been logged before."""
    _log.warning('%s', message)
