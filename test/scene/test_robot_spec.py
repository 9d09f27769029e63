# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""RobotSpec: what it reads, and that every mistake is one sentence with file and field."""

import pytest
import yaml

from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec


@pytest.fixture
def data():
    return yaml.safe_load(RobotSpec.load('double_pendulum').source.read_text())


def load(tmp_path, data):
    path = tmp_path / 'robot.yaml'
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return RobotSpec.load(path)


def test_shipped_robot():
    spec = RobotSpec.load('double_pendulum')
    assert list(spec.joints) == ['shoulder', 'elbow']
    assert spec.dt == 0.005
    assert spec.joints['shoulder'].armature == pytest.approx(37 * 6.287203962819607e-05)
    assert spec.urdf_path.is_file()


def test_a_floating_base_needs_no_joints(tmp_path, data):
    data['joints'], data['base']['type'] = {}, 'floating'
    for section in ('sampling', 'evaluation'):
        data.pop(section)
    assert load(tmp_path, data).joints == {}


def test_urdf_is_relative_to_the_file(tmp_path, data):
    data['urdf'] = 'mine.urdf'
    assert load(tmp_path, data).urdf_path == tmp_path / 'mine.urdf'


def test_a_file_may_leave_out_its_version(tmp_path, data):
    assert data.pop('format_version') == 1
    assert load(tmp_path, data).format_version == 1


def change(key, value):
    def apply(data):
        *path, last = key.split('.')
        for part in path:
            data = data[part]
        data[last] = value
    return apply


@pytest.mark.parametrize('apply, words', [
    (change('format_version', 2), ['format_version 2, this release reads 1', 'update']),
    (change('format_version', 'one'), ['format_version one, this release reads 1']),
    (change('colour', 'red'), ['unknown field colour']),
    (change('joints.shoulder.gear', 6), ['unknown field joints.shoulder.gear']),
    (change('dt', '5 ms'), ['field dt', '5 ms']),
    (change('dt', -0.005), ['field dt', 'greater than or equal to 0.000001']),
    (change('dt', float('nan')), ['field dt', 'finite']),
    (change('base.type', 'flying'), ['field base.type', 'fixed', 'floating']),
    (change('base.pose', [0.0, 0.0]), ['field base.pose']),
    (change('teacher.substeps', 2.5), ['field teacher.substeps']),
    (change('sampling.velocity', 8.0), ['sampling.velocity: input should be a list, got 8.0']),
    (change('sampling.velocity', [1.0]), ['sampling.velocity', 'one per joint']),
    (change('sampling.hold', [9, 3]), ['hold', '9 is above 3']),
    (change('sampling.base_velocity', [1.0]), ['sampling.base_velocity']),
    (change('evaluation.position', [[0.0, 1.0]]), ['evaluation.position', 'one per joint']),
    (change('evaluation.position', [[0.0, 1.0], [2.0, 1.0]]), ['position', '2.0 is above 1.0']),
    (change('evaluation.grounds', [{'height': 0.1, 'yaw': 1.0}]),
     ['unknown field evaluation.grounds.0.yaw']),
    (change('sampling.passive_share', 1.5), ['sampling.passive_share', 'less than or equal to 1']),
    (change('name', 'my robot'), ['field name']),
    (change('name', 'a' * 5000), ['field name', 'at most 100', 'aaa...aaa']),
    (change('base.pose', [0.0, 0.0, 1e300, 0.0, 0.0, 0.0]), ['base.pose.2', '1000000']),
    (change('joints.shoulder.armature', 1e300), ['joints.shoulder.armature', '1000000']),
    (change('joints.shoulder.effort_limit', 1e300), ['shoulder.effort_limit', '1000000']),
    (change('contact.slot_spacing', 1e-9), ['contact.slot_spacing', '0.001']),
    (change('joints', {}), ['joints: a robot with a fixed base has at least one']),
    (change('joints.shoulder.effort_limit', -1.0), ['shoulder.effort_limit', 'equal to 0']),
    (change('contact.shape_slots', 1), ['contact.shape_slots', 'equal to 2']),
    (change('contact.links', 'upper_link'), ['contact.links', "'upper_link'"]),
    (lambda data: data.pop('urdf'), ['field urdf is missing']),
])
def test_mistakes_are_named(tmp_path, data, apply, words):
    apply(data)
    with pytest.raises(RobotError) as caught:
        load(tmp_path, data)
    message = str(caught.value)
    assert 'robot.yaml' in message and '\n' not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize('text, words', [
    ('name: [unclosed', ['line 1']),
    ('just text', ['mapping']),
    ('', ['mapping']),
    ('[' * 3000, ['not valid YAML', 'recursion']),
    ('dt: 2020-13-45', ['not valid YAML', 'month']),
    ('name: a\ndt: 0.1\nname: b', ['line 3', 'name comes twice']),
    ('joints:\n  a: {}\n  b: {}\n  a: {}', ['line 4', 'a comes twice']),
])
def test_broken_yaml(tmp_path, text, words):
    path = tmp_path / 'robot.yaml'
    path.write_text(text)
    with pytest.raises(RobotError) as caught:
        RobotSpec.load(path)
    for word in ('robot.yaml', *words):
        assert word in str(caught.value)


@pytest.mark.parametrize('text', ['5e-3', '5E-3', '.5e-2', '+5.e-3', '0.005'])
def test_numbers_in_scientific_notation(tmp_path, data, text):
    path = tmp_path / 'robot.yaml'
    path.write_text(yaml.safe_dump(data).replace('dt: 0.005', f'dt: {text}'))
    assert RobotSpec.load(path).dt == 0.005


def test_missing_robots():
    with pytest.raises(RobotError, match='nowhere.yaml'):
        RobotSpec.load('/tmp/nowhere.yaml')
    with pytest.raises(RobotError, match='double_pendulum'):
        RobotSpec.load('no_such_robot')
    for name in ('arm.urdf', '/tmp/arm.urdf.xacro'):
        with pytest.raises(RobotError, match=f'{name}: .* not a URDF; `nerd-ros init` writes'):
            RobotSpec.load(name)
