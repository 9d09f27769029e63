# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What all tests share."""

import logging
import os
from pathlib import Path
import random
import sys
import tempfile
from typing import NamedTuple

import pytest

# Before anything imports rclpy: two runs on one machine must not see each other. Domains above
# 101 would use ports that Linux gives to others.
os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 101))
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'

# The models and bags of who runs the tests are none of their business.
_store = tempfile.TemporaryDirectory(prefix='nerd_ros_store_')
os.environ['XDG_DATA_HOME'] = _store.name

# Networks as small as these only lose by a second thread, most of all on a busy machine.
os.environ.setdefault('OMP_NUM_THREADS', '1')

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope='session')
def shared_data() -> Path:
    """Folder of recordings of real machines, which lies beside the repository."""
    path = REPOSITORY.parent / 'shared' / 'data'
    if not path.is_dir():
        pytest.skip('the recordings in ../shared/data are not there')
    return path


class Ended(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def nerd_ros(monkeypatch, capfd):
    """Return a function that runs `nerd-ros` with arguments, in this process, as it has Newton."""
    from nerd_ros.cli import main

    def run(*words) -> Ended:
        monkeypatch.setattr(sys, 'argv', ['nerd-ros', *map(str, words)])
        capfd.readouterr()
        # As in a process of its own, where nobody else takes warnings.
        logging.getLogger().addHandler(logging.lastResort)
        try:
            with pytest.raises(SystemExit) as end:
                main()
        finally:
            logging.getLogger().removeHandler(logging.lastResort)
        code = end.value.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        return Ended(1 if isinstance(code, str) else code or 0, *capfd.readouterr())
    return run
