# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How the node starts, fails and ends."""

from dataclasses import fields
import signal

import pytest
from running_node import RunningNode, START_TIMEOUT, wait_for
from sensor_msgs.msg import JointState
from yaml import safe_load

from nerd_ros.arguments import ARGUMENTS, PARAMETERS, SOLVERS
from nerd_ros.nodes.parameters import SimParameters
from nerd_ros.resources import resource_path
from nerd_ros.scene.simulation import REACTIONS


@pytest.mark.parametrize('argument, told', [
    ('robot:=nobody', 'nobody'),
    ('world:=nowhere', 'nowhere'),
    ('solver:=magic', 'parameter solver'),
    ('real_time_factor:=-1.0', 'parameter real_time_factor'),
    ('tf_rate:=-1e-300', 'parameter tf_rate'),
    ('real_time_factor:=1', 'parameter real_time_factor has to be a number with a decimal point'),
    ('--params-file /nowhere.yaml', '/nowhere.yaml'),
    ('joint_states_topic:=1st', "parameter joint_states_topic is '1st'"),
    ('joint_states_topic:=left//states', 'in parts that begin with no digit'),
])
def test_a_bad_argument_gives_one_line(argument, told):
    node = RunningNode('solver:=mujoco', argument)
    code = node.process.wait(START_TIMEOUT)
    lines = [line for line in node.output_at_end().splitlines() if line.strip()]
    assert code == 1
    # rcl has a line of its own on arguments that it cannot parse.
    assert told in lines[-1] and len(lines) <= 2 and 'Traceback' not in node.output


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_ends_on_a_signal(listener, number):
    states = listener.collect(JointState, '/ending/joint_states')
    node = RunningNode('-r __ns:=/ending', 'solver:=mujoco', 'use_sim_time:=true')
    try:
        wait_for(lambda: states or node.process.poll() is not None, 'states', START_TIMEOUT)
        code, took = node.end(number)
    finally:
        node.kill()
    print(f'ended within {took:.2f} s')
    assert code == 0, node.output
    assert 'Traceback' not in node.output
    assert 'use_sim_time is set to false' in node.output
    # A second is promised; the rest is for busy machines.
    assert took < 3.0


def test_ends_on_a_signal_while_it_starts():
    node = RunningNode('solver:=mujoco')
    try:
        wait_for(lambda: '.so' in open(f'/proc/{node.process.pid}/maps').read()
                 and 'warp' in open(f'/proc/{node.process.pid}/maps').read(), 'the import of warp')
        code, took = node.end(signal.SIGINT)
    finally:
        node.kill()
    assert code == 0 and 'Traceback' not in node.output, node.output


def test_sim_yaml_lists_the_parameters_with_their_defaults():
    file = safe_load(resource_path('config', 'sim.yaml').read_text())
    assert file['/**']['ros__parameters'] == vars(SimParameters())


def test_parameters_know_what_the_simulation_knows():
    choices = {item.name: item.metadata['choices'] for item in fields(SimParameters)}
    assert choices['solver'] == SOLVERS and choices['guard'] == REACTIONS
    for argument in ARGUMENTS:
        if argument.name in PARAMETERS and argument.name != 'gui':
            assert getattr(SimParameters(), argument.name) == argument.default
