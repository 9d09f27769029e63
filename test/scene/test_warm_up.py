# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiling ahead, which is part of the set-up and has to come to its end."""

from nerd_ros.scene import warm_up
from nerd_ros.scene.robot.robot_spec import RobotSpec


def test_a_robot_without_a_learned_model_is_warmed_up_without(tmp_path, monkeypatch, capfd):
    shipped = RobotSpec.load('double_pendulum')
    other = tmp_path / 'other.yaml'
    other.write_text(shipped.source.read_text().replace('name: double_pendulum', 'name: other')
                     .replace(shipped.urdf, str(shipped.urdf_path.resolve())))
    monkeypatch.setattr(warm_up, 'ROBOT', str(other))
    warm_up.warm_up()
    told = capfd.readouterr().out.splitlines()
    assert [line.split(':')[0].strip() for line in told] == [
        'solver neural', 'solver mujoco', 'solver featherstone', 'view']
    assert 'left out, no learned model ships for robot other' in told[0]
    assert all(line.endswith(' s') for line in told[1:])
