# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What Warp has to say, cut down to what a user has to know."""

from contextlib import contextmanager
import logging
import os
import sys
from time import monotonic
import warnings

log = logging.getLogger(__name__)

# Between two lines on the same compilation [s].
PERIOD = 5.0


class WarpLogger:
    """
    Logger for `warp.set_logger` that tells warnings, errors and the long silence of compiling.

    Of Warp's information only that kernels are being compiled, at the first and every PERIOD.
    """

    def __init__(self):
        self._compiled = 0
        self._next = 0.0

    def debug(self, message: str) -> None:
        """Drop it."""

    def info(self, message: str) -> None:
        """Count a compiled module; drop all else."""
        if '(compiled)' not in message:
            return
        self._compiled += 1
        if monotonic() < self._next:
            return
        self._next = monotonic() + PERIOD
        # A warning, since it explains a wait of up to a minute.
        if self._compiled == 1:
            log.warning('compiling the kernels of the simulation; this happens once ...')
        else:
            log.warning('... %d kernel modules compiled', self._compiled)

    def warning(self, message: str, category=None, stacklevel: int = 1) -> None:
        """Warn as Python does."""
        warnings.warn(message, category, stacklevel=stacklevel + 1)

    def error(self, message: str) -> None:
        """Log it."""
        log.error(message)


@contextmanager
def native_messages_dropped():
    """
    Drop what native code writes to stderr meanwhile.

    Warp's library tells every process on a machine without a GPU that it has found none.
    """
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
