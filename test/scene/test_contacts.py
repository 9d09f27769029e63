# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Contact slots against hand-made figures and MuJoCo's own distances."""

import mujoco
import newton
import numpy as np
import pytest
import warp as wp

from nerd_ros.scene.contacts import ContactSlots
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.world import ground_plane, Obstacle, World

RADIUS = 0.02
FACING = (0.0, 0.0, 0.0, 1.0)


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


def slots_of(spec, obstacles, joint_q, planes=None):
    """Values (W, S, 7) with joint_q (W, 2)."""
    joint_q = np.atleast_2d(np.array(joint_q, np.float32))
    scene = build_scene(spec, World('test', obstacles=tuple(obstacles)), len(joint_q))
    if planes is not None:
        scene.set_ground(planes)
    state = scene.model.state()
    state.joint_q.assign(joint_q.reshape(-1))
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    slots = ContactSlots(scene)
    slots.update(state)
    return slots.values.numpy()


def tip(values):
    return values[:, -1]


def test_ground_under_the_tip(spec):
    point, normal, distance = np.split(
        tip(slots_of(spec, [ground_plane(offset=0.10)], [0.0, 0.0]))[0], [3, 6])
    assert point == pytest.approx([0.0, 0.0, 0.13], abs=1e-6)
    assert normal == pytest.approx([0.0, 0.0, 1.0])
    assert distance == pytest.approx(0.03, abs=1e-6)


def test_far_slots_see_nothing(spec):
    values = slots_of(spec, [ground_plane(offset=0.10)], [0.0, 0.0])[0]
    assert np.array_equal(values[:-1, 3:6], np.zeros((6, 3)))
    assert values[:-1, 6] == pytest.approx([0.1] * 6)
    assert values[0, :3] == pytest.approx([0.0, 0.0, 0.65])


def test_a_world_without_static_shapes(spec):
    assert np.array_equal(slots_of(spec, [], np.zeros((2, 2)))[..., 6],
                          np.full((2, 7), np.float32(0.1)))


def test_the_threshold_has_no_edge_in_distance(spec):
    near, far = (tip(slots_of(spec, [ground_plane(offset=0.03 + step)], [0.0, 0.0]))[0]
                 for step in (1e-5, -1e-5))
    assert near[6] == pytest.approx(far[6], abs=2e-5)
    assert near[5] == pytest.approx(1.0) and far[5] == 0.0


@pytest.mark.parametrize('offset, normal, distance', [
    ((0.10, 0.0, 0.0), (-1, 0, 0), 0.05 - RADIUS),
    ((0.0, 0.07, 0.0), (0, -1, 0), 0.02 - RADIUS),
    ((0.0, 0.0, -0.08), (0, 0, 1), 0.03 - RADIUS),
    ((0.08, 0.0, -0.09), (-0.6, 0, 0.8), 0.05 - RADIUS),
    ((0.04, 0.0, 0.0), (-1, 0, 0), -0.01 - RADIUS),
])
def test_box(spec, offset, normal, distance):
    middle = np.add((0.0, 0.0, 0.15), offset)
    box = Obstacle('box', 'box', (0.1, 0.1, 0.1), (*middle, *FACING), True)
    value = tip(slots_of(spec, [box], [0.0, 0.0]))[0]
    assert value[3:6] == pytest.approx(normal, abs=1e-5)
    assert value[6] == pytest.approx(distance, abs=1e-6)
    assert value[:3] == pytest.approx(np.array([0, 0, 0.15]) - RADIUS * np.array(normal),
                                      abs=1e-6)


def test_turned_box_and_sphere(spec):
    half_turn = (0.0, np.sin(np.pi / 8), 0.0, np.cos(np.pi / 8))
    edge = np.sqrt(2) * 0.05
    box = Obstacle('box', 'box', (0.1, 0.1, 0.1), (edge + 0.04, 0.0, 0.15, *half_turn), True)
    value = tip(slots_of(spec, [box], [0.0, 0.0]))[0]
    assert value[3:7] == pytest.approx([-1, 0, 0, 0.04 - RADIUS], abs=1e-5)
    ball = Obstacle('ball', 'sphere', (0.06,), (-0.09, 0.0, 0.15, *FACING), True)
    value = tip(slots_of(spec, [ball], [0.0, 0.0]))[0]
    assert value[3:7] == pytest.approx([1, 0, 0, 0.03 - RADIUS], abs=1e-6)


def test_the_closest_shape_wins_and_moving_ones_are_not_seen(spec):
    wall = Obstacle('wall', 'box', (0.1, 1, 1), (0.09, 0.0, 0.15, *FACING), True)
    crate = Obstacle('crate', 'box', (0.1, 0.1, 0.1), (-0.08, 0.0, 0.15, *FACING), False, 1.0,
                     inertia=((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)))
    value = tip(slots_of(spec, [ground_plane(offset=0.09), crate, wall], [0.0, 0.0]))[0]
    assert value[3:7] == pytest.approx([-1, 0, 0, 0.04 - RADIUS], abs=1e-6)


def test_each_world_has_its_own_ground(spec):
    planes = np.array([[0, 0, 1, 0.08], [0, 0, 1, -np.inf], [1, 0, 0, -0.06], [0, 0, -1, -0.2]])
    value = tip(slots_of(spec, [ground_plane()], np.zeros((4, 2)), planes))
    assert value[:, 6] == pytest.approx([0.05, 0.1, 0.04, 0.03], abs=1e-4)
    assert value[2, 3:6] == pytest.approx([1, 0, 0], abs=1e-6)


def test_agrees_with_mujoco(spec):
    """On a plane and a wide wall the ends of a capsule are its closest points."""
    wall = Obstacle('wall', 'box', (0.1, 2, 2), (-0.4, 0.0, 0.6, *FACING), True)
    obstacles = [ground_plane((0.6, 0.0, 0.8), 0.35), wall]
    rng = np.random.default_rng(0)
    joint_q = rng.uniform(-np.pi, np.pi, (64, 2))
    values = slots_of(spec, obstacles, joint_q)
    scene = build_scene(spec, World('test', obstacles=tuple(obstacles)))
    model = mujoco_solver(scene.model, use_mujoco_cpu=True).mj_model
    data = mujoco.MjData(model)
    statics = np.flatnonzero(model.geom_bodyid == 0)
    robot = np.flatnonzero(model.geom_bodyid > 0)
    seen = 0
    for q, value in zip(joint_q, values):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        for geom, own in zip(robot, (slice(0, 3), slice(3, 7))):
            distance = min(mujoco.mj_geomDistance(model, data, s, geom, 10.0, None)
                           for s in statics)
            if -RADIUS < distance < 0.1:
                seen += 1
                assert value[own, 6].min() == pytest.approx(distance, abs=1e-4)
    assert seen > 20


def test_captured_update_is_the_same(spec):
    scene = build_scene(spec, load_world('obstacles'), 3)
    state = scene.model.state()
    slots = ContactSlots(scene)
    slots.update(state)
    with wp.ScopedCapture() as capture:
        newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
        slots.update(state)
    joint_q = state.joint_q.numpy().reshape(3, -1)
    joint_q[:, :2] = [[0.6, 0.3], [-0.6, -0.1], [1.4, 0.2]]
    state.joint_q.assign(joint_q.reshape(-1))
    wp.capture_launch(capture.graph)
    captured = slots.values.numpy().copy()
    slots.update(state)
    assert np.array_equal(captured, slots.values.numpy())
    assert (captured[..., 6] < 0.1).any(axis=1).all()
