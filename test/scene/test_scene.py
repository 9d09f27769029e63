# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The scene builder: where things lie, the same in every world."""

import newton
import numpy as np
import pytest

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.world import World


@pytest.fixture(scope='module')
def scene():
    return build_scene(RobotSpec.load('double_pendulum'), load_world('obstacles'), 3)


def test_strides(scene):
    model, moving = scene.model, sum(not o.static for o in scene.world.obstacles)
    assert model.body_count == 3 * scene.body_stride == 3 * (scene.num_links + moving)
    assert model.joint_coord_count == 3 * scene.q_stride == 3 * (2 + 7 * moving)
    assert model.joint_dof_count == 3 * scene.qd_stride
    assert model.shape_count == 3 * scene.shape_stride
    labels = [label.removeprefix('robot/') for label in model.body_label]
    assert labels == list(scene.body_names) * 3


def test_static_shapes_belong_to_their_world(scene):
    worlds = scene.model.shape_world.numpy()
    bodies = scene.model.shape_body.numpy()
    fixed = [o.name for o in scene.world.obstacles if o.static]
    assert len(scene.static_shapes) == 3 and len(fixed) > 1
    for world, shapes in enumerate(scene.static_shapes):
        assert (worlds[shapes] == world).all() and (bodies[shapes] == -1).all()
        assert [scene.model.shape_label[s] for s in shapes] == fixed
    assert [scene.model.shape_label[s] for s in scene.ground_shapes] == ['ground'] * 3
    assert worlds[scene.ground_shapes].tolist() == [0, 1, 2]


def test_contacts_of_the_robot_are_the_same_with_everything(scene):
    """Teacher and scene are one model: the robot's friction holds whatever it touches."""
    single = build_scene(scene.spec, scene.world)
    model = mujoco_solver(single.model, use_mujoco_cpu=True).mj_model
    robot = model.geom_priority == 1
    assert robot.sum() == 2
    assert model.geom_friction[robot, 0] == pytest.approx([0.6, 0.6])
    assert model.geom_solref == pytest.approx(np.tile([0.01, 1.0], (model.ngeom, 1)))


def test_robot_starts_at_its_initial_positions(scene):
    joints = {'shoulder': scene.spec.joints['shoulder'],
              'elbow': scene.spec.joints['elbow'].model_copy(update={'initial': 0.7})}
    spec = scene.spec.model_copy(update={'joints': joints})
    moved = build_scene(spec, scene.world, 2)
    joint_q = moved.model.joint_q.numpy().reshape(2, -1)
    assert joint_q[:, :2] == pytest.approx(np.array([[0.0, 0.7]] * 2))
    assert joint_q[:, 2:] == pytest.approx(
        scene.model.joint_q.numpy().reshape(3, -1)[:2, 2:])


def test_base_pose_moves_the_robot():
    spec = RobotSpec.load('double_pendulum')
    base = spec.base.model_copy(update={'pose': (1.0, 2.0, 3.0, 0.0, np.pi / 2, 0.0)})
    scene = build_scene(spec.model_copy(update={'base': base}), World('nothing'))
    state = scene.model.state()
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    lower = state.body_q.numpy()[2]
    assert lower[:3] == pytest.approx([0.8, 2.0, 3.0], abs=1e-6)


def test_mistakes(scene):
    with pytest.raises(ValueError, match='at least one world'):
        build_scene(scene.spec, scene.world, 0)
    with pytest.raises(ValueError, match='no plane named ground'):
        build_scene(scene.spec, World('nothing')).set_ground(np.zeros((1, 4)))
