# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
One solver for the robot, another for everything else, and the contact wrench between them.

The obstacle solver steps the whole model, the robot included as a shadow with its true inertia,
and only the obstacles of the result are kept. What its contacts between robot and moving
obstacles push on the robot is handed to the robot solver as an external wrench (`State.body_f`) in
the same step. Static geometry is the business of each solver alone.
"""

import numpy as np
import warp as wp

from nerd_ros.scene.split_solver import SplitSolver, with_arrays


class SolverHybrid(SplitSolver):
    """
    Steps the bodies in `robot_bodies` with `robot_solver` and all others with `obstacle_solver`.

    `obstacle_solver` has to offer the observable `contact_f` (SolverMuJoCo with
    `use_mujoco_contacts=False`). `robot_solver` is any Newton solver that honours
    `State.body_f`: it sees the contacts of the robot with static geometry only, and the user's
    own `body_f`, which stays as it is, plus the wrench. No joint may connect a robot body to
    another one.
    """

    def __init__(self, model, robot_solver, obstacle_solver, robot_bodies):
        super().__init__(model)
        self.robot_solver = robot_solver
        self.obstacle_solver = obstacle_solver
        is_robot = np.zeros(model.body_count, np.int32)
        is_robot[list(robot_bodies)] = 1
        self._bodies = wp.array(is_robot, dtype=int, device=model.device)
        joints = is_robot[model.joint_child.numpy()]
        self._coords = self._spread(joints, model.joint_q_start)
        self._dofs = self._spread(joints, model.joint_qd_start)
        self._shadow = model.state()
        self._robot_state = model.state()
        self.wrench = wp.zeros(model.body_count, dtype=wp.spatial_vector, device=model.device)
        """Wrench of the moving obstacles on each robot body in the last step [N, N m]: world
        frame, at the centre of mass, shape (body_count,)."""
        self._body_f = wp.zeros_like(self.wrench)
        self._contacts = None

    @property
    def score(self) -> float:
        """The robot solver's, 0 where it has none."""
        return getattr(self.robot_solver, 'score', 0.0)

    @property
    def speed_limit(self) -> np.ndarray:
        """The robot solver's limit on joint speeds [rad/s, m/s], infinite where it has none."""
        return getattr(self.robot_solver, 'speed_limit', np.inf)

    def prepare(self, state_in, control, contacts, dt) -> None:
        """Step the shadow, gather the wrench and start the robot solver."""
        self._follow(contacts)
        self.obstacle_solver.step(state_in, self._shadow, control, contacts, dt,
                                  observables=self._observables)
        self.wrench.zero_()
        wp.launch(_gather_wrench, contacts.rigid_contact_max, [
            contacts.rigid_contact_count,
            contacts.rigid_contact_shape0, contacts.rigid_contact_shape1,
            contacts.rigid_contact_point0, contacts.rigid_contact_point1,
            contacts.rigid_contact_offset0, contacts.rigid_contact_offset1,
            self._observables.contact_f, self.model.shape_body, self._bodies,
            state_in.body_q, self.model.body_com,
        ], [self.wrench], device=self.device)
        wp.launch(_add, self.model.body_count, [state_in.body_f, self.wrench], [self._body_f],
                  device=self.device)
        wp.launch(_hide_obstacles, contacts.rigid_contact_max, [
            contacts.rigid_contact_count, contacts.rigid_contact_shape0,
            contacts.rigid_contact_shape1, self.model.shape_body, self._bodies,
        ], [self._static_shape0, self._static_shape1], device=self.device)
        robot_in = with_arrays(state_in, body_f=self._body_f)
        static = with_arrays(contacts, rigid_contact_shape0=self._static_shape0,
                             rigid_contact_shape1=self._static_shape1)
        if isinstance(self.robot_solver, SplitSolver):
            self.robot_solver.prepare(robot_in, control, static, dt)
        else:
            self.robot_solver.step(robot_in, self._robot_state, control, static, dt)

    def predict(self) -> None:
        """Run the host part of the robot solver, where it has one."""
        if isinstance(self.robot_solver, SplitSolver):
            self.robot_solver.predict()

    def finish(self, state_in, state_out, dt) -> None:
        """Finish the robot and put robot and obstacles together in `state_out`."""
        if isinstance(self.robot_solver, SplitSolver):
            self.robot_solver.finish(state_in, self._robot_state, dt)
        robot, rest = self._robot_state, self._shadow
        for mask, name in ((self._coords, 'joint_q'), (self._dofs, 'joint_qd')):
            wp.launch(_merge_joints, len(mask), [mask, getattr(robot, name), getattr(rest, name)],
                      [getattr(state_out, name)], device=self.device)
        wp.launch(_merge_bodies, self.model.body_count, [
            self._bodies, robot.body_q, robot.body_qd, rest.body_q, rest.body_qd,
        ], [state_out.body_q, state_out.body_qd], device=self.device)

    def reset(self, state, world_mask=None, flags=None) -> None:
        """Reset both solvers; see `newton.solvers.SolverBase.reset`."""
        self.obstacle_solver.reset(state, world_mask, flags)
        self.robot_solver.reset(state, world_mask, flags)

    def notify_model_changed(self, flags) -> None:
        """Tell both solvers that properties of the model changed."""
        self.obstacle_solver.notify_model_changed(flags)
        self.robot_solver.notify_model_changed(flags)

    def _follow(self, contacts) -> None:
        """Size the buffers that belong to one `Contacts`, when it is a new one."""
        if contacts is self._contacts:
            return
        self._observables = self.obstacle_solver.observables({'contact_f'}, contacts=contacts)
        self._static_shape0 = wp.zeros_like(contacts.rigid_contact_shape0)
        self._static_shape1 = wp.zeros_like(contacts.rigid_contact_shape1)
        self._contacts = contacts

    def _spread(self, joint_values, joint_start) -> wp.array:
        """Per coordinate or dof what `joint_values` says of its joint."""
        counts = np.diff(joint_start.numpy())
        return wp.array(np.repeat(joint_values, counts), dtype=int, device=self.device)


@wp.kernel
def _add(a: wp.array[wp.spatial_vector], b: wp.array[wp.spatial_vector],
         total: wp.array[wp.spatial_vector]):
    i = wp.tid()
    total[i] = a[i] + b[i]


@wp.kernel
def _merge_joints(is_robot: wp.array[int], robot: wp.array[float], rest: wp.array[float],
                  out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.where(is_robot[i] == 1, robot[i], rest[i])


@wp.kernel
def _merge_bodies(is_robot: wp.array[int],
                  robot_q: wp.array[wp.transform], robot_qd: wp.array[wp.spatial_vector],
                  rest_q: wp.array[wp.transform], rest_qd: wp.array[wp.spatial_vector],
                  out_q: wp.array[wp.transform], out_qd: wp.array[wp.spatial_vector]):
    i = wp.tid()
    out_q[i] = wp.where(is_robot[i] == 1, robot_q[i], rest_q[i])
    out_qd[i] = wp.where(is_robot[i] == 1, robot_qd[i], rest_qd[i])


@wp.func
def _moves_freely(shape: int, shape_body: wp.array[int], is_robot: wp.array[int]):
    """Whether the shape belongs to a moving obstacle."""
    body = shape_body[shape]
    return body >= 0 and is_robot[wp.max(body, 0)] == 0


@wp.kernel
def _hide_obstacles(count: wp.array[int], shape0: wp.array[int], shape1: wp.array[int],
                    shape_body: wp.array[int], is_robot: wp.array[int],
                    static_shape0: wp.array[int], static_shape1: wp.array[int]):
    """Copy the contacts' shapes; -1 where a moving obstacle takes part, which solvers skip."""
    i = wp.tid()
    static_shape0[i] = -1
    static_shape1[i] = -1
    if i < count[0] and shape0[i] >= 0 and shape1[i] >= 0:
        if not (_moves_freely(shape0[i], shape_body, is_robot)
                or _moves_freely(shape1[i], shape_body, is_robot)):
            static_shape0[i] = shape0[i]
            static_shape1[i] = shape1[i]


@wp.kernel
def _gather_wrench(count: wp.array[int], shape0: wp.array[int], shape1: wp.array[int],
                   point0: wp.array[wp.vec3], point1: wp.array[wp.vec3],
                   offset0: wp.array[wp.vec3], offset1: wp.array[wp.vec3],
                   contact_f: wp.array[wp.spatial_vector],
                   shape_body: wp.array[int], is_robot: wp.array[int],
                   body_q: wp.array[wp.transform], body_com: wp.array[wp.vec3],
                   wrench: wp.array[wp.spatial_vector]):
    """Add the force of each contact between robot and moving obstacle to its robot body."""
    i = wp.tid()
    if i >= count[0] or shape0[i] < 0 or shape1[i] < 0:
        return
    body0, body1 = shape_body[shape0[i]], shape_body[shape1[i]]
    if body0 < 0 or body1 < 0 or is_robot[body0] == is_robot[body1]:
        return
    # `contact_f` is the wrench on shape0, at the middle of the two surface points.
    body = wp.where(is_robot[body0] == 1, body0, body1)
    f = wp.where(body == body0, contact_f[i], -contact_f[i])
    point = 0.5 * (wp.transform_point(body_q[body0], point0[i] + offset0[i])
                   + wp.transform_point(body_q[body1], point1[i] + offset1[i]))
    arm = point - wp.transform_point(body_q[body], body_com[body])
    torque = wp.spatial_bottom(f) + wp.cross(arm, wp.spatial_top(f))
    wp.atomic_add(wrench, body, wp.spatial_vector(wp.spatial_top(f), torque))
