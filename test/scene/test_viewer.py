# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The browser view: a page on this machine alone, in a process that comes and goes with us."""

import multiprocessing
import os
from pathlib import Path
import signal
import socket
import subprocess
import sys
import time
from urllib.request import urlopen

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.viewer import ViewerProcess
import pytest

START_TIMEOUT = 120.0  # kernels may have to be compiled [s]
ORPHANED = """
import os, signal, sys
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.viewer import ViewerProcess
if __name__ == '__main__':
    view = ViewerProcess(Simulation('double_pendulum', 'empty', 'mujoco'), int(sys.argv[1]))
    view.start()
    assert view.wait(120.0)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def listens(port: int, host: str = '127.0.0.1') -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@pytest.fixture
def taken():
    """Return a port that somebody else listens to, the next one being free."""
    for port in range(18080, 19000, 2):
        if not listens(port) and not listens(port + 1):
            break
    with socket.create_server(('127.0.0.1', port)):
        yield port


def test_page_on_the_next_free_port_of_this_machine_alone(taken, capfd, caplog):
    simulation = Simulation('double_pendulum', 'obstacles', 'mujoco')
    view = ViewerProcess(simulation, taken)
    view.start()
    try:
        assert view.wait(START_TIMEOUT)
        assert b'<html' in urlopen(f'http://127.0.0.1:{taken + 1}').read()
        assert not listens(taken + 1, '127.0.0.2')
        simulation.step()
        begin = time.perf_counter()
        view.publish()
        assert time.perf_counter() - begin < 0.01
    finally:
        begin = time.monotonic()
        view.stop()
    assert time.monotonic() - begin < 1.0
    assert not caplog.messages
    assert not listens(taken + 1)
    link = f'http://127.0.0.1:{taken + 1} (port {taken} is taken)'
    assert capfd.readouterr().out == f'The scene can be seen at {link}\n'


def test_a_view_that_is_killed_is_told_once(taken, capfd, caplog, tmp_path):
    spec = RobotSpec.load('double_pendulum')
    urdf = tmp_path / 'robot.urdf'
    urdf.write_text(spec.urdf_path.read_text().replace('</robot>', '<gazebo/></robot>'))
    simulation = Simulation(spec.model_copy(update={'urdf': str(urdf)}), 'empty', 'mujoco')
    assert len(caplog.messages) == 1 and '<gazebo>' in caplog.messages[0]
    caplog.clear()
    view = ViewerProcess(simulation, taken, announced=False)
    view.start()
    try:
        assert view.wait(START_TIMEOUT)
        child, = multiprocessing.active_children()
        child.kill()
        end = time.monotonic() + 10.0
        while not caplog.messages and time.monotonic() < end:
            time.sleep(0.05)
        view.publish()
    finally:
        view.stop()
    assert caplog.messages == ['the view has ended; the simulation goes on without it']
    out, err = capfd.readouterr()
    # Nor does the view, which reads the robot again, say again what of it has no effect.
    assert 'can be seen' not in out and '<gazebo>' not in err


def test_view_ends_with_a_parent_that_is_killed(taken, tmp_path):
    script = tmp_path / 'orphaned.py'
    script.write_text(ORPHANED)
    root = str(Path(__file__).parents[2])
    result = subprocess.run(
        [sys.executable, str(script), str(taken)], env={**os.environ, 'PYTHONPATH': root},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=2 * START_TIMEOUT)
    assert result.returncode == -signal.SIGKILL
    end = time.monotonic() + 10.0
    while listens(taken + 1):
        assert time.monotonic() < end, 'the view is still there'
        time.sleep(0.1)
