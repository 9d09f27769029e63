# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Ball, floating, following and passive joints, from the URDF to the engine."""

import logging

import mujoco
import newton
import numpy as np
import pytest

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.robot.urdf import fingerprint, read_urdf
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.world import World

EMPTY = World('nothing', gravity=(0.0, 0.0, -9.81))
INERTIAL = ('<inertial><origin xyz="0 0 -0.1"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>')
BOX = '<collision><geometry><box size="0.1 0.1 0.2"/></geometry></collision>'


@pytest.fixture
def robot(tmp_path):
    """Make a RobotSpec of links and joints; a joint is name, type, parent, child, content."""
    def make(links, joints, listed, base='fixed', contact='{}'):
        bodies = ''.join(f'<link name="{name}">{content}</link>\n'
                         for name, content in links.items())
        ties = ''.join(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'{content}</joint>\n' for name, kind, parent, child, content in joints)
        (tmp_path / 'robot.urdf').write_text(f'<robot name="robot">\n{bodies}{ties}</robot>\n')
        (tmp_path / 'robot.yaml').write_text(
            f'name: robot\nurdf: robot.urdf\nbase: {{type: {base}, pose: [0.0, 0.0, 2.0, 0.0, '
            f'0.0, 0.0]}}\ndt: 0.01\njoints: {listed}\ncontact: {contact}\n')
        return RobotSpec.load(tmp_path / 'robot.yaml')
    return make


def mujoco_model(scene):
    return mujoco_solver(scene.model, use_mujoco_cpu=True).mj_model


@pytest.mark.parametrize('name', ['ball', 'spherical'])
def test_a_ball_joint(robot, name):
    spec = robot(
        {'base': '', 'arm': INERTIAL, 'tip': INERTIAL},
        [('shoulder', name, 'base', 'arm',
          '<limit effort="5"/><dynamics damping="0.3" friction="0.2"/>'),
         ('wrist', 'continuous', 'arm', 'tip',
          '<axis xyz="0 1 0"/><origin xyz="0 0 -0.2"/><limit effort="1"/>')],
        '{shoulder: {armature: 0.02}, wrist: {armature: 0.01, initial: 0.5}}')
    scene = build_scene(spec, EMPTY)
    layout = scene.layout
    assert [joint.type for joint in layout.joints] == ['ball', 'continuous']
    assert (layout.nq, layout.nqd) == (5, 4)
    assert layout.effort_limits.tolist() == [5.0, 5.0, 5.0, 1.0]
    assert layout.joints[0].upper == 1e10
    assert scene.model.joint_q.numpy() == pytest.approx([0, 0, 0, 1, 0.5])
    assert scene.model.joint_armature.numpy() == pytest.approx([0.02] * 3 + [0.01])
    assert scene.model.joint_damping.numpy() == pytest.approx([0.3] * 3 + [0.0])
    assert scene.model.joint_friction.numpy() == pytest.approx([0.2] * 3 + [0.0])
    model = mujoco_model(scene)
    assert model.jnt_type.tolist() == [mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_HINGE]
    assert model.dof_damping == pytest.approx([0.3] * 3 + [0.0])
    assert model.dof_frictionloss == pytest.approx([0.2] * 3 + [0.0])
    assert model.nu == 0


def test_both_names_of_a_ball_joint_are_one_robot(robot):
    def tree(name):
        return fingerprint(read_urdf(robot(
            {'base': '', 'arm': INERTIAL},
            [('shoulder', name, 'base', 'arm', '<limit effort="5"/>')], '{shoulder: {}}')))
    assert tree('ball') == tree('spherical') != tree('continuous')


def test_a_ball_joint_starts_at_zero(robot):
    spec = robot({'base': '', 'arm': INERTIAL},
                 [('shoulder', 'ball', 'base', 'arm', '<limit effort="5"/>')],
                 '{shoulder: {initial: 0.1}}')
    with pytest.raises(RobotError, match='joint shoulder is a ball joint, .* leave out initial'):
        build_scene(spec, EMPTY)


def test_a_floating_joint_is_a_floating_base(robot, caplog):
    links = {'world': '', 'trunk': INERTIAL + BOX, 'leg': INERTIAL}
    joints = [('root', 'floating', 'world', 'trunk', '<origin xyz="0 0 1"/>'),
              ('hip', 'continuous', 'trunk', 'leg', '<limit effort="3"/>')]
    spec = robot(links, joints, '{hip: {}}', base='floating')
    scene = build_scene(spec, EMPTY)
    assert scene.body_names == ('trunk', 'leg')
    assert scene.layout.floating and scene.layout.joint_names == ('hip',)
    assert scene.layout.base_com == pytest.approx((0.0, 0.0, -0.1))
    assert scene.model.joint_q.numpy()[:3] == pytest.approx([0, 0, 2])
    assert any('joint root has no effect' in r.getMessage() for r in caplog.records)
    with pytest.raises(RobotError, match='base.type is fixed, but a floating joint .*robot.urdf'):
        build_scene(robot(links, joints, '{hip: {}}'), EMPTY)
    links['world'] = BOX
    with pytest.raises(RobotError, match='joint root is floating; only a base can float'):
        build_scene(robot(links, joints, '{hip: {}}', base='floating'), EMPTY)


def test_a_base_that_floats_needs_mass(robot):
    links = {'trunk': '', 'shell': INERTIAL, 'leg': INERTIAL}
    joints = [('weld', 'fixed', 'trunk', 'shell', ''),
              ('hip', 'continuous', 'trunk', 'leg', '<limit effort="3"/>')]
    scene = build_scene(robot(links, joints, '{hip: {}}', base='floating'), EMPTY)
    assert mujoco_model(scene).body_mass.sum() == pytest.approx(2.0)
    with pytest.raises(RobotError, match='the base, link trunk, is to float but has no mass'):
        build_scene(robot(links | {'shell': ''}, joints, '{hip: {}}', base='floating'), EMPTY)


GRIPPER = {'palm': '', 'left': INERTIAL, 'right': INERTIAL, 'tip': INERTIAL}
SLIDE = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="20" velocity="1"/>'
FINGERS = [('left_slide', 'prismatic', 'palm', 'left', SLIDE),
           ('right_slide', 'prismatic', 'palm', 'right',
            SLIDE + '<mimic joint="left_slide" multiplier="-0.5" offset="0.1"/>'),
           ('turn', 'revolute', 'palm', 'tip',
            '<limit lower="-1" upper="2"/>'
            '<mimic joint="right_slide" multiplier="2" offset="0.3"/>')]
LISTED = '{left_slide: {initial: 0.2}, right_slide: {}, turn: {}}'


def test_joints_that_follow(robot):
    scene = build_scene(robot(GRIPPER, FINGERS, LISTED), EMPTY)
    layout = scene.layout
    assert [joint.mimic and joint.mimic.leader for joint in layout.joints] == [
        None, 'left_slide', 'left_slide']
    assert layout.mimic_coeffs == pytest.approx(np.array([[-0.5, 0.1], [-1.0, 0.5]]))
    assert layout.mimic_q.tolist() == layout.mimic_qd.tolist() == [[1, 0], [2, 0]]
    assert layout.effort_limits.tolist() == [20.0, 0.0, 0.0]
    assert scene.model.joint_q.numpy() == pytest.approx([0.2, 0.0, 0.3])
    assert RobotLayout.from_dict(layout.to_dict()) == layout
    model = mujoco_model(scene)
    assert model.eq_type.tolist() == [mujoco.mjtEq.mjEQ_JOINT] * 2
    assert model.eq_data[:, :2] == pytest.approx(np.array([[0.1, -0.5], [0.5, -1.0]]))


def test_joints_follow_in_motion(robot):
    scene = build_scene(robot(GRIPPER, FINGERS, LISTED), EMPTY)
    model = mujoco_model(scene)
    data = mujoco.MjData(model)
    model.opt.timestep = 0.0025
    data.qpos[:] = scene.model.joint_q.numpy()
    data.qfrc_applied[0] = 5.0
    for _ in range(40):
        mujoco.mj_step(model, data)
    assert data.qpos[0] > 0.21
    assert model.eq_solref == pytest.approx(np.array([[0.01, 1.0]] * 2))
    assert data.qpos[1:] == pytest.approx([0.1 - 0.5 * data.qpos[0], 0.5 - data.qpos[0]], abs=1e-4)


def test_who_follows_is_part_of_the_robot(robot):
    free = [(*FINGERS[0],), (*FINGERS[1][:4], SLIDE), FINGERS[2]]
    layouts = [build_scene(robot(GRIPPER, joints, LISTED), EMPTY).layout
               for joints in (FINGERS, free)]
    assert layouts[0].fingerprint != layouts[1].fingerprint
    assert any('joint right_slide, mimic' in line for line in layouts[0].differences(layouts[1]))


def test_a_follower_takes_no_effort(robot):
    spec = robot(GRIPPER, FINGERS, LISTED.replace('turn: {}', 'turn: {effort_limit: 1.0}'))
    with pytest.raises(RobotError, match='joint turn follows left_slide and takes no effort'):
        build_scene(spec, EMPTY)


def test_a_joint_without_motor():
    scene = build_scene(RobotSpec.load('cartpole'), EMPTY)
    assert scene.layout.effort_limits.tolist() == [200.0, 0.0]
    assert scene.layout.joint_names == ('slider', 'hinge')
    assert mujoco_model(scene).nv == 2


def test_limits_without_effect_are_warned_of(robot, caplog):
    limit = '<limit lower="-1" upper="1" effort="2"/>'
    spec = robot({'base': '', 'arm': INERTIAL},
                 [('turn', 'continuous', 'base', 'arm', limit)], '{turn: {initial: 3.0}}')
    with caplog.at_level(logging.WARNING):
        scene = build_scene(spec, EMPTY)
    assert any('no effect on joint turn (line 4)' in r.getMessage() for r in caplog.records)
    assert not mujoco_model(scene).jnt_limited.any()


def test_an_end_stop_holds(robot):
    """Newton's own stops let a heavy joint through by far."""
    spec = robot({'base': '', 'cart': INERTIAL},
                 [('slide', 'prismatic', 'base', 'cart', SLIDE)], '{slide: {}}')
    scene = build_scene(spec, EMPTY)
    model = mujoco_model(scene)
    model.opt.timestep = 0.0025
    data = mujoco.MjData(model)
    data.qvel[:] = 5.0
    farthest = 0.0
    for _ in range(400):
        mujoco.mj_step(model, data)
        farthest = max(farthest, data.qpos[0])
    assert 1.0 < farthest < 1.03 and data.qpos[0] < 1.001


def test_state_of_a_ball_joint_reaches_the_links(robot):
    spec = robot({'base': '', 'arm': INERTIAL},
                 [('shoulder', 'ball', 'base', 'arm', '<limit effort="5"/>')], '{shoulder: {}}')
    scene = build_scene(spec, EMPTY)
    state = scene.model.state()
    turn = np.array([0.0, np.sin(0.5), 0.0, np.cos(0.5)], np.float32)
    state.joint_q.assign(turn)
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    assert state.body_q.numpy()[1] == pytest.approx([0, 0, 2, *turn], abs=1e-6)
