# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
One solver for the robot, another for everything else, and what they do to each other.

The other solver steps the whole scene, the robot included as a shadow with its true inertia, and
the obstacles of that are kept. How their touch changes the motion of the shadow in this step is
added to the motion of the robot: a robot solver that moves the robot as the shadow moves alone
gives the scene that the other solver makes as a whole. Where nothing that moves touches the robot,
its solver's word stands. Static geometry is the business of each solver alone.
"""

import newton
import numpy as np
import warp as wp

from nerd_ros.scene.solvers.shadow import Shadow
from nerd_ros.scene.solvers.split_solver import (
    Part, parts_of, SplitSolver, uses_contacts, with_arrays)


class SolverHybrid(SplitSolver):
    """
    Steps the bodies in `robot_bodies` with `robot_solver` and all others with `shadow`.

    `robot_solver` is any Newton solver; it sees the contacts of the robot with static geometry
    only. No joint may connect a robot body to another one.
    """

    def __init__(self, model: newton.Model, robot_solver, shadow: Shadow, robot_bodies):
        super().__init__(model)
        self.robot_solver, self._shadow = robot_solver, shadow
        is_robot = np.zeros(model.body_count, np.int32)
        is_robot[list(robot_bodies)] = 1
        joints = is_robot[model.joint_child.numpy()]
        device = model.device
        self._bodies = wp.array(is_robot, dtype=int, device=device)
        self._joints = wp.array(joints, dtype=int, device=device)
        self._robot_state = model.state()
        self._contacts = None

    @property
    def score(self) -> float:
        """The robot solver's, 0 where it has none."""
        return getattr(self.robot_solver, 'score', 0.0)

    @property
    def speed_limit(self) -> np.ndarray:
        """The robot solver's limit on joint speeds [rad/s, m/s], infinite where it has none."""
        return getattr(self.robot_solver, 'speed_limit', np.inf)

    @property
    def uses_contacts(self) -> bool:
        """Whether robot solver or shadow does."""
        return uses_contacts(self.robot_solver) or self._shadow.uses_contacts

    def parts(self, state_in, state_out, control, contacts, dt) -> list[Part]:
        """Return the parts of a step: shadow, robot, and both put together."""
        static, hide = None, []
        if contacts is not None and self.uses_contacts:
            self._follow(contacts)
            static = with_arrays(contacts, rigid_contact_shape0=self._static_shape0,
                                 rigid_contact_shape1=self._static_shape1)
            hide = [Part(lambda: self._hide_obstacles(contacts))]
        return [*hide, *self._shadow.parts(state_in, control, contacts, static, dt),
                *parts_of(self.robot_solver, state_in, self._robot_state, control, static, dt),
                Part(lambda: self._merge(state_out))]

    def reset(self, state, world_mask=None, flags=None) -> None:
        """Reset both solvers; see `newton.solvers.SolverBase.reset`."""
        self._shadow.reset(state, world_mask, flags)
        self.robot_solver.reset(state, world_mask, flags)

    def notify_model_changed(self, flags) -> None:
        """Tell both solvers that properties of the model changed."""
        self._shadow.notify_model_changed(flags)
        self.robot_solver.notify_model_changed(flags)

    def _follow(self, contacts) -> None:
        """Size the buffers that belong to one `Contacts`, when it is a new one."""
        if contacts is not self._contacts:
            self._static_shape0 = wp.zeros_like(contacts.rigid_contact_shape0)
            self._static_shape1 = wp.zeros_like(contacts.rigid_contact_shape1)
            self._contacts = contacts

    def _hide_obstacles(self, contacts) -> None:
        wp.launch(_hide_obstacles, contacts.rigid_contact_max, [
            contacts.rigid_contact_count, contacts.rigid_contact_shape0,
            contacts.rigid_contact_shape1, self.model.shape_body, self._bodies,
        ], [self._static_shape0, self._static_shape1], device=self.device)

    def _merge(self, state_out) -> None:
        model, robot = self.model, self._robot_state
        together, alone = self._shadow.together, self._shadow.alone
        wp.launch(_merge, model.joint_count, [
            self._joints, model.joint_type, model.joint_q_start, model.joint_qd_start,
            robot.joint_q, robot.joint_qd, together.joint_q, together.joint_qd,
            alone.joint_q, alone.joint_qd,
        ], [state_out.joint_q, state_out.joint_qd], device=self.device)
        newton.eval_fk(model, state_out.joint_q, state_out.joint_qd, state_out)


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


@wp.func
def _quat(values: wp.array[float], at: int):
    return wp.quat(values[at], values[at + 1], values[at + 2], values[at + 3])


@wp.kernel
def _merge(is_robot: wp.array[int], joint_type: wp.array[int], joint_q_start: wp.array[int],
           joint_qd_start: wp.array[int], robot_q: wp.array[float], robot_qd: wp.array[float],
           together_q: wp.array[float], together_qd: wp.array[float],
           alone_q: wp.array[float], alone_qd: wp.array[float],
           out_q: wp.array[float], out_qd: wp.array[float]):
    """Obstacles from `together`; the robot, and what it does otherwise together than alone."""
    joint = wp.tid()
    first, end = joint_q_start[joint], joint_q_start[joint + 1]
    if is_robot[joint] == 0:
        for i in range(first, end):
            out_q[i] = together_q[i]
        for i in range(joint_qd_start[joint], joint_qd_start[joint + 1]):
            out_qd[i] = together_qd[i]
        return
    for i in range(joint_qd_start[joint], joint_qd_start[joint + 1]):
        out_qd[i] = robot_qd[i] + (together_qd[i] - alone_qd[i])
    turn = int(-1)
    if joint_type[joint] == newton.JointType.FREE:
        turn = first + 3
    elif joint_type[joint] == newton.JointType.BALL:
        turn = first
    for i in range(first, wp.where(turn < 0, end, turn)):
        out_q[i] = robot_q[i] + (together_q[i] - alone_q[i])
    if turn >= 0:
        turned = _quat(robot_q, turn)
        ours, others = _quat(together_q, turn), _quat(alone_q, turn)
        if wp.length_sq(ours - others) > 0.0:
            turned = wp.normalize(ours * wp.quat_inverse(others) * turned)
        for k in range(4):
            out_q[turn + k] = turned[k]
