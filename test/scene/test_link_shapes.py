# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Warnings of what looks wrong with the links of a robot, and where its meshes are found."""

import logging

import numpy as np
import pytest
import trimesh

from nerd_ros.scene import warp_messages
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import World

EMPTY = World('nothing')
URDF = """
<robot name="arm"><link name="base"/>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>
  <limit effort="1"/></joint>
<link name="arm">
  <inertial><origin xyz="{com}"/><mass value="2"/>
    <inertia ixx="{xx}" iyy="{yy}" izz="{zz}"/></inertial>
  {shape}
</link></robot>
"""
TIED = '</link><joint name="tie" type="fixed"><parent link="arm"/><child link="eye"/></joint>'
BOX = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'


@pytest.fixture
def messages(tmp_path, caplog):
    """Build an arm and return what is warned of."""
    def build(com='0 0 0', moments=(0.013,) * 3, shape=BOX, folder=tmp_path):
        folder.mkdir(parents=True, exist_ok=True)
        xx, yy, zz = moments
        (folder / 'arm.urdf').write_text(URDF.format(com=com, xx=xx, yy=yy, zz=zz, shape=shape))
        (folder / 'arm.yaml').write_text('name: arm\nurdf: arm.urdf\ndt: 0.01\n'
                                         'joints: {hinge: {}}\n')
        with caplog.at_level(logging.WARNING):
            build_scene(RobotSpec.load(folder / 'arm.yaml'), EMPTY)
        return [record.getMessage() for record in caplog.records
                if record.name != warp_messages.__name__]
    return build


def test_an_inertia_that_fits_is_not_warned_of(messages):
    assert messages() == []
    assert messages(com='0.1 0.1 0.1', moments=(0.05,) * 3) == []


def test_an_inertia_that_no_body_has_is_raised_where_it_is_nearly_one(messages, tmp_path):
    message, = messages(moments=(0.013, 0.013, 0.03))
    assert 'line 7: no body has the inertia given for link arm' in message
    assert 'raised by 0.004' in message
    model = build_scene(RobotSpec.load(tmp_path / 'arm.yaml'), EMPTY).model
    moments = np.linalg.eigvalsh(model.body_inertia.numpy()[1])
    assert moments == pytest.approx([0.017, 0.017, 0.034], rel=1e-3)


def test_a_frame_without_weight_is_no_body(messages):
    frame = (TIED + '<link name="eye"><inertial><mass value="1e-9"/><inertia ixx="0"/></inertial>')
    assert messages(shape=BOX + frame) == []


def test_a_light_link_may_have_any_inertia(messages):
    camera = (TIED + '<link name="eye"><inertial><mass value="1e-3"/>'
              '<inertia ixx="1e-6" iyy="1e-9" izz="1e-9"/></inertial>')
    message, = messages(shape=BOX + camera)
    assert 'no body has the inertia given for link eye' in message
    with pytest.raises(RobotError, match='inertia given for link eye: its principal moments'):
        messages(shape=BOX + camera.replace('1e-3', '1.0'))


@pytest.mark.parametrize('moment, word', [(1.3, 'large'), (1.3e-5, 'small')])
def test_an_inertia_in_other_units(messages, moment, word):
    message, = messages(moments=(moment,) * 3)
    assert 'arm.urdf: link arm, 2 kg' in message and word in message and 'units' in message


def test_a_centre_of_mass_far_away(messages):
    message, = messages(com='0 0 5')
    assert 'centre of mass of link arm lies 5 m' in message and '<origin>' in message


def test_links_that_nothing_touches(messages):
    message, = messages(shape=BOX.replace('collision', 'visual'))
    assert 'nothing touches link arm' in message
    assert len(messages(shape='')) == 1   # a mere frame is not drawn either


@pytest.mark.parametrize('folder, uri', [
    ('share/my_robot/urdf', 'package://my_robot/meshes/part.stl'),
    ('share/tools/urdf', 'package://my_robot/meshes/part.stl'),
    ('share/my_robot/urdf', '../meshes/part.stl'),
    ('share/my_robot/robots/arm/urdf', 'package://my_robot/meshes/part%2Estl'),
])
def test_meshes_of_a_package_that_the_urdf_lies_in_or_beside(messages, tmp_path, folder, uri):
    meshes = tmp_path / 'share' / 'my_robot' / 'meshes'
    meshes.mkdir(parents=True)
    trimesh.creation.box((0.2, 0.2, 0.2)).export(meshes / 'part.stl')
    shape = f'<collision><geometry><mesh filename="{uri}"/></geometry></collision>'
    assert messages(shape=shape, folder=tmp_path / folder) == []


def test_meshes_of_a_sourced_workspace(messages, tmp_path, monkeypatch):
    meshes = tmp_path / 'install' / 'share' / 'my_robot'
    meshes.mkdir(parents=True)
    trimesh.creation.box((0.2, 0.2, 0.2)).export(meshes / 'part.stl')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path / 'install'))
    shape = ('<collision><geometry><mesh filename="package://my_robot/part.stl"/></geometry>'
             '</collision>')
    assert messages(shape=shape, folder=tmp_path / 'elsewhere') == []


def test_a_link_whose_picture_is_missing_is_not_drawn(messages):
    gone = '<visual><geometry><mesh filename="gone.dae"/></geometry></visual>'
    message, = messages(shape=BOX + gone)
    assert 'link arm is not drawn' in message and 'gone.dae' in message


def test_a_scene_that_nobody_looks_at(tmp_path, messages):
    """A picture that cannot be read does not matter then."""
    (tmp_path / 'broken.dae').write_text('<a/>')
    broken = '<visual><geometry><mesh filename="broken.dae"/></geometry></visual>'
    with pytest.raises(RobotError, match='broken.dae of link arm cannot be read'):
        messages(shape=BOX + broken)
    scene = build_scene(RobotSpec.load(tmp_path / 'arm.yaml'), EMPTY, visuals=False)
    assert scene.shape_stride == 1 and scene.layout.num_slots == 8
