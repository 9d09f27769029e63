# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Another model for the node while it runs."""

import subprocess
import sys

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from running_node import running_node, START_TIMEOUT, wait_for
from sensor_msgs.msg import JointState

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.learning.store.model_store import ModelStore
from nerd_ros.resources import resource_path

SHIPPED = resource_path('models', 'double_pendulum')
NAMESPACE = 'swapping'


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    """Return a store with two models, the second, damaged later on, in use."""
    store = ModelStore(tmp_path_factory.mktemp('store'), 'double_pendulum')
    for _ in range(2):
        with store.new_folder() as folder:
            model = load_checkpoint(SHIPPED)
            model.increment_scale *= 1.02   # another one, though not by much
            save_checkpoint(folder, model, {})
            store.activate(store.keep(folder))
    broken = store.folder / store.active / 'model.safetensors'
    broken.write_bytes(broken.read_bytes()[:5000])
    return store


@pytest.fixture(scope='module')
def node(listener, store):
    """Return a node that swings for ever, to its joint states."""
    states = listener.collect(JointState, f'/{NAMESPACE}/joint_states')
    with running_node(f'-r __ns:=/{NAMESPACE}', 'world:=obstacles', 'publish_tf:=none',
                      f'store:={store.folder.parents[1]}', 'command_timeout:=0.0') as node:
        wait_for(lambda: states or node.process.poll() is not None, 'states', START_TIMEOUT)
        assert node.process.poll() is None, node.output
        commands = listener.publisher(JointState, f'/{NAMESPACE}/joint_commands')
        commands.publish(JointState(name=['shoulder'], effort=[1.5]))
        wait_for(lambda: abs(states[-1].velocity[0]) > 0.3, 'motion')
        node.states = states
        yield node


def set_model(listener, model):
    parameter = Parameter('model', value=model).to_parameter_msg()
    result, = listener.call(SetParameters, f'/{NAMESPACE}/nerd_sim/set_parameters',
                            SetParameters.Request(parameters=[parameter])).results
    return result


def told(listener, node):
    """Return what diagnostics say of the model now."""
    heard = listener.collect(DiagnosticArray, '/diagnostics')
    wait_for(lambda: [m for m in list(heard)
                      if m.status[0].name.startswith(NAMESPACE)], 'diagnostics')
    return {v.key: v.value for m in list(heard) if m.status[0].name.startswith(NAMESPACE)
            for v in m.status[0].values}['model']


def check_no_jump(states):
    """Fail where a position does not follow from the states before and after it."""
    time = np.array([s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec for s in states])
    position, velocity = (np.array([getattr(s, name) for s in states])
                          for name in ('position', 'velocity'))
    step = np.diff(time)
    assert (step > 0.0).all()
    # A busy listener misses states; there the velocity in between is not known.
    near = step < 0.006
    assert near.sum() > 20
    surprise = np.diff(position, axis=0) - 0.5 * step[:, None] * (velocity[1:] + velocity[:-1])
    assert np.abs(surprise[near]).max() < 2e-3
    assert np.abs(np.diff(velocity, axis=0)[near]).max() < 1.5


def test_a_model_in_use_that_is_damaged_is_warned_of(node, listener):
    line, = (line for line in node.lines if 'the shipped model is used' in line)
    assert 'model.safetensors: damaged' in line
    assert told(listener, node) == 'shipped'


def test_a_version_of_the_store_takes_over(node, listener, store):
    version = store.versions()[1].version
    for model, name in ((version, version), ('shipped', 'shipped'), (str(SHIPPED), str(SHIPPED)),
                        (version, version)):
        first = len(node.states)
        wait_for(lambda: len(node.states) > first + 20, 'states before')
        result = set_model(listener, model)
        assert result.successful, result.reason
        after = len(node.states)
        wait_for(lambda: len(node.states) > after + 40, 'states after')
        check_no_jump(node.states[first:])
        assert told(listener, node) == name
        wait_for(lambda: f'model {name} moves the robot from now on' in node.output, 'the log')


@pytest.mark.parametrize('model, words', [
    ('/nowhere', '/nowhere is not a folder'), ('20200101-000000', 'not a folder, nor a model of'),
    ('', 'model.safetensors: damaged'), (str(SHIPPED.parent), 'model.yaml: no such file'),
    (str(SHIPPED.parent / 'cube'), 'another robot'), ('/proc/\n' * 100, 'not a folder')])
def test_a_bad_model_is_refused_and_the_simulation_goes_on(node, listener, model, words):
    before, first = told(listener, node), len(node.states)
    result = set_model(listener, model)
    assert not result.successful and words in result.reason
    wait_for(lambda: len(node.states) > first + 40, 'states after')
    check_no_jump(node.states[first:])
    assert told(listener, node) == before


def nerd_ros(*words):
    return subprocess.run([sys.executable, '-m', 'nerd_ros.cli', 'models', *words], timeout=120,
                          capture_output=True, text=True)


def test_the_command_line_swaps_the_running_model(node, listener, store):
    version = store.versions()[1].version
    options = ('--store', str(store.folder.parents[1]), '--namespace', NAMESPACE)
    result = nerd_ros('activate', 'shipped', *options)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        'model shipped of double_pendulum is in use from now on',
        'the running simulator has swapped its model']
    assert store.active == 'shipped' and told(listener, node) == 'shipped'
    result = nerd_ros('activate', version, *options)
    assert result.returncode == 0 and told(listener, node) == version, result.stderr
    result = nerd_ros('roll-back', *options)
    assert result.returncode == 0 and told(listener, node) == 'shipped', result.stderr
    assert store.active == 'shipped'
    # '' is what is in use now.
    assert set_model(listener, '').successful and told(listener, node) == 'shipped'


def test_the_command_line_without_a_simulator(store):
    result = nerd_ros('activate', 'shipped', '--store', str(store.folder.parents[1]),
                      '--namespace', 'nobody')
    assert result.returncode == 0, result.stderr
    assert 'no simulator runs here' in result.stdout
