# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Rates of what is not published at every step."""

import pytest

from nerd_ros.nodes.publishers import Schedule

DT_NS = 5_000_000


@pytest.mark.parametrize('rate, count', [
    (0.0, 2000), (200.0, 2000), (1000.0, 2000), (100.0, 1000), (60.0, 600), (0.5, 5),
    (1e-300, 1)])
def test_mean_rate_over_ten_seconds(rate, count):
    schedule = Schedule(rate)
    due = [step for step in range(1, 2001) if schedule.due(step * DT_NS)]
    assert len(due) == pytest.approx(count, abs=1)


def test_a_new_rate_holds_at_once():
    schedule = Schedule(0.1)
    assert schedule.due(DT_NS) and not schedule.due(2 * DT_NS)
    schedule.set_rate(100.0)
    assert [step for step in range(1001, 1009) if schedule.due(step * DT_NS)] \
        == [1001, 1002, 1004, 1006, 1008]
