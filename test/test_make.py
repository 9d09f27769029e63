# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a user types: `make`, `make sim`, and the simulation where there is no ROS 2."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import threading
import time

import pytest

ROOT = Path(__file__).resolve().parents[1]
DISTRO = os.environ.get('ROS_DISTRO')
VENV = ROOT / (f'.venv-{DISTRO}' if DISTRO else '.venv')
# A second start is to take 10 s. The rest is for busy machines, where each gets its share only.
START_LIMIT = 30.0 * max(1.0, os.getloadavg()[0] / os.cpu_count())  # [s]


def heed_interrupts():
    """Undo in a child that a shell starts jobs in the background deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_help_is_the_default():
    text = subprocess.check_output(['make', '-C', ROOT, '--no-print-directory'], text=True)
    assert text == subprocess.check_output(
        ['make', '-C', ROOT, '--no-print-directory', 'help'], text=True)
    for word in ('sim', 'test', 'setup', 'clean'):
        assert f'make {word} ' in text


def test_make_sim_starts_at_once_and_ends_on_ctrl_c():
    rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not installed')
    if Path(sys.prefix).resolve() != VENV.resolve():
        pytest.skip(f'make uses {VENV.name}, and these tests run in another environment')
    if not (ROOT / '.make' / VENV.name / 'kernels').exists():
        pytest.skip('make has not set this environment up')
    from sensor_msgs.msg import JointState
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('waiting', context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    states = []
    node.create_subscription(JointState, '/made/joint_states', states.append, 10)
    # What changed since the last set-up is set up first, which is not what is measured.
    subprocess.run(['make', '-C', ROOT, 'setup'], check=True, timeout=600)
    begin = time.monotonic()
    process = subprocess.Popen(
        ['make', '-C', ROOT, 'sim', 'ARGS=gui:=false world:=empty namespace:=made'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=heed_interrupts)
    try:
        while not states and process.poll() is None and time.monotonic() < begin + 120.0:
            executor.spin_once(timeout_sec=0.05)
        took = time.monotonic() - begin
        print(f'joint states {took:.1f} s after `make sim`')
        assert states, 'no joint states'
        # As a terminal does it: to the whole process group.
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=20.0)
    finally:
        executor.shutdown()
        context.try_shutdown()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    # The simulator ends in order; make by the signal, or with it.
    assert process.returncode in (0, -signal.SIGINT)
    assert 'Traceback' not in output and 'Error' not in output, output
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert took < START_LIMIT


def test_without_ros():
    code = ('import sys; sys.modules["rclpy"] = None\n'  # as on a machine that has none
            'from nerd_ros.cli import main; main()')
    process = subprocess.Popen(
        [sys.executable, '-c', code, 'sim', 'world:=empty', 'solver:=mujoco'], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=heed_interrupts)
    lines, seen = [], threading.Event()

    def read():
        for line in process.stdout:
            lines.append(line)
            if 'can be seen at http://127.0.0.1:' in line:
                seen.set()
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert seen.wait(120.0), ''.join(lines)
        process.send_signal(signal.SIGINT)
        code = process.wait(20.0)
        reader.join(5.0)
    finally:
        process.kill()
    assert code == 0 and len(lines) == 2, ''.join(lines)
    assert 'There is no ROS 2 here' in lines[0] and 'nothing is published' in lines[0]
