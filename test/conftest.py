# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What all tests share."""

import os
from pathlib import Path
import random
import tempfile

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
