# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`nerd-ros init`: the robot file of a URDF, which loads and goes through the pipeline."""

from pathlib import Path
import re
import sys
import sysconfig

from lxml import etree
import numpy as np
import pytest
import yaml

from nerd_ros.learning.data.generate import generate
from nerd_ros.learning.data.trajectories import TrajectoryFile
from nerd_ros.learning.new_robot.robot_choices import base_type
from nerd_ros.learning.new_robot.robot_file import write_robot_file
from nerd_ros.learning.training.train import train
from nerd_ros.learning.training.validation import Validation
from nerd_ros.resources import resource_path
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import World

INERTIAL = ('<inertial><origin xyz="0 0 -0.1"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>')
BOX = '<collision><geometry><box size="0.1 0.1 0.2"/></geometry></collision>'
ROBOTS = Path('cmeel.prefix', 'share', 'example-robot-data', 'robots')


def shipped(name):
    return resource_path('urdf', f'{name}.urdf')


def urdf(joints, links='', base=INERTIAL, root=''):
    """URDF of a base and links on it; a joint is name, type, parent, child, content."""
    children = ''.join(f'<link name="{child}">{INERTIAL}{BOX}</link>'
                       for _, _, _, child, _ in joints)
    ties = ''.join(f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
                   f'<child link="{child}"/>{content}</joint>'
                   for name, kind, parent, child, content in joints)
    return f'<robot name="r">{root}<link name="base">{base}</link>{links}{children}{ties}</robot>'


def assert_every_value_has_a_comment(text):
    above = ''
    for line in text.splitlines():
        value = re.match(r'\s*[\w.]+: *[^ #]', line)
        if value:
            assert '#' in line or above.lstrip().startswith('#'), line
        above = line


def test_a_pendulum(tmp_path):
    path = write_robot_file(shipped('double_pendulum'), tmp_path / 'new' / 'my_pendulum.yaml')
    text, spec = path.read_text(), RobotSpec.load(path)
    assert_every_value_has_a_comment(text)
    assert spec.urdf_path.samefile(shipped('double_pendulum'))
    assert spec.name == 'my_pendulum'
    assert spec.base.type == 'fixed' and 'link base has no mass' in text
    assert spec.base.pose[2] == pytest.approx(0.52, abs=0.01)   # as long as it is, and a bit
    assert [joint.effort_limit for joint in spec.joints.values()] == [6.0, 6.0]
    assert spec.sampling.velocity == (40.0, 60.0)               # limits of the URDF
    assert spec.sampling.ground_lean == 0.1                     # it moves in a plane
    assert set(spec.contact.links) == {'upper_link', 'lower_link'}
    assert spec.evaluation.grounds
    assert spec.dt == 0.005 and spec.teacher.substeps == 2


def test_a_cube(tmp_path):
    path = write_robot_file(shipped('cube'), tmp_path / 'cube.yaml', dt=0.01)
    spec = RobotSpec.load(path)
    assert_every_value_has_a_comment(path.read_text())
    assert spec.base.type == 'floating' and spec.joints == {} and spec.dt == 0.01
    assert spec.base.pose[2] == pytest.approx(0.0524 + 0.02, abs=1e-3)
    assert spec.teacher.substeps >= 4
    assert spec.sampling.base_velocity[0] == pytest.approx(np.sqrt(2 * 9.81 * 0.0908), rel=0.05)


def test_what_no_limit_says_comes_from_effort_weight_and_inertia(tmp_path, caplog):
    limits = ('<axis xyz="0 1 0"/><limit effort="2"/>',
              '<axis xyz="0 1 0"/><origin xyz="0 0 -0.2"/><limit effort="0"/>',
              '<axis xyz="1 0 0"/><limit lower="0.1" upper="0.3" effort="50" velocity="0.5"/>')
    (tmp_path / 'arm.urdf').write_text(urdf([
        ('motor', 'continuous', 'base', 'a', limits[0]),
        ('loose', 'continuous', 'a', 'b', limits[1]),
        ('slide', 'prismatic', 'b', 'c', limits[2])], base=''))
    path = write_robot_file(tmp_path / 'arm.urdf', tmp_path / 'arm.yaml')
    spec, text = RobotSpec.load(path), path.read_text()
    assert [joint.effort_limit for joint in spec.joints.values()] == [2.0, 0.0, 50.0]
    assert 'the URDF gives no effort, or 0: taken for a joint without motor' in text
    assert 'arm.urdf: no effort limit, or 0, of joint loose: taken for' in caplog.text
    assert 'arm.urdf: no velocity limit, or 0, of joint motor, loose: ' in caplog.text
    motor, loose, slide = spec.sampling.velocity
    # 2 N m and the weight over a quarter turn, of at least 0.02 kg m^2.
    assert 5.0 < motor < 100.0 and 1.0 < loose < 100.0 and slide == 0.5
    assert 'for motor, loose' in text
    assert spec.joints['slide'].initial == pytest.approx(0.2) and 'beyond the limits' in text
    # Full effort takes 0.025 s to the velocity limit: 50 N * 0.025 s / (0.5 m/s) less 1 kg.
    assert spec.joints['slide'].armature == pytest.approx(1.5, abs=0.6)
    assert spec.joints['motor'].armature == 0.0


def test_joints_that_follow_and_balls(tmp_path):
    slide = '<axis xyz="1 0 0"/><limit lower="0" upper="0.1" effort="20" velocity="0.4"/>'
    (tmp_path / 'hand.urdf').write_text(urdf([
        ('wrist', 'spherical', 'base', 'palm', '<limit effort="3"/>'),
        ('left', 'prismatic', 'palm', 'left_finger', slide),
        ('right', 'prismatic', 'palm', 'right_finger',
         slide + '<mimic joint="left" multiplier="-2"/>')], base=''))
    path = write_robot_file(tmp_path / 'hand.urdf', tmp_path / 'hand.yaml')
    spec = RobotSpec.load(path)
    assert_every_value_has_a_comment(path.read_text())
    assert spec.sampling.velocity[1:] == (0.4, 0.8) and len(spec.sampling.velocity) == 3
    layout = build_scene(spec, World('nothing')).layout
    assert layout.effort_limits.tolist() == [3.0, 3.0, 3.0, 20.0, 0.0]
    generate(spec, tmp_path / 'hand.h5', 4, progress=False)


LEG = '<limit effort="3"/>'


@pytest.mark.parametrize('text, floating, expected, words', [
    (urdf([('a', 'continuous', 'base', 'x', LEG)]), None, 'fixed', 'a single chain of 1'),
    (urdf([('a', 'continuous', 'base', 'x', LEG), ('b', 'continuous', 'base', 'y', LEG)]), None,
     'floating', '2 chains'),
    (urdf([('a', 'continuous', 'base', 'x', LEG), ('b', 'continuous', 'base', 'y', LEG)],
          base=''), None, 'fixed', 'no mass'),
    (urdf([('a', 'continuous', 'base', 'x', LEG)]), True, 'floating', 'asked for'),
    (urdf([]), None, 'floating', 'without joints'),
    (urdf([]), False, 'fixed', 'asked for'),
])
def test_the_base_is_guessed_with_a_reason(text, floating, expected, words):
    choice = base_type(etree.fromstring(text), False, floating)
    assert choice.value == expected and words in choice.comment


def test_a_floating_joint_decides(tmp_path):
    world = '<link name="world"/>'
    tie = ('<joint name="root" type="floating"><parent link="world"/><child link="base"/>'
           '</joint>')
    (tmp_path / 'body.urdf').write_text(urdf([('a', 'continuous', 'base', 'x', LEG)],
                                             root=world + tie))
    spec = RobotSpec.load(write_robot_file(tmp_path / 'body.urdf', tmp_path / 'body.yaml'))
    assert spec.base.type == 'floating' and list(spec.joints) == ['a']


def test_nothing_is_overwritten_unasked(tmp_path):
    path = tmp_path / 'cube.yaml'
    path.write_text('mine')
    with pytest.raises(RobotError, match='cube.yaml: exists; give --force'):
        write_robot_file(shipped('cube'), path)
    with pytest.raises(RobotError, match='cube.yaml, line 1: not well-formed XML'):
        write_robot_file(path)
    assert path.read_text() == 'mine'
    with pytest.raises(RobotError, match='ends in .yaml'):
        write_robot_file(shipped('cube'), tmp_path / 'cube.txt')
    write_robot_file(shipped('cube'), path, force=True)
    assert yaml.safe_load(path.read_text())['name'] == 'cube'


def test_a_urdf_that_cannot_be_used_writes_nothing(tmp_path):
    for name, words in (('gone', 'gone.urdf: cannot be read'), ('bad', 'bad.urdf.*no mass')):
        if name == 'bad':
            (tmp_path / 'bad.urdf').write_text(
                urdf([('a', 'continuous', 'base', 'x', LEG)]).replace(INERTIAL, ''))
        with pytest.raises(RobotError, match=words):
            write_robot_file(tmp_path / f'{name}.urdf', tmp_path / f'{name}.yaml')
        assert not (tmp_path / f'{name}.yaml').exists()


def test_the_pipeline_takes_the_file_as_it_is(nerd_ros, tmp_path, monkeypatch):
    """From the command line, with the default name of the file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'leg.urdf').write_text(urdf([('hip', 'continuous', 'base', 'thigh', LEG),
                                             ('knee', 'continuous', 'thigh', 'shank', LEG)]))
    done = nerd_ros('init', 'leg.urdf', '--floating', '--dt', '0.01')
    assert done.returncode == 0, done.stderr
    assert 'leg.yaml is written' in done.stdout
    again = nerd_ros('init', 'leg.urdf')
    assert again.returncode == 1
    assert again.stderr == ('nerd-ros: leg.yaml: exists; give --force to overwrite it, or '
                            'another --output.\n')
    monkeypatch.setattr(Validation, 'count', 4)
    monkeypatch.setattr(Validation, 'longest', 0.1)
    spec, data = RobotSpec.load(tmp_path / 'leg.yaml'), tmp_path / 'leg.h5'
    generate(spec, data, 40, progress=False)
    with TrajectoryFile(data) as file:
        part = file.read(0, 40)
    assert np.isfinite(part.joint_q).all()
    assert (part.contacts[..., 6] < spec.contact.threshold).any()
    train(spec, data, tmp_path / 'run', steps=4, check_every=4, batch=4, width=16, compiled=False,
          progress=False)
    assert (tmp_path / 'run' / 'model.yaml').is_file()


@pytest.mark.parametrize('file, base, joints, slots', [
    ('panda_description/urdf/panda.urdf', 'fixed', 9, (20, 48)),
    ('a1_description/urdf/a1.urdf', 'floating', 12, (20, 48)),
])
def test_an_arm_and_a_quadruped(tmp_path, file, base, joints, slots):
    """Robots of example-robot-data on PyPI: package:// meshes, a gripper, dozens of shapes."""
    folders = {Path(place) for place in (sysconfig.get_path('purelib'), *sys.path)}
    found = [folder / ROBOTS / file for folder in folders if (folder / ROBOTS / file).is_file()]
    if not found:
        pytest.skip('example-robot-data is not installed; pip install nerd_ros[robots]')
    path = write_robot_file(found[0], tmp_path / 'robot.yaml')
    assert_every_value_has_a_comment(path.read_text())
    spec = RobotSpec.load(path)
    layout = build_scene(spec, World('nothing'), visuals=False).layout
    assert spec.base.type == base and len(layout.joints) == joints
    assert slots[0] <= layout.num_slots <= slots[1]
    assert (layout.mimic_q.shape[0] == 1) == ('panda' in file)
    generate(spec, tmp_path / 'robot.h5', 4, progress=False)
    with TrajectoryFile(tmp_path / 'robot.h5') as file:
        assert np.isfinite(file.read(0, 4).joint_qd).all()
