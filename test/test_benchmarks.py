# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the published tables are checked against."""

from copy import deepcopy

import accuracy
import pytest


def good_metrics(robot: str) -> dict:
    """Return figures that lie just within the bounds of a robot."""
    metrics = {'duration': accuracy.DURATIONS[robot], 'free_running': {}, 'divergence': {
        'random': {'diverged': 0, 'rollouts': 2048, 'seconds': 10.0}}}
    for (*place, name), bound in accuracy.BOUNDS[robot].items():
        figures = metrics['free_running']
        for key in place:
            figures = figures.setdefault(key, {})
        figures[name] = bound
    return metrics


@pytest.mark.parametrize('robot', ['double_pendulum', 'cartpole', 'cube'])
def test_each_bound_that_is_missed_is_named_with_its_figure(robot):
    good = good_metrics(robot)
    assert accuracy.misses(robot, good) == []
    for *place, name in accuracy.BOUNDS[robot]:
        metrics = deepcopy(good)
        figures = metrics['free_running']
        for key in place:
            figures = figures[key]
        figures[name] = 0.1239 if name == 'within_share' else 0.4567
        line, = accuracy.misses(robot, metrics)
        assert line.startswith(f'{robot}, {place[0].replace("_", " ")}')
        assert ('12.4%' if name == 'within_share' else '0.4567') in line
        figures[name] = float('nan')
        assert len(accuracy.misses(robot, metrics)) == 1
        del figures[name]
        assert 'not measured' in accuracy.misses(robot, metrics)[0]


def test_divergence_and_short_rollouts_are_missed_bounds():
    metrics = good_metrics('cube')
    metrics['divergence']['random']['diverged'] = 3
    metrics['duration'] = 0.3
    assert accuracy.misses('cube', metrics) == [
        'cube: rollouts of 0.3 s, not of 0.7 s',
        'cube, random: 3 of 2048 rollouts of 10 s diverged, not 0']
    assert accuracy.misses('my_robot', metrics) == []


def test_all_conditions_of_the_pendulum_are_bounded():
    bounds = accuracy.BOUNDS['double_pendulum']
    assert len(bounds) == 12
    for kind in ('passive', 'random'):
        for ground, mean, end, share in (('without', 0.01, 0.02, 0.95),
                                         ('with', 0.02, 0.06, 0.75)):
            key = f'{kind}_{ground}_ground'
            assert bounds[key, 'joint_rad', 'mean'] == mean
            assert bounds[key, 'joint_rad', 'end'] == end
            assert bounds[key, 'within_share'] == share
