# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""SDF worlds: what is read, what is warned of, and that every mistake is one sentence."""

import logging
import math

import numpy as np
import pytest

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.world import plane_pose, WorldError

BOX = """
<model name="crate">
  <pose>1 2 3 0 0 0</pose>
  <link name="link">
    <inertial><mass>2</mass></inertial>
    <collision name="c"><geometry><box><size>1 2 3</size></box></geometry></collision>
  </link>
</model>
"""


@pytest.fixture
def read(tmp_path):
    """Return the world of some text inside of <world>."""
    def from_text(text, whole=False):
        path = tmp_path / 'my.sdf'
        path.write_text(text if whole else
                        f'<sdf version="1.9"><world name="my">{text}</world></sdf>')
        return load_world(path)
    return from_text


@pytest.mark.parametrize('name', ['empty', 'obstacles'])
def test_shipped_worlds_are_free_of_warnings(name, caplog):
    with caplog.at_level(logging.WARNING):
        world = load_world(name)
    assert not caplog.records
    assert world.obstacles[0].name == 'ground' and world.obstacles[0].shape == 'plane'


def test_obstacles_of_the_shipped_world():
    world = load_world('obstacles')
    moving = [o for o in world.obstacles if not o.static]
    masses = [o.mass for o in moving]
    assert min(masses) == 0.2 and max(masses) == 2.0
    assert {o.shape for o in moving} == {'box', 'sphere'}
    scene = build_scene(RobotSpec.load('double_pendulum'), world, 2)
    built = scene.model.body_mass.numpy().reshape(2, -1)[:, scene.num_links:]
    assert built == pytest.approx(np.tile(masses, (2, 1)))
    assert scene.body_names[scene.num_links:] == tuple(o.name for o in moving)


def test_box(read):
    crate, = read(BOX).obstacles
    assert (crate.name, crate.shape, crate.size) == ('crate', 'box', (1.0, 2.0, 3.0))
    assert crate.pose == pytest.approx((1, 2, 3, 0, 0, 0, 1))
    assert not crate.static and crate.mass == 2.0 and crate.friction == 1.0
    assert np.diag(crate.inertia) == pytest.approx([2 / 12 * 13, 2 / 12 * 10, 2 / 12 * 5])


def test_poses_of_model_link_and_collision_add_up(read):
    text = BOX.replace('1 2 3 0 0 0</pose>', '1 0 0 0 0 1.5707963</pose>') \
              .replace('<link name="link">', '<link name="link"><pose>1 0 0 0 0 0</pose>') \
              .replace('<collision name="c">',
                       '<collision name="c"><pose degrees="true">0 0 1 0 0 90</pose>')
    assert read(text).obstacles[0].pose == pytest.approx((1, 1, 1, 0, 0, 1, 0), abs=1e-6)


def test_inertia_is_turned_into_the_frame_of_the_shape(read):
    text = BOX.replace(
        '<mass>2</mass>',
        '<mass>2</mass><pose>0.1 0 0 0 0 0</pose>'
        '<inertia><ixx>1</ixx><iyy>2</iyy><izz>2.5</izz></inertia>').replace(
        '<collision name="c">', '<collision name="c"><pose degrees="1">0 0 0 0 0 90</pose>')
    crate, = read(text).obstacles
    assert crate.com == pytest.approx((0.0, -0.1, 0.0), abs=1e-6)
    assert np.array(crate.inertia) == pytest.approx(np.diag([2.0, 1.0, 2.5]), abs=1e-6)


def test_plane_sphere_friction_and_gravity(read):
    world = read("""
        <gravity>0 0 -1.62</gravity>
        <model name="slope"><static>1</static><link name="l"><collision name="c">
          <geometry><plane><normal>1 0 0</normal></plane></geometry>
          <surface><friction><ode><mu>0.3</mu></ode></friction></surface>
        </collision></link></model>
        <model name="ball"><link name="l"><inertial><mass>5</mass></inertial>
          <collision name="c"><geometry><sphere><radius>0.2</radius></sphere></geometry>
          </collision></link></model>""")
    slope, ball = world.obstacles
    assert world.gravity == (0.0, 0.0, -1.62)
    assert slope.static and slope.friction == 0.3
    assert slope.pose == pytest.approx(plane_pose((1, 0, 0), 0.0), abs=1e-6)
    assert ball.size == (0.2,) and ball.inertia[0][0] == pytest.approx(0.4 * 5 * 0.04)
    scene = build_scene(RobotSpec.load('double_pendulum'), world)
    assert scene.model.gravity.numpy()[0] == pytest.approx([0, 0, -1.62])


def test_static_models_may_have_many_collisions(read):
    text = BOX.replace('<pose>', '<static>true</static><pose>').replace(
        '</link>', '<collision name="d"><geometry><sphere><radius>1</radius></sphere></geometry>'
                   '</collision></link>')
    assert [o.name for o in read(text).obstacles] == ['crate/c', 'crate/d']


@pytest.mark.parametrize('extra, name', [
    ('<light name="sun"/>', 'light'),
    ('<physics type="ode"/>', 'physics'),
    ('<include><uri>model://x</uri></include>', 'include'),
    (BOX.replace('1 2 3 0', '1 2 3 0', 1).replace('<pose>', '<pose relative_to="a">'),
     'relative_to'),
    (BOX.replace('</link>', '<sensor name="s" type="imu"/></link>'), 'sensor'),
    (BOX.replace('</model>', '<joint name="j" type="fixed"/></model>'), 'joint'),
    (BOX.replace('</link>', '<visual name="v"><geometry><mesh><uri>a</uri></mesh>'
                            '</geometry></visual></link>'), ''),
    (BOX.replace('</link>', '<visual name="v"><geometry><sphere><radius>1</radius></sphere>'
                            '</geometry></visual></link>'), 'form of <visual> v'),
    (BOX.replace('<pose>', '<static>true</static><pose>'), '<inertial> of crate'),
    (BOX.replace('<mass>2', '<pose>1 0 0 0 0 0</pose><mass>2'), '<pose> in <inertial>'),
])
def test_what_has_no_effect_is_warned_of_by_name_and_line(read, extra, name, caplog):
    with caplog.at_level(logging.WARNING):
        read(extra)
    found = [r.getMessage() for r in caplog.records if name in r.getMessage()]
    assert len(found) == 1 and 'my.sdf, line' in found[0]


def test_visual_like_the_collision_is_silent(read, caplog):
    with caplog.at_level(logging.WARNING):
        read(BOX.replace('</link>', '<visual name="v"><geometry><box><size>1 2 3</size></box>'
                                    '</geometry></visual></link>'))
    assert not caplog.records


def visual(name, color, geometry='<box><size>1 2 3</size></box>'):
    return (f'<visual name="{name}"><geometry>{geometry}</geometry><material><diffuse>{color}'
            '</diffuse></material></visual>')


def test_each_collision_has_the_colour_of_its_visual(read, caplog):
    ball = '<sphere><radius>1</radius></sphere>'
    text = BOX.replace('<pose>', '<static>true</static><pose>').replace(
        '<inertial><mass>2</mass></inertial>', '').replace(
        '</link>', f'<collision name="d"><geometry>{ball}</geometry></collision>'
        f'<collision name="e"><geometry>{ball}</geometry><pose>9 0 0 0 0 0</pose></collision>'
        + visual('red', '1 0 0 1') + visual('green', '0 1 0', ball) + '</link>')
    with caplog.at_level(logging.WARNING):
        assert [o.color for o in read(text).obstacles] == [(1, 0, 0), (0, 1, 0), (1, 0, 0)]
    assert not caplog.records


def test_further_visuals_are_warned_of(read, caplog):
    shapes = [visual('body', '1 0 0', '<mesh/>'), visual('logo', '0 1 0', '<mesh/>')]
    crate, = read(BOX.replace('</link>', '\n'.join(shapes) + '</link>')).obstacles
    assert crate.color == (1, 0, 0)
    assert ['form' in m and 'body' in m for m in caplog.messages] == [True, False]
    assert '<visual> logo has no effect' in caplog.messages[1]
    caplog.clear()
    crate, = read(BOX.replace('</link>', ''.join([*shapes[1:], visual('hull', '0 0 1')])
                              + '</link>')).obstacles
    assert crate.color == (0, 0, 1)
    assert len(caplog.messages) == 1 and '<visual> logo has no effect' in caplog.messages[0]


@pytest.mark.parametrize('text, words', [
    (BOX.replace('<inertial><mass>2</mass></inertial>', ''), ['crate', '<mass>']),
    (BOX.replace('<mass>2', '<mass>0'), ['mass', 'positive']),
    (BOX.replace('<size>1 2 3', '<size>1 -2 3'), ['size', 'positive']),
    (BOX.replace('<size>1 2 3', '<size>1 2'), ['size', '3 finite']),
    (BOX.replace('1 2 3 0 0 0', '1 2 nan 0 0 0'), ['pose', 'finite']),
    (BOX.replace('1 2 3 0 0 0', 'here'), ['pose', 'here']),
    (BOX + BOX, ['two models', 'crate']),
    (BOX.replace('<box><size>1 2 3</size></box>', '<plane/>'), ['plane', 'static']),
    (BOX.replace('<box><size>1 2 3</size></box>', '<mesh/>'), ['crate', '<mesh>']),
    (BOX.replace('<box><size>1 2 3</size></box>', '<box/>'), ['<box>', '<size>']),
    (BOX.replace('name="crate"', ''), ['<model>', 'no name']),
    (BOX.replace('</link>', '<collision name="d"><geometry><box><size>1 1 1</size></box>'
                            '</geometry></collision></link>'), ['crate', '2 collisions']),
    ('<model name="a"><static>maybe</static></model>', ['static', 'maybe']),
    ('<model name="a"><static>true</static></model>', ['a', 'no <link>']),
    ('<model name="a"><static>true</static><link name="l"/></model>', ['no <collision>']),
    ('<gravity>down</gravity>', ['gravity', 'down']),
    ('<gravity>0 0 1e300</gravity>', ['gravity', 'at most 1e+06']),
    (BOX.replace('1 2 3 0 0 0', '1 2 1e300 0 0 0'), ['pose', 'at most 1e+06']),
    (BOX.replace('<mass>2', '<mass>1e300'), ['mass', 'at most 1e+06']),
    (BOX.replace('<mass>2', '<mass>1e-300'), ['mass', 'at least 1e-06']),
    (BOX.replace('<size>1 2 3', '<size>1e300 1 1'), ['size', 'at most 1e+06']),
    (BOX.replace('<size>1 2 3', '<size>1e-60 1 1'), ['size', 'at least 1e-06']),
    (BOX.replace('<size>1 2 3', '<size>1e-5 1e-5 1e-5'), ['crate', 'at least 1e-10']),
    (BOX.replace('"crate"', '"world"'), ['model', 'world', 'rename']),
    (BOX.replace('"crate"', '"robot/base"'), ['model', 'robot/base', 'rename']),
])
def test_mistakes_are_named(read, text, words):
    with pytest.raises(WorldError) as caught:
        read(text)
    message = str(caught.value)
    assert 'my.sdf, line' in message and '\n' not in message
    for word in words:
        assert word in message


def test_a_mistake_is_told_without_warnings_that_it_causes(read, caplog):
    with caplog.at_level(logging.WARNING), pytest.raises(WorldError, match='<cylinder>'):
        read(BOX.replace('<pose>', '<static>true</static><pose>')
             + BOX.replace('crate', 'drum').replace(
                 '<box><size>1 2 3</size></box>',
                 '<cylinder><radius>1</radius><length>1</length></cylinder>'))
    assert not caplog.records


def test_what_is_no_element_is_skipped(read, caplog):
    with caplog.at_level(logging.WARNING):
        world = read(BOX.replace('<mass>2', '<!-- a --><?b c?><mass><!-- a -->2<?b c?>'))
    assert world.obstacles[0].mass == 2.0 and not caplog.records


def test_a_world_is_utf_8(tmp_path):
    path = tmp_path / 'my.sdf'
    path.write_bytes('<sdf version="1.9"><world name="ä"/></sdf>'.encode('latin-1'))
    with pytest.raises(WorldError, match='my.sdf: cannot be read: not UTF-8'):
        load_world(path)


@pytest.mark.parametrize('text', ['<sdf><world name="a">', '', 'text', '<sdf version="1.9"/>',
                                  '<robot name="a"/>',
                                  '<!DOCTYPE sdf [<!ENTITY a "b">]><sdf><world name="a"/></sdf>'])
def test_broken_files(read, text):
    with pytest.raises(WorldError, match='my.sdf'):
        read(text, whole=True)


def test_missing_worlds():
    with pytest.raises(WorldError, match='nowhere.sdf'):
        load_world('/tmp/nowhere.sdf')
    with pytest.raises(WorldError, match='obstacles'):
        load_world('no_such_world')


@pytest.mark.parametrize('angle', [0.0, 1.0, math.pi])
def test_plane_pose(angle):
    normal = np.array([math.sin(angle), 0.0, math.cos(angle)])
    x, y, z, qx, qy, qz, qw = plane_pose(normal, 0.5)
    assert (x, y, z) == pytest.approx(tuple(0.5 * normal))
    up = (2 * (qx * qz + qw * qy), 2 * (qy * qz - qw * qx), 1 - 2 * (qx * qx + qy * qy))
    assert up == pytest.approx(tuple(normal), abs=1e-6)
