# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The running node learns from its bags, and goes on with the new model."""

import math
import os
from pathlib import Path
import signal
import sys
import time

import pytest

pytest.importorskip('nerd_ros_interfaces', reason='nerd_ros_interfaces is not built')

from action_msgs.msg import GoalStatus  # noqa: E402
from nerd_ros_interfaces.action import FineTune  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from running_node import RunningNode, START_TIMEOUT, wait_for  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from nerd_ros.learning.helper_process import GRACE  # noqa: E402
from nerd_ros.learning.store.model_store import ModelStore  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / 'learning'))
from weak_motors import record  # noqa: E402

NAMESPACE = '/learning'
ROBOT = 'double_pendulum'
# A fine-tuning starts Newton, and its training is not all, on whatever machine [s].
TIMEOUT = 300.0


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    """Return the models of a store that has bags."""
    root = tmp_path_factory.mktemp('store')
    folder = root / ROBOT / 'bags'
    folder.mkdir(parents=True)
    record(folder)
    left = root / ROBOT / 'models' / '.work' / 'left'   # by somebody who was killed
    left.mkdir(parents=True)
    return ModelStore(root, ROBOT)


@pytest.fixture(scope='module')
def node(models, listener):
    """Return a node, with its joint states."""
    states = listener.collect(JointState, f'{NAMESPACE}/joint_states')
    node = RunningNode(f'-r __ns:={NAMESPACE}', 'world:=empty', 'publish_tf:=none',
                       f'store:={models.folder.parents[1]}')
    node.states = states
    wait_for(lambda: states or node.process.poll() is not None, 'joint_states', START_TIMEOUT)
    assert node.process.poll() is None, node.output
    yield node
    node.kill()


class Goal:
    """A goal sent to the node: its `handle` and `feedback`."""

    def __init__(self, client, **fields):
        self.feedback = []
        future = client.send_goal_async(FineTune.Goal(**fields), lambda message:
                                        self.feedback.append(message.feedback))
        wait_for(future.done, 'an answer to a goal')
        self.handle = future.result()
        if self.handle.accepted:
            self._result = self.handle.get_result_async()

    def wait_for_phase(self, phase):
        wait_for(lambda: self._result.done() or [f for f in self.feedback if f.phase == phase],
                 f'{phase}', TIMEOUT)
        assert not self._result.done(), self._result.result()

    def end(self):
        """Return status and result."""
        wait_for(self._result.done, 'a result', TIMEOUT)
        answer = self._result.result()
        return answer.status, answer.result


@pytest.fixture(scope='module')
def client(node, listener):
    client = ActionClient(listener.node, FineTune, f'{NAMESPACE}/fine_tune')
    assert client.wait_for_server(START_TIMEOUT)
    yield client
    client.destroy()


def leftovers(models):
    return os.listdir(models.folder / '.work')


def workers(node):
    """Return the numbers of the fine-tuning processes of a node."""
    children = []
    for file in Path(f'/proc/{node.process.pid}/task').glob('*/children'):
        children += map(int, file.read_text().split())
    return [pid for pid in children
            if b'finetune' in Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')]


def simulated(state):
    return state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec


def test_a_goal_makes_a_better_model_and_the_simulation_goes_on_with_it(node, client, models):
    wait_for(lambda: leftovers(models) == [], 'what was left to be removed')
    goal = Goal(client, time_limit=15.0, seed=1, activate=True)
    assert goal.handle.accepted
    wait_for(lambda: workers(node), 'the process')
    assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in workers(node)] == [19]
    goal.wait_for_phase('training')
    first, begin = node.states[-1], time.monotonic()
    assert not Goal(client).handle.accepted
    wait_for(lambda: 'a goal of fine_tune is rejected: another one' in node.output, 'the log')
    goal.wait_for_phase('evaluating')
    passed = (simulated(node.states[-1]) - simulated(first)) / (time.monotonic() - begin)
    assert passed > 0.8, 'the simulation was held up'
    status, result = goal.end()
    assert status == GoalStatus.STATUS_SUCCEEDED and result.success, result.message
    assert result.message.endswith(f'model {result.model} is in use from now on')
    assert result.error_after < result.error_before and result.error_hold > 0.0
    assert result.error_analytic > 0.0 and '\n' not in result.message
    assert result.activated and models.active == result.model != 'shipped'
    assert Path(result.report) == models.folder / result.model / 'report.html'
    assert Path(result.report).is_file() and leftovers(models) == []
    wait_for(lambda: f'model {result.model} moves the robot from now on' in node.output, 'a swap')
    assert list(dict.fromkeys(f.phase for f in goal.feedback)) == [
        'reading', 'training', 'evaluating']
    progress = [f.progress for f in goal.feedback]
    assert progress == sorted(progress) and progress[0] == 0.0 and progress[-1] == 1.0
    training = [f for f in goal.feedback if f.phase == 'training']
    assert all(f.remaining >= 0.0 and f.loss > 0.0 and f.error > 0.0 for f in training)
    assert math.isnan(goal.feedback[0].loss) and math.isnan(goal.feedback[0].remaining)


@pytest.mark.parametrize('fields, message', [
    ({'bags': ['weak_1', 'gone']}, 'there is no bag gone in'),
    ({'bags': ['../../etc']}, "'../../etc' cannot be the name of a bag"),
    ({'bags': ['--help']}, 'there is no bag --help in'),
    ({'bags': ['\0']}, 'cannot be the name of a bag'),
    ({'base_model': '/etc'}, "'/etc' cannot be the name of a model"),
    ({'base_model': '20200101-000000'}, '20200101-000000 is not a folder, nor a model'),
    ({'seed': 2**64 - 1}, 'is no seed'),
    ({'time_limit': math.nan}, 'a time limit of nan s leaves no time'),
])
def test_what_cannot_be_is_told(node, client, models, fields, message):
    versions = models.versions()
    status, result = Goal(client, **fields).end()
    assert status == GoalStatus.STATUS_ABORTED and not result.success
    assert message in result.message and '\n' not in result.message
    assert result.model == '' and models.versions() == versions and leftovers(models) == []


def test_a_goal_is_cancelled(node, client, models):
    versions = models.versions()
    goal = Goal(client)
    goal.wait_for_phase('reading')
    begin = time.monotonic()
    goal.handle.cancel_goal_async()
    status, result = goal.end()
    assert status == GoalStatus.STATUS_CANCELED and not result.success
    assert 'cancelled' in result.message and time.monotonic() - begin < GRACE + 2.0
    assert models.versions() == versions and leftovers(models) == [] and workers(node) == []


def test_the_process_is_killed(node, client, models):
    versions = models.versions()
    goal = Goal(client)
    goal.wait_for_phase('reading')
    pid, = workers(node)
    os.kill(pid, signal.SIGKILL)
    status, result = goal.end()
    assert status == GoalStatus.STATUS_ABORTED
    assert result.message == 'the process of the fine-tuning ended with: SIGKILL'
    assert models.versions() == versions and leftovers(models) == []
    before = len(node.states)
    wait_for(lambda: len(node.states) > before + 20, 'states')


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGINT])
def test_the_process_ends_with_the_node(models, listener, number):
    """Whatever ends the node; a node of its own, since the listener may have missed its end."""
    states = listener.collect(JointState, f'/ending_{number}/joint_states')
    node = RunningNode(f'-r __ns:=/ending_{number}', 'solver:=mujoco', 'world:=empty',
                       f'store:={models.folder.parents[1]}')
    try:
        wait_for(lambda: states or node.process.poll() is not None, 'states', START_TIMEOUT)
        client = ActionClient(listener.node, FineTune, f'/ending_{number}/fine_tune')
        assert client.wait_for_server(START_TIMEOUT), node.output
        goal = Goal(client)
        goal.wait_for_phase('reading')
        pid, = workers(node)
        assert leftovers(models)
        code, took = node.end(number)
        assert took < 3.0 and 'Traceback' not in node.output, node.output
        wait_for(lambda: not Path(f'/proc/{pid}').exists(), 'the end', GRACE + 5.0)
        assert leftovers(models) == []
        client.destroy()
    finally:
        node.kill()
