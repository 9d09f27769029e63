# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The command line: arguments of a simulation, errors in one sentence, quick answers."""

import os
import subprocess
import sys

from nerd_ros.arguments import ArgumentError, read_arguments
from nerd_ros.cli.sim import node_arguments
import pytest


def in_its_own_process(*words: str) -> subprocess.CompletedProcess:
    """Run `nerd-ros` as a user does."""
    return subprocess.run([sys.executable, '-m', 'nerd_ros.cli', *words], capture_output=True,
                          text=True, timeout=120)


def test_arguments():
    values = read_arguments(['robot:=my/robot.yaml', 'gui:=false'], gui='true')
    assert values['robot'] == 'my/robot.yaml' and values['gui'] == 'false'
    assert read_arguments([], gui='true')['gui'] == 'true'
    assert values['solver'] == 'neural'
    for namespace in ('', '/', 'left', '/left/arm_2', 'left/'):
        assert read_arguments([f'namespace:={namespace}'])['namespace'] == namespace
    headless = read_arguments(['headless:=true', 'rviz:=true', 'gui:=true'])
    assert headless['gui'] == headless['rviz'] == 'false'


@pytest.mark.parametrize('word, message', [
    ('wrld:=empty', 'no argument wrld:=empty.*robot, world, solver, model, namespace, gui, rviz'),
    ('world=empty', 'no argument world=empty; write name:=value'),
    ('solver:=magic', 'solver:=magic.*neural, mujoco, featherstone'),
    ('gui:=maybe', 'gui:=maybe.*true, false'),
    ('namespace:=1st', 'namespace:=1st.*letters, digits'),
    ('namespace:=a//b', 'namespace:=a//b.*joined by /'),
    ('namespace:=left arm', 'namespace:=left arm.*letters, digits'),
])
def test_wrong_arguments(word, message):
    with pytest.raises(ArgumentError, match=message):
        read_arguments([word])


def test_arguments_of_the_node():
    # A text that YAML would take for something else stays a text.
    words = node_arguments(read_arguments(['robot:=1e3', 'namespace:=left', 'gui:=true']))
    assert words[0] == '--ros-args'
    assert 'robot:="1e3"' in words and 'gui:=true' in words and 'model:=""' in words
    assert words[-2:] == ['-r', '__ns:=/left']


def test_help_needs_no_heavy_library():
    code = ('import sys, nerd_ros.cli; '
            'print({"torch", "newton", "warp", "numba", "rclpy"} & set(sys.modules))')
    assert subprocess.check_output([sys.executable, '-c', code], text=True) == 'set()\n'
    result = in_its_own_process('--help')
    assert result.returncode == 0
    for command in ('generate', 'train', 'evaluate', 'sim'):
        assert command in result.stdout


@pytest.mark.parametrize('words, message', [
    (('sim', 'planet:=mars'), 'there is no argument planet:=mars'),
    (('generate', '--robot', 'nobody'), 'no nobody.yaml among the robots'),
    (('evaluate', '--model', 'nowhere'), 'nowhere'),
    (('generate', '--output', '/dev/null/here/a.h5'), '/dev/null/here: nothing can be written'),
    (('generate', '--count', '1', '--output', '/dev'), '/dev: is a folder; give the name of'),
    (('train', '--output', '/dev/null/here'), '/dev/null/here: nothing can be written there'),
    (('evaluate', '--output', '/dev/null'), '/dev/null is a file where --output needs a folder'),
    (('init', 'gone.urdf', '--output', '/proc/x.yaml'), '/proc: nothing can be written there'),
    (('bag', 'remove', 'gone'), 'there is no bag gone in'),
    (('models', 'activate', '../x'), "'../x' cannot be the name of a model"),
    (('models', '--store', '/x', 'list'), 'nerd-ros models list --help'),
    (('models', 'activate', 'shipped', '--namespace', '1st'), '--namespace 1st is not possible'),
])
def test_errors_are_one_sentence(nerd_ros, words, message):
    check_error(nerd_ros(*words), message)


def test_an_error_of_a_process_is_one_sentence():
    check_error(in_its_own_process('generate', '--robot', 'nobody'), 'no nobody.yaml among')


def check_error(result, message):
    assert result.returncode == 1
    line, = result.stderr.splitlines()
    assert line.startswith('nerd-ros: ') and message in line


def test_a_refused_training_leaves_no_folder(nerd_ros, tmp_path):
    result = nerd_ros('train', '--data', 'gone.h5', '--output', str(tmp_path / 'runs' / 'x'))
    assert result.returncode == 1 and 'gone.h5: no such' in result.stderr
    assert not list(tmp_path.iterdir())


def test_bags_are_listed_and_removed(nerd_ros, tmp_path):
    bag = tmp_path / 'double_pendulum' / 'bags' / 'swing'
    bag.mkdir(parents=True)
    (bag / 'swing.mcap').write_bytes(b'0' * 1_500_000)
    for words, told in ((('list',), 'swing'), (('list',), '1.5 MB'),
                        (('remove', 'swing'), 'bag swing is removed')):
        result = nerd_ros('bag', *words, '--store', str(tmp_path))
        assert result.returncode == 0 and told in result.stdout, result.stderr
    assert not bag.exists()


def test_pictures_go_to_the_folder_of_results(nerd_ros, monkeypatch):
    monkeypatch.setenv('COLUMNS', '200')
    assert 'Folder of the picture. [default: runs]' in nerd_ros('evaluate', '--help').stdout


def test_rviz_ends_with_the_simulator(tmp_path, monkeypatch):
    pytest.importorskip('rclpy', reason='ROS 2 is not installed')
    events = tmp_path / 'events'
    rviz = tmp_path / 'rviz2'
    rviz.write_text(f"""#!/bin/sh
trap 'echo ended >> {events}; exit' TERM
echo started >> {events}
while :; do sleep 0.1; done
""")
    rviz.chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
    # Which ends by itself; its output ends when RViz lets go of it.
    result = in_its_own_process('sim', 'rviz:=true', 'gui:=false', 'robot:=nobody')
    assert result.returncode == 1 and 'nobody' in result.stdout + result.stderr
    assert events.read_text() == 'started\nended\n'
