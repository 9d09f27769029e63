# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Log messages of the floors below, which know no ROS, in the node's log."""

import logging


class RosLogHandler(logging.Handler):
    """Hands records of Python's logging to a logger of rclpy."""

    def __init__(self, logger):
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record with the nearest of ROS's levels."""
        # rclpy ties a level to the place of the call, so each has its own.
        text = record.getMessage()
        if record.levelno >= logging.ERROR:
            self._logger.error(text)
        elif record.levelno >= logging.WARNING:
            self._logger.warning(text)
        else:
            self._logger.info(text)
