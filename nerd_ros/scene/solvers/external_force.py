# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Forces on a robot from outside, as a learned model can take them."""

import newton
import numpy as np
import warp as wp

from nerd_ros.scene.rows import RobotRows


class ExternalForce:
    """
    Splits the force on the joints into what a model has learned and the rest.

    External wrenches `State.body_f` act on the joints as J^T f. Together with the commanded
    effort, what lies within the effort limits goes to the model as `effort` (W, A): there the
    joint's friction opposes it, so that what leans on a robot does not push it away. The rest is
    beyond what the model has seen, as is everything on a floating base; it changes the velocity
    by dqd = M^-1 f dt on top of the model, and the position by dqd dt / 2.
    """

    def __init__(self, rows: RobotRows):
        model, layout = rows.model, rows.layout
        device, self._model, self._rows = model.device, model, rows
        articulations = model.joint_articulation.numpy().reshape(rows.num_worlds, -1)[:, 0]
        robots = np.isin(np.arange(model.articulation_count), articulations)
        self.robots = wp.array(robots, dtype=wp.bool, device=device)
        """Which articulations are robots, shape (articulation_count,)."""
        self._articulations = wp.array(articulations, dtype=int, device=device)
        links, dofs = model.max_joints_per_articulation, model.max_dofs_per_articulation
        self._jacobian = wp.zeros((model.articulation_count, 6 * links, dofs), dtype=float,
                                  device=device)
        self._mass = wp.zeros((model.articulation_count, dofs, dofs), dtype=float, device=device)
        self._subspace = wp.zeros(model.joint_dof_count, dtype=wp.spatial_vector, device=device)
        self._inertia = wp.zeros(model.body_count, dtype=wp.spatial_matrix, device=device)
        self._limits = wp.array(layout.effort_limits, dtype=float, device=device)
        self.effort = wp.zeros((rows.num_worlds, layout.num_dofs), dtype=float, device=device)
        self._change = wp.zeros((rows.num_worlds, layout.nqd), dtype=float, device=device)

    def split(self, state, control, dt: float) -> None:
        """Fill `effort`, and keep the change of velocity that the rest makes in `dt` s."""
        model, rows = self._model, self._rows
        newton.eval_jacobian(model, state, self._jacobian, self._subspace, mask=self.robots)
        newton.eval_mass_matrix(model, state, self._mass, body_I_s=self._inertia,
                                joint_S_s=self._subspace, mask=self.robots)
        wp.launch(_split, rows.num_worlds, [
            self._articulations, model.articulation_start, model.articulation_end,
            model.joint_child, rows.qd_stride, rows.layout.num_base_dofs, self._jacobian,
            self._mass, state.body_f, control.joint_f, self._limits, dt,
        ], [self.effort, self._change], device=model.device)

    def add(self, state, dt: float) -> None:
        """Add the change of velocity, and the motion that it makes within the step, to `state`."""
        model, rows = self._model, self._rows
        wp.launch(_add_velocity, rows.num_worlds, [
            self._articulations, model.articulation_start, model.articulation_end,
            model.joint_type, model.joint_child, model.joint_q_start, model.joint_qd_start,
            rows.qd_stride, model.body_com, self._change, 0.5 * dt,
        ], [state.joint_q, state.joint_qd], device=model.device)


@wp.kernel
def _split(articulations: wp.array[int], first_joint: wp.array[int], end_joint: wp.array[int],
           joint_child: wp.array[int], qd_stride: int, num_base_dofs: int,
           jacobian: wp.array3d[float], mass: wp.array3d[float],
           body_f: wp.array[wp.spatial_vector], joint_f: wp.array[float],
           limits: wp.array[float], dt: float,
           effort: wp.array2d[float], change: wp.array2d[float]):
    world = wp.tid()
    art = articulations[world]
    n = change.shape[1]
    for i in range(n):
        force = joint_f[world * qd_stride + i]
        for j in range(first_joint[art], end_joint[art]):
            wrench = body_f[joint_child[j]]
            row = 6 * (j - first_joint[art])
            for k in range(6):
                force += jacobian[art, row + k, i] * wrench[k]
        if i >= num_base_dofs:
            a = i - num_base_dofs
            learned = wp.clamp(force, -limits[a], limits[a])
            effort[world, a] = learned
            force -= learned
        change[world, i] = force * dt
    # Solve mass * change = force dt in place by Gauss elimination; `mass` is positive definite.
    for i in range(n):
        for r in range(i + 1, n):
            factor = mass[art, r, i] / mass[art, i, i]
            for c in range(i, n):
                mass[art, r, c] -= factor * mass[art, i, c]
            change[world, r] -= factor * change[world, i]
    for i in range(n):
        r = n - 1 - i
        for c in range(r + 1, n):
            change[world, r] -= mass[art, r, c] * change[world, c]
        change[world, r] = change[world, r] / mass[art, r, r]


@wp.func
def _turned(joint_q: wp.array[float], start: int, rotation: wp.vec3):
    """The quaternion at `start` after a small rotation vector, both in the parent frame."""
    quat = wp.quat(joint_q[start], joint_q[start + 1], joint_q[start + 2], joint_q[start + 3])
    angle = wp.length(rotation)
    turned = quat
    if angle > 0.0:
        turned = wp.normalize(wp.quat_from_axis_angle(rotation / angle, angle) * quat)
    return quat, turned


@wp.kernel
def _add_velocity(articulations: wp.array[int], first_joint: wp.array[int],
                  end_joint: wp.array[int], joint_type: wp.array[int], joint_child: wp.array[int],
                  joint_q_start: wp.array[int], joint_qd_start: wp.array[int], qd_stride: int,
                  body_com: wp.array[wp.vec3], change: wp.array2d[float], dt: float,
                  joint_q: wp.array[float], joint_qd: wp.array[float]):
    world = wp.tid()
    art = articulations[world]
    for i in range(change.shape[1]):
        joint_qd[world * qd_stride + i] += change[world, i]
    for j in range(first_joint[art], end_joint[art]):
        q, qd = joint_q_start[j], joint_qd_start[j]
        dof = qd - world * qd_stride
        kind = joint_type[j]
        if kind == newton.JointType.REVOLUTE or kind == newton.JointType.PRISMATIC:
            joint_q[q] += dt * change[world, dof]
        elif kind == newton.JointType.BALL:
            old, new = _turned(joint_q, q, dt * wp.vec3(
                change[world, dof], change[world, dof + 1], change[world, dof + 2]))
            for k in range(4):
                joint_q[q + k] = new[k]
        elif kind == newton.JointType.FREE:
            old, new = _turned(joint_q, q + 3, dt * wp.vec3(
                change[world, dof + 3], change[world, dof + 4], change[world, dof + 5]))
            # The linear velocity is that of the centre of mass, the position that of the frame.
            com = body_com[joint_child[j]]
            lever = wp.quat_rotate(old, com) - wp.quat_rotate(new, com)
            for k in range(3):
                joint_q[q + k] += dt * change[world, dof + k] + lever[k]
            for k in range(4):
                joint_q[q + 3 + k] = new[k]
