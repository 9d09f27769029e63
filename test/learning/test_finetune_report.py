# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The page that shows what came out of a fine-tuning."""

from base64 import b64decode
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

from bag_writing import LAYOUT
from lxml import etree
import numpy as np
import pytest
import torch

from nerd_ros.dynamics.layout import JointLayout
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import BagRecording, Segment
from nerd_ros.learning.finetuning.comparison import (
    AFTER, ANALYTIC, BEFORE, Comparison, HOLD, HORIZONS)
from nerd_ros.learning.finetuning.report import write_report
from nerd_ros.learning.finetuning.report_plots import SHOWN_WINDOWS, shown_windows
from nerd_ros.learning.finetuning.split import Split
from nerd_ros.learning.finetuning.windows import HISTORY, Windows
from nerd_ros.scene.robot.robot_spec import RobotSpec

FLOATING = replace(LAYOUT, floating=True, joints=(
    JointLayout('waist', 'ball', -1e10, 1e10, 1.0),
    JointLayout('slide', 'prismatic', -1.0, 1.0, 5.0)))
OFF = {AFTER: 0.01, BEFORE: 0.04, ANALYTIC: 0.02, HOLD: 0.08}
# Not what a page or matplotlib would like in a name.
BAGS = ('<b>', 'swing $x_{', 'kurz & gut', 'b\udcff')
STEPS = round(HORIZONS[-1] / LAYOUT.dt)


class Page(HTMLParser):
    """Tags, visible text, pictures, and cells of each table by row."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.images, self.tables, self.links = Counter(), '', [], {}, []
        self._open, self._cells = [], []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags[tag] += 1
        self.links += [value for name, value in attributes.items() if name in ('src', 'href')]
        if tag == 'img':
            self.images.append(attributes)
        elif tag != 'meta':
            self._open.append(tag)
        if tag == 'table':
            self._rows = self.tables.setdefault(attributes['id'], [])
        elif tag == 'tr':
            self._rows.append([])
        elif tag in ('th', 'td'):
            self._rows[-1].append('')

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if 'style' in self._open:
            return
        self.text += data
        if 'tr' in self._open and self._open[-1] != 'tr':
            self._rows[-1][-1] += ' '.join(data.split())


def comparison(layout, effort='commanded', length=STEPS):
    """Two windows of each bag, of `length` steps: each solver is off by as much all the time."""
    count, rng = 2 * len(BAGS), np.random.default_rng(0)
    width = (7 if layout.floating else 0) + sum(
        4 if joint.type == 'ball' else 1 for joint in layout.joints)
    true = np.repeat(rng.normal(size=(count, 1, width)), HISTORY + STEPS + 1, axis=1)
    for start in ([3, 7] if layout.floating else []):
        true[..., start:start + 4] = (0.0, 0.0, 0.0, 1.0)
    motion = {solver: true[:, HISTORY:].copy() for solver in OFF}
    for solver, off in OFF.items():
        for column in (0, -1):
            motion[solver][:, 1:, column] += off
    still = torch.zeros(count, HISTORY + STEPS + 1, width)
    windows = Windows(torch.from_numpy(true), still, still[:, :-1],
                      torch.full((count,), HISTORY), torch.full((count,), length),
                      torch.arange(count) // 2, torch.arange(count) * 0.1)
    return Comparison(layout, effort, BAGS, windows, motion)


def recording(name, seconds):
    rows = np.zeros((round(seconds / LAYOUT.dt) + 1, 2))
    return BagRecording(name, name, LAYOUT.dt, (Segment(rows[:, 0], rows, rows, rows, None),),
                        ('3 messages < the first are left out',), Topics(), seconds, (), ())


def page(folder, comparisons, better=True):
    parts = Split((recording('<i>', 20.0), recording('long', 12.5)), (recording('check', 4.0),),
                  tuple(recording(name, 1.0) for name in BAGS), 'chosen by the seed')
    card = {'robot': 'double_pendulum', 'seed': 7, 'command': 'nerd-ros finetune --bag "<i>"',
            'fine_tuning': {
                'base': 'shipped', 'effort': 'commanded', 'better': better,
                'reason': 'on 4 test recordings it is 0.25 times & so on',
                'measured_lead': 0.01}}
    write_report(folder / 'report.html', RobotSpec.load('double_pendulum'), parts, comparisons,
                 card)
    assert [path.name for path in folder.iterdir()] == ['report.html']
    return Page((folder / 'report.html').read_text(encoding='utf-8'))


@pytest.fixture(scope='module')
def full(tmp_path_factory):
    return page(tmp_path_factory.mktemp('full'), {
        'measured': comparison(LAYOUT, 'measured'), 'commanded': comparison(LAYOUT)})


def test_verdict_comes_first(full):
    assert full.text.index('may be put to use') < full.text.index('How to read this')
    assert 'On 4 test recordings it is 0.25 times & so on.' in full.text


def test_what_was_learned_from(full):
    assert full.tables['recordings'][1:3] == [
        ['training', '32.5', '<i> (20.0 s), long (12.5 s)'],
        ['validation', '4.0', 'check (4.0 s)']]
    for told in ('nerd-ros finetune --bag "<i>"', 'shipped', 'Chosen by the seed.',
                 'long: 3 messages < the first are left out',
                 'moved 10 ms earlier'):
        assert told in full.text


def test_names_are_no_markup(full):
    assert not full.tags['b'] - 5 and not full.tags['script']  # five figures stand in <b>
    assert [row[0] for row in full.tables['bags'][1:]] == [*BAGS[:3], 'b\ufffd']


def test_errors_by_effort_horizon_and_quantity(full):
    for effort in ('commanded', 'measured'):
        assert full.tables[f'errors-{effort}'] == [
            ['after', '50 ms', '200 ms', '500 ms', '1 s'],
            *(row for joint in ('shoulder', 'elbow') for row in (
                [f'{joint} [rad]'],
                *([solver, *4 * [f'{off:.4f}']] for solver, off in OFF.items()),
                ['ratio to before', *4 * ['0.25']], ['ratio to analytic', *4 * ['0.50']]))]
    assert full.tables['bags'][1] == [
        '<b>', '0.25', *(f'{off:.4f}' for off in OFF.values()), '2']


def test_pictures_are_in_the_page(full):
    assert len(full.images) == 2 * (1 + SHOWN_WINDOWS)
    assert full.links == [image['src'] for image in full.images]  # nothing is loaded
    for image in full.images:
        kind, content = image['src'].split(',')
        assert kind == 'data:image/svg+xml;base64'
        assert etree.fromstring(b64decode(content)).tag.endswith('svg')
    told = [image['alt'] for image in full.images]
    assert told[0] == 'shoulder [rad]: Error over time, all 8 windows'
    shown = [one for one in told if one.startswith('elbow') and 'from' in one]
    assert len(shown) == SHOWN_WINDOWS and 'swing $x_{, from' in ' '.join(shown)


def test_short_recordings_of_a_floating_base(tmp_path):
    """Beyond the end nothing is known, and a ball joint has no coordinate to draw."""
    out = page(tmp_path, {'commanded': comparison(FLOATING, length=60)}, better=False)
    assert 'not put to use' in out.text and 'may be put to use' not in out.text
    rows = out.tables['errors-commanded']
    assert [row[0] for row in rows if len(row) == 1] == [
        'base [m]', 'base [rad]', 'waist [rad]', 'slide [m]']
    assert rows[2] == [AFTER, '0.0100', '0.0100', '-', '-']
    assert rows[6] == ['ratio to before', '0.25', '0.25', '-', '-']
    assert len(out.images) == 4 * (1 + SHOWN_WINDOWS)
    assert 'm or rad' in out.text


def test_what_runs_away_does_not_break_the_page(tmp_path):
    some = comparison(LAYOUT)
    some.motion[ANALYTIC][:] = np.nan
    some.motion[BEFORE][0, 3:] = np.inf
    out = page(tmp_path, {'commanded': some})
    assert out.tables['errors-commanded'][4] == [ANALYTIC, '-', '-', '-', '-']


def test_a_robot_that_stands_still(tmp_path):
    some = comparison(LAYOUT)
    for motion in some.motion.values():
        motion[:] = some.windows.joint_q[:, HISTORY:]
    out = page(tmp_path, {'commanded': some})
    assert out.tables['bags'][1][1:] == ['-', *4 * ['0'], '2']


def test_shown_windows_are_among_the_longest():
    some = comparison(LAYOUT)
    some.windows.length[2:] = 50
    assert shown_windows(some) == [0, 1]
