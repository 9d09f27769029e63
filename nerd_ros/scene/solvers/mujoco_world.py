# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
One world of a Newton model in MuJoCo's C code.

Newton's state is written to and read from MuJoCo's own memory by kernels, which a captured graph
can hold. The coordinates are those of `mujoco_state.py`.
"""

import copy
import logging

import mujoco
import newton
import numpy as np
import warp as wp

from nerd_ros.scene.scene import mujoco_solver

_log = logging.getLogger(__name__)


class MujocoWorld:
    """
    What Newton's SolverMuJoCo makes of `model`, one world on the CPU; `options` are its own.

    Attributes:
        mj_model, mj_data: MuJoCo's model and data.
        bodies: of each geometry the body in `model`, -1 where it has none, (ngeom,).
    """

    def __init__(self, model: newton.Model, **options):
        solver = mujoco_solver(model, use_mujoco_cpu=True, **options)
        self._model, self._solver = model, solver
        self._shapes = solver.mjc_geom_to_newton_shape.numpy()[0]
        self.bodies = model.shape_body.numpy()[self._shapes]
        self._q_start, self._qd_start = solver.mj_q_start, solver.mj_qd_start
        self._pushed = wp.array(solver.mjc_body_to_newton.numpy()[0], dtype=int, device='cpu')
        free = np.full(model.body_count, -1, np.int32)
        kinds, children = model.joint_type.numpy(), model.joint_child.numpy()
        is_free = kinds == newton.JointType.FREE
        free[children[is_free]] = model.joint_qd_start.numpy()[:-1][is_free]
        self._free_dof = wp.array(free, dtype=int, device='cpu')
        # What is not finite is for the guard to see, not for MuJoCo to put back to the start; and
        # the boxes around groups of geometry, which it looks at first, do not move with them.
        solver.mj_model.opt.disableflags |= (mujoco.mjtDisableBit.mjDSBL_AUTORESET
                                             | mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
        mujoco.set_mju_user_warning(_warn)
        self._use(solver.mj_model)

    def without_contacts_of(self, bodies) -> 'MujocoWorld':
        """Return a copy in which nothing touches `bodies`."""
        other, mj_model = copy.copy(self), copy.copy(self.mj_model)
        hidden = np.isin(self.bodies, list(bodies))
        mj_model.geom_contype[hidden] = mj_model.geom_conaffinity[hidden] = 0
        other._use(mj_model)
        return other

    def push(self, state: newton.State, control: newton.Control) -> None:
        """
        Write a state and the forces on it.

        `body_f` is a wrench in the world frame at the centre of mass, and so is what `joint_f` has
        for a free joint.
        """
        model = self._model
        wp.launch(_push_joints, model.joint_count, [
            model.joint_type, model.joint_child, model.joint_q_start, model.joint_qd_start,
            self._q_start, self._qd_start, model.joint_X_c, model.body_com,
            state.joint_q, state.joint_qd, control.joint_f,
        ], [self._qpos, self._qvel, self._qfrc], device='cpu')
        wp.launch(_push_wrenches, len(self._pushed), [
            self._pushed, self._free_dof, state.body_f, control.joint_f,
        ], [self._xfrc], device='cpu')

    def step(self, time: float, substeps: int) -> None:
        """Advance by `time` s in `substeps` steps."""
        self.mj_model.opt.timestep = time / substeps
        mujoco.mj_step(self.mj_model, self.mj_data, substeps)

    def take_state(self, other: 'MujocoWorld') -> None:
        """Copy positions and velocities of a world of the same model."""
        self.mj_data.qpos[:] = other.mj_data.qpos
        self.mj_data.qvel[:] = other.mj_data.qvel

    def pull(self, state: newton.State) -> None:
        """Read joint positions and velocities into a state."""
        model = self._model
        wp.launch(_pull_joints, model.joint_count, [
            model.joint_type, model.joint_child, model.joint_q_start, model.joint_qd_start,
            self._q_start, self._qd_start, model.joint_X_c, model.body_com,
            self._qpos, self._qvel,
        ], [state.joint_q, state.joint_qd], device='cpu')

    def forget(self) -> None:
        """Begin the next solution anew."""
        self.mj_data.qacc_warmstart[:] = 0.0

    def follow_static_shapes(self) -> None:
        """Put the geometry that belongs to no body where the model has it now."""
        poses = self._model.shape_transform.numpy()
        for geom in np.flatnonzero(self.bodies < 0):
            x, y, z, qx, qy, qz, qw = poses[self._shapes[geom]]
            self.mj_model.geom_pos[geom] = x, y, z
            self.mj_model.geom_quat[geom] = qw, qx, qy, qz
            # Else it is taken to lie in the frame of its body.
            self.mj_model.geom_sameframe[geom] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE

    def _use(self, mj_model: mujoco.MjModel) -> None:
        self.mj_model, self.mj_data = mj_model, mujoco.MjData(mj_model)
        data = self.mj_data
        self._qpos, self._qvel, self._qfrc, self._xfrc = (
            wp.array(array, dtype=wp.float64, device='cpu', copy=False)
            for array in (data.qpos, data.qvel, data.qfrc_applied, data.xfrc_applied))


def _warn(text: str) -> None:
    """Take the place of MuJoCo's own way of warning, which writes a file."""
    _log.warning('MuJoCo: %s', text)


@wp.func
def _read_quat(values: wp.array[float], at: int):
    return wp.quat(values[at], values[at + 1], values[at + 2], values[at + 3])


@wp.func
def _read_vector(values: wp.array[float], at: int):
    return wp.vec3(values[at], values[at + 1], values[at + 2])


@wp.func
def _write_vector(values: wp.array[wp.float64], at: int, vector: wp.vec3):
    for k in range(3):
        values[at + k] = wp.float64(vector[k])


@wp.func
def _write_quat(values: wp.array[wp.float64], at: int, quat: wp.quat):
    values[at] = wp.float64(quat[3])
    for k in range(3):
        values[at + 1 + k] = wp.float64(quat[k])


@wp.kernel
def _push_joints(joint_type: wp.array[int], joint_child: wp.array[int],
                 joint_q_start: wp.array[int], joint_qd_start: wp.array[int],
                 mj_q_start: wp.array[int], mj_qd_start: wp.array[int],
                 joint_X_c: wp.array[wp.transform], body_com: wp.array[wp.vec3],
                 joint_q: wp.array[float], joint_qd: wp.array[float], joint_f: wp.array[float],
                 qpos: wp.array[wp.float64], qvel: wp.array[wp.float64],
                 qfrc: wp.array[wp.float64]):
    joint = wp.tid()
    q, qd = joint_q_start[joint], joint_qd_start[joint]
    mj_q, mj_qd = mj_q_start[joint], mj_qd_start[joint]
    kind = joint_type[joint]
    if kind == newton.JointType.FREE:
        turn = _read_quat(joint_q, q + 3)
        angular = _read_vector(joint_qd, qd + 3)
        arm = wp.quat_rotate(turn, body_com[joint_child[joint]])
        _write_vector(qpos, mj_q, _read_vector(joint_q, q))
        _write_quat(qpos, mj_q + 3, turn)
        _write_vector(qvel, mj_qd, _read_vector(joint_qd, qd) - wp.cross(angular, arm))
        _write_vector(qvel, mj_qd + 3, wp.quat_rotate_inv(turn, angular))
    elif kind == newton.JointType.BALL:
        anchor = wp.transform_get_rotation(joint_X_c[joint])
        turn = _read_quat(joint_q, q)
        into_body = anchor * wp.quat_inverse(turn)
        _write_quat(qpos, mj_q, anchor * turn * wp.quat_inverse(anchor))
        _write_vector(qvel, mj_qd, wp.quat_rotate(into_body, _read_vector(joint_qd, qd)))
        _write_vector(qfrc, mj_qd, wp.quat_rotate(into_body, _read_vector(joint_f, qd)))
    else:
        for i in range(joint_qd_start[joint + 1] - qd):
            qpos[mj_q + i] = wp.float64(joint_q[q + i])
            qvel[mj_qd + i] = wp.float64(joint_qd[qd + i])
            qfrc[mj_qd + i] = wp.float64(joint_f[qd + i])


@wp.kernel
def _push_wrenches(bodies: wp.array[int], free_dof: wp.array[int],
                   body_f: wp.array[wp.spatial_vector], joint_f: wp.array[float],
                   xfrc: wp.array2d[wp.float64]):
    i = wp.tid()
    body = bodies[i]
    if body < 0:
        return
    wrench = body_f[body]
    dof = free_dof[body]
    if dof >= 0:
        wrench += wp.spatial_vector(_read_vector(joint_f, dof), _read_vector(joint_f, dof + 3))
    for k in range(6):
        xfrc[i, k] = wp.float64(wrench[k])


@wp.func
def _vector_of(values: wp.array[wp.float64], at: int):
    return wp.vec3(float(values[at]), float(values[at + 1]), float(values[at + 2]))


@wp.func
def _quat_of(values: wp.array[wp.float64], at: int):
    return wp.quat(float(values[at + 1]), float(values[at + 2]), float(values[at + 3]),
                   float(values[at]))


@wp.kernel
def _pull_joints(joint_type: wp.array[int], joint_child: wp.array[int],
                 joint_q_start: wp.array[int], joint_qd_start: wp.array[int],
                 mj_q_start: wp.array[int], mj_qd_start: wp.array[int],
                 joint_X_c: wp.array[wp.transform], body_com: wp.array[wp.vec3],
                 qpos: wp.array[wp.float64], qvel: wp.array[wp.float64],
                 joint_q: wp.array[float], joint_qd: wp.array[float]):
    joint = wp.tid()
    q, qd = joint_q_start[joint], joint_qd_start[joint]
    mj_q, mj_qd = mj_q_start[joint], mj_qd_start[joint]
    kind = joint_type[joint]
    if kind == newton.JointType.FREE:
        turn = _quat_of(qpos, mj_q + 3)
        angular = wp.quat_rotate(turn, _vector_of(qvel, mj_qd + 3))
        arm = wp.quat_rotate(turn, body_com[joint_child[joint]])
        place, linear = _vector_of(qpos, mj_q), _vector_of(qvel, mj_qd) + wp.cross(angular, arm)
        for k in range(3):
            joint_q[q + k] = place[k]
            joint_qd[qd + k] = linear[k]
            joint_qd[qd + 3 + k] = angular[k]
        for k in range(4):
            joint_q[q + 3 + k] = turn[k]
    elif kind == newton.JointType.BALL:
        anchor = wp.transform_get_rotation(joint_X_c[joint])
        from_body = wp.quat_inverse(anchor) * _quat_of(qpos, mj_q)
        turn = from_body * anchor
        angular = wp.quat_rotate(from_body, _vector_of(qvel, mj_qd))
        for k in range(4):
            joint_q[q + k] = turn[k]
        for k in range(3):
            joint_qd[qd + k] = angular[k]
    else:
        for i in range(joint_qd_start[joint + 1] - qd):
            joint_q[q + i] = float(qpos[mj_q + i])
            joint_qd[qd + i] = float(qvel[mj_qd + i])
