# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`nerd-ros bag info` says what a recording holds, in a table, in JSON and in a picture."""

from io import StringIO
import json

from bag_writing import swing, write_bag
import numpy as np
import pytest
from rich.console import Console

from nerd_ros.learning.bags.bag_info import bag_info
from nerd_ros.learning.bags.bag_topics import Topics


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """Recording with a gap, whose measured efforts are half of those commanded."""
    return write_bag(tmp_path_factory.mktemp('bags') / 'swing', swing(
        duration=4.0, skip=lambda t: 1.0 < t < 1.5))


def run(*arguments, width=80, **options):
    text = StringIO()
    failed = bag_info('double_pendulum', *arguments,
                      console=Console(file=text, width=width), **options)
    return failed, text.getvalue()


def test_table_and_picture(bag, tmp_path):
    failed, text = run([bag], output=tmp_path)
    assert failed == 0
    for words in ('3.50 s in 2 segments', 'states: /joint_states', '1 gaps in the states',
                  'measured effort follows', 'usable', 'delay'):
        assert words in text
    row = next(line for line in text.splitlines() if line.strip().startswith('elbow'))
    assert len(row) <= 80 and row.split()[:4] == ['elbow', '500', '-1.00', '1.00']
    assert row.split()[-1] in ('98%', '99%') and '…' not in text
    assert (tmp_path / 'swing_info.png').stat().st_size > 10_000


def test_json(bag, tmp_path):
    failed, text = run([bag], as_json=True)
    data = json.loads(text)
    assert failed == 0 and data['robot'] == 'double_pendulum' and data['name'] == 'swing'
    assert data['duration'] == pytest.approx(3.49, abs=0.02) and data['segments'] == 2
    assert data['span'] == pytest.approx(4.0, abs=0.01)
    assert data['topics'] == {'states': '/joint_states', 'commands': '/joint_commands', 'base': ''}
    assert data['base'] is None and any('gap' in note for note in data['notes'])
    shoulder, elbow = data['joints']
    assert elbow['name'] == 'elbow' and elbow['rate'] == pytest.approx(500)
    assert shoulder['lower'] == pytest.approx(-1.0, abs=0.01)
    assert shoulder['fastest'] == pytest.approx(3.0, abs=0.05)
    assert elbow['rms_effort_command'] == pytest.approx(1.0, abs=0.01)
    assert elbow['rms_effort_measured'] == pytest.approx(0.5, abs=0.01)
    assert abs(elbow['latency']) < 0.002 and elbow['moving'] > 0.9
    assert elbow['usable'] == data['duration']


def test_bags_that_cannot_serve(bag, tmp_path):
    (tmp_path / 'empty.mcap').touch()
    failed, text = run([tmp_path / 'empty.mcap', bag])
    assert failed == 1 and 'the file is empty' in text and '2 segments' in text
    failed, text = run([tmp_path / 'empty.mcap', bag], Topics(states='/other'), as_json=True)
    first, second = map(json.loads, text.splitlines())
    assert failed == 2 and 'the file is empty' in first['error']
    assert '/other' in second['error'] and second['path'] == str(bag)


def test_floating_robot(shared_data, tmp_path):
    text = StringIO()
    path = shared_data / 'bags' / 'robot_localization_jackal' / 'test2.bag'
    console = Console(file=text, width=80)
    assert bag_info('cube', [path], output=tmp_path, console=console) == 0
    assert 'velocity of the base' in text.getvalue()
    assert (tmp_path / 'test2_info.png').exists()
    text.truncate(text.seek(0))
    assert bag_info('cube', [path], as_json=True, console=console) == 0
    base = json.loads(text.getvalue())['base']
    assert base['fastest'] == pytest.approx(2.0, abs=0.1) and np.shape(base['lower']) == (3,)


def test_command_line(nerd_ros, bag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = nerd_ros('bag', 'info', bag, '--json', '--states', '/joint_states')
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)['segments'] == 2
    assert not list(tmp_path.iterdir())
    bad = nerd_ros('bag', 'info', tmp_path / 'none', '--output', tmp_path)
    assert bad.returncode == 1 and 'no such file' in bad.stdout and not bad.stderr
