# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Figures of a robot that its URDF holds implicitly: inertias, loads and size."""

from dataclasses import dataclass

import mujoco
import newton
import numpy as np

from nerd_ros.scene.mujoco_state import MujocoCoordinates
from nerd_ros.scene.robot.link_shapes import shape_points
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver, Scene
from nerd_ros.scene.world import World

_GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class RobotFigures:
    """
    What was measured over K positions of a robot, the first of them the initial one.

    Attributes:
        inertia: smallest of each dof of the joints [kg m^2 or kg], armature included, all other
            joints free.
        load: largest effort with which gravity acts on each dof of the joints [N m or N].
        mass: of the whole robot [kg].
        reach: farthest that a collision shape or the frame of a link gets from the base [m].
        depth: how far below the base the robot reaches in its initial position [m].
        deepest: how far below it does in any position [m].
        planar: whether it moves in the x-z plane of its base alone.
    """

    inertia: np.ndarray
    load: np.ndarray
    mass: float
    reach: float
    depth: float
    deepest: float
    planar: bool


def initial_position(spec: RobotSpec) -> np.ndarray:
    """Joint coordinates (nq,) after a reset, a floating base at its pose."""
    return build_scene(spec, World('nothing', _GRAVITY), visuals=False).model.joint_q.numpy()


def measure(spec: RobotSpec, joint_q: np.ndarray) -> RobotFigures:
    """Measure a robot in positions joint_q (K, nq). Raises RobotError where it cannot be used."""
    scene = build_scene(spec, World('nothing', _GRAVITY), visuals=False)
    solver = mujoco_solver(scene.model, use_mujoco_cpu=True)
    model, coordinates = solver.mj_model, MujocoCoordinates(scene.model, solver)
    data, full = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    first = scene.layout.num_base_dofs
    starts, placed = scene.model.joint_qd_start.numpy(), solver.mj_qd_start.numpy()
    dofs = np.concatenate([placed[joint] + np.arange(starts[joint + 1] - starts[joint])
                           for joint in range(len(placed))]).astype(int)[first:]
    inertias, loads = [], []
    qpos, _ = coordinates.to_mujoco(joint_q, np.zeros((len(joint_q), scene.layout.nqd)))
    for position in qpos:
        data.qpos[:] = position
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, full)
        # Without force on the others, as when all are free to move.
        inertias.append(1.0 / np.diag(np.linalg.inv(full))[dofs])
        loads.append(np.abs(data.qfrc_bias[dofs]))
    return RobotFigures(np.min(inertias, axis=0), np.max(loads, axis=0),
                        float(model.body_mass.sum()), *_extent(scene, joint_q), _is_planar(scene))


def _extent(scene: Scene, joint_q: np.ndarray) -> tuple[float, float, float]:
    """Reach, depth and greatest depth of a robot."""
    model, state = scene.model, scene.model.state()
    kinds, sizes, poses = (array.numpy() for array in (
        model.shape_type, model.shape_scale, model.shape_transform))
    points = [(body, np.zeros((1, 3))) for body in range(model.body_count)]
    points += [(body, shape_points(kinds[shape], sizes[shape], model.shape_source[shape],
                                   poses[shape]))
               for shape, body in enumerate(model.shape_body.numpy())]
    reach, depths = 0.0, []
    for position in joint_q:
        state.joint_q.assign(position.astype(np.float32))
        newton.eval_fk(model, state.joint_q, state.joint_qd, state)
        poses, lowest = state.body_q.numpy(), 0.0
        for body, local in points:
            placed = _turned(poses[body, 3:], local) + poses[body, :3] - poses[0, :3]
            reach = max(reach, float(np.linalg.norm(placed, axis=1).max()))
            lowest = min(lowest, float(placed[:, 2].min()))
        depths.append(-lowest)
    return reach, depths[0], max(depths)


def _is_planar(scene: Scene) -> bool:
    """Whether hinges turn about the y axis of a fixed base and sliders move normal to it."""
    model, state = scene.model, scene.model.state()
    if scene.layout.floating:
        return False
    newton.eval_fk(model, state.joint_q, state.joint_qd, state)
    poses = state.body_q.numpy()
    side = _turned(poses[0, 3:], np.array([[0.0, 1.0, 0.0]]))[0]
    kinds, parents = model.joint_type.numpy(), model.joint_parent.numpy()
    anchors, axes, starts = (array.numpy() for array in (
        model.joint_X_p, model.joint_axis, model.joint_qd_start))
    for joint, kind in enumerate(kinds):
        if kind == newton.JointType.FIXED:
            continue
        if kind == newton.JointType.BALL:
            return False
        axis = _turned(anchors[joint, 3:], axes[starts[joint]][None])
        along = abs(_turned(poses[parents[joint], 3:], axis)[0] @ side)
        if abs(along - (kind == newton.JointType.REVOLUTE)) > 1e-3:
            return False
    return True


def _turned(quat: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, 3) rotated by a quaternion x y z w."""
    axis, w = quat[:3].astype(float), float(quat[3])
    twice = 2.0 * np.cross(axis, vectors)
    return vectors + w * twice + np.cross(axis, twice)
