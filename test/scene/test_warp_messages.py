# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Of Warp's messages a user sees those that explain a wait or a failure."""

import logging
import os

from nerd_ros.scene.warp_messages import native_messages_dropped, WarpLogger
import pytest


def test_compiling_is_told_once_in_a_while(caplog):
    logger = WarpLogger()
    with caplog.at_level(logging.WARNING):
        logger.info('Module a load on device cpu took 1 ms  (cached)')
        assert not caplog.records
        for name in 'bcd':
            logger.info(f'Module {name} load on device cpu took 900 ms  (compiled)')
    record, = caplog.records
    assert 'compiling the kernels' in record.getMessage()


def test_warnings_pass():
    with pytest.warns(UserWarning, match='beware'):
        WarpLogger().warning('beware', UserWarning)


def test_native_messages(capfd):
    with native_messages_dropped():
        os.write(2, b'no GPU\n')
    os.write(2, b'a fault\n')
    assert capfd.readouterr().err == 'a fault\n'
