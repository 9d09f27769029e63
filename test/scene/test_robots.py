# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""URDF: what reaches the model, what is warned of, and that every mistake is one sentence."""

import logging
import shutil

import newton
import numpy as np
import pytest

from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.robot.urdf import fingerprint, read_urdf
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import World

EMPTY = World('nothing')


@pytest.fixture
def copy(tmp_path):
    """Copy the shipped robot and return it with some text of its files replaced."""
    shipped = RobotSpec.load('double_pendulum')

    def replaced(urdf=(), spec=()):
        texts = {'robot.urdf': shipped.urdf_path.read_text(),
                 'robot.yaml': shipped.source.read_text().replace(
                     shipped.urdf, 'robot.urdf')}
        for name, changes in (('robot.urdf', urdf), ('robot.yaml', spec)):
            for old, new in changes:
                assert old in texts[name]
                texts[name] = texts[name].replace(old, new)
            (tmp_path / name).write_text(texts[name])
        return RobotSpec.load(tmp_path / 'robot.yaml')
    return replaced


def test_figures_of_the_urdf_and_the_spec_reach_the_model():
    model = build_scene(RobotSpec.load('double_pendulum'), EMPTY).model
    m1, r1, i1 = 0.5234602302310271, 0.2, 0.031887199591513114
    m2, r2, i2 = 0.6255677234174437, 0.25569305436052964, 0.05086984812807257
    assert model.body_mass.numpy() == pytest.approx([0.0, m1, m2])
    assert model.body_com.numpy()[1:, 2] == pytest.approx([-r1, -r2])
    about_joint = model.body_inertia.numpy()[1:, 1, 1] + [m1 * r1 ** 2, m2 * r2 ** 2]
    assert about_joint == pytest.approx([i1, i2], rel=1e-6)
    rotor = 6.287203962819607e-05
    assert model.joint_armature.numpy() == pytest.approx([37 * rotor, 36 * rotor])
    assert model.joint_friction.numpy() == pytest.approx(
        [0.16 * np.pi / 2, 0.12 * np.pi / 2], rel=1e-5)
    assert model.joint_damping.numpy() == pytest.approx([0.001, 0.001])


def test_layout_and_labels():
    scene = build_scene(RobotSpec.load('double_pendulum'), EMPTY)
    layout = scene.layout
    assert layout.joint_names == ('shoulder', 'elbow')
    assert layout.effort_limits == pytest.approx([6.0, 6.0])
    assert scene.model.body_label[0] == 'robot/base'
    assert scene.body_names == ('base', 'upper_link', 'lower_link')
    tips = [s.point[2] for s in layout.slots if s.link == 'lower_link']
    assert tips == pytest.approx([0.0, -0.1, -0.2, -0.3])
    assert [s.radius for s in layout.slots] == pytest.approx([0.02] * 7)


def test_values_of_the_spec_come_before_the_urdf(copy):
    spec = copy(spec=[('  elbow:', '  elbow:\n    friction: 0.5\n    damping: 0.25\n'
                                   '    effort_limit: 3.0')])
    scene = build_scene(spec, EMPTY)
    assert scene.model.joint_friction.numpy() == pytest.approx([0.251327, 0.5])
    assert scene.model.joint_damping.numpy() == pytest.approx([0.001, 0.25])
    assert scene.layout.effort_limits == pytest.approx([6.0, 3.0])


def test_cylinders_become_capsules_only_on_request(copy):
    def kinds(spec):
        model = build_scene(spec, EMPTY).model
        collide = model.shape_flags.numpy() & int(newton.ShapeFlags.COLLIDE_SHAPES) > 0
        return set(model.shape_type.numpy()[collide].tolist())
    assert kinds(copy()) == {int(newton.GeoType.CAPSULE)}
    as_is = copy(spec=[('rounded_cylinders: true', 'rounded_cylinders: false')])
    assert kinds(as_is) == {int(newton.GeoType.CYLINDER)}
    slots = build_scene(as_is, EMPTY).layout.slots
    assert [slot.ring for slot in slots] == pytest.approx([0.02] * 7)


def test_fingerprint_is_of_the_tree_alone(copy):
    original = fingerprint(read_urdf(copy()))
    heavier = copy(urdf=[('0.5234602302310271', '0.7'), ('friction="0.251327"', 'friction="0"')])
    assert fingerprint(read_urdf(heavier)) == original
    for change in (('<axis xyz="0 1 0"/>', '<axis xyz="0 -1 0"/>'),
                   ('<origin xyz="0 0 -0.2"/>\n    <axis', '<origin xyz="0 0 -0.3"/>\n    <axis'),
                   ('name="elbow" type="continuous"', 'name="elbow" type="fixed"')):
        root = read_urdf(copy())
        text = copy(urdf=[change])
        if 'fixed' in change[1]:
            with pytest.raises(RobotError, match='joint elbow is no moving joint'):
                read_urdf(text)
            continue
        root = read_urdf(text)
        assert fingerprint(root) != original


def test_dropped_elements_are_warned_of_once_by_name_and_line(copy, caplog):
    extra = ('<transmission name="a"><joint name="elbow"/></transmission>'
             '<gazebo/><gazebo reference="base"/><ros2_control name="b" type="system"/>')
    spec = copy(urdf=[('</robot>', extra + '</robot>'),
                      ('<child link="lower_link"/>',
                       '<child link="lower_link"/><safety_controller k_velocity="1"/>')])
    with caplog.at_level(logging.WARNING):
        root = read_urdf(spec)
        build_scene(spec, EMPTY)
    for tag in ('transmission', 'gazebo', 'ros2_control', 'safety_controller'):
        found = [r.getMessage() for r in caplog.records if f'<{tag}>' in r.getMessage()]
        assert len(found) == 1 and 'robot.urdf' in found[0] and 'line' in found[0]
        assert root.find(f'.//{tag}') is None


@pytest.mark.parametrize('urdf, words', [
    ([('</robot>', '')], ['line', 'well-formed']),
    ([('<robot name', '<model name'), ('</robot>', '</model>')], ['<model>', '<robot>']),
    ([('<mass value="0.6255677234174437"/>', '<mass value="0"/>')], ['lower_link', 'positive']),
    ([('<mass value="0.6255677234174437"/>', '<mass value="-1"/>')], ['lower_link', 'positive']),
    ([('<mass value="0.6255677234174437"/>', '<mass value="heavy"/>')], ['heavy', 'mass']),
    ([('ixx="0.009970894694" iyy="0.009970894694" izz="0.0002"',
       'ixx="0.01" iyy="0.01" izz="0.1"')], ['lower_link', 'inertia']),
    ([('ixx="0.009970894694" iyy="0.009970894694" izz="0.0002"', 'iyy="0.01" izz="0.01"')],
     ['lower_link', 'has no ixx']),
    ([('<child link="lower_link"/>', '<child link="forearm"/>')], ['elbow', 'forearm']),
    ([('<parent link="upper_link"/>', '<parent link="lower_link"/>')], ['loop', 'lower_link']),
    ([('name="elbow"', 'name="shoulder"')], ['two joints', 'shoulder']),
    ([('name="elbow" type="continuous"', 'name="elbow" type="planar"')], ['elbow', 'planar']),
    ([('name="elbow" type="continuous"', 'name="elbow" type="revolute"')],
     ['elbow', 'lower and upper']),
    ([('name="elbow" type="continuous"', 'name="elbow" type="floating"')],
     ['line 55', 'joint elbow is floating', 'only a base']),
    ([('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>')], ['shoulder', 'axis']),
    ([('name="elbow" type="continuous"', 'name="elbow" type="revolute"'),
      ('effort="6.0" velocity="60.0"', 'effort="6" lower="0.3" upper="-0.3"')],
     ['joint elbow', 'lower limit above']),
    ([('name="elbow" type="continuous"', 'name="elbow" type="revolute"'),
      ('effort="6.0" velocity="60.0"', 'effort="6" lower="0" upper="0"')],
     ['joint elbow cannot move', 'fixed']),
    ([('name="elbow" type="continuous"', 'name="elbow" type="revolute"'),
      ('effort="6.0" velocity="60.0"', 'effort="6" lower="0.3" upper="0.6"')],
     ['robot.yaml', 'joint elbow starts at 0', '0.3 and 0.6', 'initial']),
    ([('<mass value="0.6255677234174437"/>', '')], ['lower_link', 'inertia but no <mass>']),
    ([('<mass value="0.6255677234174437"/>', '<mass value="0"/>'),
      ('ixx="0.009970894694" iyy="0.009970894694" izz="0.0002"', 'ixx="0" iyy="0" izz="0"')],
     ['line 55', 'lower_link moves with joint elbow but has no mass']),
    ([('<child link="lower_link"/>', '<child link="lower_link"/><mimic joint="wrist"/>')],
     ['line 57', 'joint elbow follows wrist', 'no joint']),
    ([('<child link="lower_link"/>', '<child link="lower_link"/><mimic joint="elbow"/>')],
     ['line 55', 'elbow -> elbow']),
    ([('<child link="lower_link"/>', '<child link="lower_link"/><mimic joint="shoulder"/>'),
      ('<child link="upper_link"/>', '<child link="upper_link"/><mimic joint="elbow"/>')],
     ['shoulder -> elbow -> shoulder']),
    ([('<child link="lower_link"/>',
       '<child link="lower_link"/><mimic joint="shoulder" multiplier="twice"/>')],
     ['multiplier', '"twice"']),
    ([('name="shoulder" type="continuous"', 'name="shoulder" type="spherical"'),
      ('<child link="lower_link"/>', '<child link="lower_link"/><mimic joint="shoulder"/>')],
     ['joint elbow follows shoulder', 'ball joint cannot lead']),
    ([('<axis xyz="0 1 0"/>', '<axis xyz="0 nan 0"/>')], ['axis', 'finite']),
    ([('radius="0.02" length="0.2"', 'radius="-0.02" length="0.2"')], ['radius', 'at least']),
    ([('effort="6.0" velocity="40.0"', 'velocity="40.0"')], ['shoulder', 'effort']),
    ([('<robot name', '<!DOCTYPE robot [<!ENTITY a "b">]><robot name')], ['DOCTYPE']),
    ([('"base"', '"ba\'se"')], ['line 17', "ba'se", 'apostrophe']),
    ([('effort="6.0" velocity="40.0"', 'effort="-6" velocity="40.0"')],
     ['line 29', 'joint shoulder', 'effort of <limit>', '"-6"', 'at least 0']),
    ([('velocity="40.0"', 'velocity="-1"')], ['line 29', 'velocity', 'at least 0']),
    ([('velocity="40.0"', 'velocity="nan"')], ['line 29', 'velocity', 'finite']),
    ([('velocity="40.0"', 'velocity="fast"')], ['line 29', 'joint shoulder', '"fast"']),
    ([('damping="0.001" friction="0.251327"', 'damping="-1"')], ['line 30', 'damping']),
    ([('friction="0.251327"', 'friction="-1"')], ['line 30', 'friction']),
    ([('rgba="0.35 0.38 0.42 1"', 'rgba="red"')], ['line 13', 'material steel', '"red"']),
    ([('effort="6.0" velocity="40.0"', 'effort="1e300"')], ['effort', 'at most 1e+06']),
    ([('<axis xyz="0 1 0"/>', '<axis xyz="0 1e200 0"/>')], ['axis', 'at most 1e+06']),
    ([('"0 0 -0.1"', '"0 0 1e300"')], ['origin', 'at most 1e+06']),
    ([('"0.6255677234174437"', '"1e300"')], ['lower_link', 'mass', 'at most 1e+06']),
    ([('"0.6255677234174437"', '"1e-300"')], ['lower_link', 'mass', 'at least 1e-06']),
    ([('ixx="0.009970894694"', 'ixx="1e200"')], ['lower_link', 'ixx', 'at most 1e+06']),
    ([('ixx="0.009970894694" iyy="0.009970894694" izz="0.0002"',
       'ixx="1e-12" iyy="1e-12" izz="1e-12"')], ['lower_link', 'at least 1e-10']),
    ([('size="0.08 0.06 0.08"', 'size="1e300 1 1"')], ['size', 'at most 1e+06']),
    ([('size="0.08 0.06 0.08"', 'size="1e-60 1 1"')], ['size', 'at least 1e-06']),
])
def test_mistakes_are_named(copy, urdf, words):
    spec = copy(urdf=urdf)
    with pytest.raises(RobotError) as caught:
        build_scene(spec, EMPTY)
    message = str(caught.value)
    assert '\n' not in message and ('robot.urdf' in message or 'robot.yaml' in message)
    for word in words:
        assert word in message


@pytest.mark.parametrize('geometry, words', [
    ('', ['found nothing']),
    ('<geometry/>', ['found nothing']),
    ('<geometry><torus/></geometry>', ['found <torus>']),
    ('<geometry><box size="1 1 1"/><sphere radius="1"/></geometry>', ['found <box>, <sphere>']),
    ('<geometry><cylinder length="0.1"/></geometry>', ['<cylinder> without radius']),
    ('<geometry><cylinder radius="0.1"/></geometry>', ['<cylinder> without length']),
    ('<geometry><sphere/></geometry>', ['<sphere> without radius']),
    ('<geometry><box/></geometry>', ['<box> without size']),
    ('<geometry><mesh/></geometry>', ['<mesh> without filename']),
    ('<geometry><mesh filename="../arms/gone.stl"/></geometry>',
     ['is the mesh ../arms/gone.stl, which is no file']),
    (f'<geometry><mesh filename="{"a" * 5000}"/></geometry>', ['no file']),
    ('<geometry><mesh filename="package://nowhere/a.stl"/></geometry>',
     ['package://nowhere/a.stl', 'no file']),
])
def test_a_collision_needs_a_whole_geometry(copy, geometry, words):
    whole = '<geometry><cylinder radius="0.02" length="0.3"/></geometry>\n    </collision>'
    spec = copy(urdf=[(whole, f'{geometry}</collision>')])
    with pytest.raises(RobotError) as caught:
        build_scene(spec, EMPTY)
    for word in ('robot.urdf, line 85', 'lower_link', *words):
        assert word in str(caught.value)


@pytest.mark.parametrize('text', ['v 0 0 0', '<a/>'])
def test_meshes_that_cannot_be_read(copy, tmp_path, text):
    (tmp_path / 'arm.dae').write_text(text)
    spec = copy(urdf=[('<cylinder radius="0.02" length="0.3"/></geometry>\n    </collision>',
                       '<mesh filename="arm.dae"/></geometry></collision>')])
    with pytest.raises(RobotError, match='robot.urdf: the mesh .*arm.dae of link lower_link '
                                         r'cannot be read.*[^.]\.$'):
        build_scene(spec, EMPTY)


@pytest.mark.parametrize('encoding', ['latin-1', 'utf-16'])
def test_a_urdf_is_utf_8(copy, encoding):
    spec = copy()
    spec.urdf_path.write_bytes(spec.urdf_path.read_text().replace('steel', 'stähl')
                               .encode(encoding))
    with pytest.raises(RobotError, match='robot.urdf: cannot be read: not UTF-8'):
        build_scene(spec, EMPTY)


def test_what_is_no_element_is_skipped(copy, caplog):
    with caplog.at_level(logging.WARNING):
        read_urdf(copy(urdf=[('<link name="base">', '<link name="base"><!-- a --><?b c?>'),
                             ('</robot>', '<!-- a --><?b c?></robot>')]))
    assert not caplog.records


def test_a_joint_may_have_any_name(copy):
    spec = copy(urdf=[('"elbow"', '"Ben\'s elbow"')], spec=[('  elbow:', "  Ben's elbow:")])
    assert build_scene(spec, EMPTY).layout.joint_names == ('shoulder', "Ben's elbow")


def test_spec_and_urdf_have_to_agree(copy):
    with pytest.raises(RobotError, match='joint knee is no moving joint'):
        build_scene(copy(spec=[('  elbow:', '  knee:')]), EMPTY)
    text = copy().source.read_text()
    first, second = text.index('  shoulder:'), text.index('  elbow:')
    end = text.index('\ncontact:')
    swapped = copy(spec=[(text[first:end], text[second:end] + text[first:second])])
    with pytest.raises(RobotError, match='order of the URDF: shoulder, elbow'):
        build_scene(swapped, EMPTY)


def test_missing_urdf(copy):
    for name in ('gone.urdf', 'a' * 5000, '"a\\0b"', '.'):
        with pytest.raises(RobotError, match='robot.yaml: urdf: .* is no file; give the path'):
            build_scene(copy(spec=[('robot.urdf', name)]), EMPTY)


def test_xacro(copy, tmp_path):
    pytest.importorskip('xacro')
    spec = copy(
        urdf=[('<robot name="double_pendulum">',
               '<robot name="double_pendulum" xmlns:xacro="http://www.ros.org/wiki/xacro">'
               '<xacro:property name="effort" value="${2 * 2.5}"/>'),
              ('effort="6.0" velocity="40.0"', 'effort="${effort}" velocity="40.0"')],
        spec=[('robot.urdf', 'robot.urdf.xacro')])
    shutil.move(tmp_path / 'robot.urdf', tmp_path / 'robot.urdf.xacro')
    assert build_scene(spec, EMPTY).layout.effort_limits == pytest.approx([5.0, 6.0])
    (tmp_path / 'robot.urdf.xacro').write_text(
        '<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:nothing/></robot>')
    with pytest.raises(RobotError, match='robot.urdf.xacro: xacro failed'):
        build_scene(spec, EMPTY)
