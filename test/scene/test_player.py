# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Recorded motions in the browser: a page that plays, pauses and goes on."""

import socket
from threading import Thread
import time
from urllib.request import urlopen

import numpy as np

from nerd_ros.scene.player import Playback, Player
from nerd_ros.scene.robot.robot_spec import RobotSpec
import pytest

PORT = 18500


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def listens(port: int, host: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@pytest.fixture
def player():
    spec = RobotSpec.load('double_pendulum')
    rng = np.random.default_rng(0)
    motions = [Playback(f'motion {i}', rng.normal(size=(2, steps, 2)),
                        np.array([0.0, 0.0, 1.0, offset]))
               for i, (steps, offset) in enumerate(((2001, 0.2), (3, -np.inf)))]
    player = Player(spec, ('teacher', 'model'), motions, PORT)
    thread = Thread(target=player.play)
    thread.start()
    yield player
    player.stop()
    thread.join(10.0)
    assert not thread.is_alive()
    assert not listens(int(player.url.rsplit(':')[-1]), '127.0.0.1')


def test_page_plays_what_it_is_asked_to(player):
    assert player.url.startswith('http://127.0.0.1:')
    assert b'<html' in urlopen(player.url).read()
    assert not listens(int(player.url.rsplit(':')[-1]), '127.0.0.2')
    view = player._view

    def text():
        return view.clock.content
    wait_for(lambda: 'motion 0' in text())
    begin = text()
    wait_for(lambda: text() != begin)
    view.paused.value = True
    time.sleep(0.2)
    paused = text()
    time.sleep(0.3)
    assert text() == paused
    view.next.set()
    wait_for(lambda: 'motion 1' in text())
    view.paused.value = False
    # The second motion is short, after which the first begins again.
    wait_for(lambda: 'motion 0' in text())
    offsets = view.world_offsets.numpy()
    assert np.ptp(offsets[:, 1]) > 0.5, 'the robots stand beside each other'
