# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""SolverMujocoC: MuJoCo's C code as a Newton solver of a single world on the CPU."""

import newton
from numba import njit
import numpy as np

from nerd_ros.scene.mujoco_world import MujocoWorld
from nerd_ros.scene.split_solver import Part, SplitSolver


class SolverMujocoC(SplitSolver):
    """
    Steps all of `model`, one world on the CPU, in `substeps` steps of MuJoCo with its contacts.

    It is the MuJoCo model that Newton's SolverMuJoCo makes, and so the teacher's physics, and many
    times as fast as MuJoCo-Warp on a CPU. `options` are SolverMuJoCo's. Efforts and wrenches are
    held during a step, efforts of ball joints in the frame that the body has at its begin.

    As long as no other body that moves is as near to `robot_bodies` as contacts are looked for,
    `far_substeps` will do.
    """

    uses_contacts = False

    def __init__(self, model: newton.Model, substeps: int = 1, robot_bodies=(),
                 far_substeps: int | None = None, **options):
        super().__init__(model)
        self.world = MujocoWorld(model, **options)
        self._substeps, self._far_substeps = substeps, far_substeps or substeps
        bodies = self.world.bodies
        is_robot = np.isin(bodies, list(robot_bodies))
        moves = (bodies >= 0) & ~is_robot
        self._couples = np.logical_and.outer(is_robot, moves)
        self._couples |= self._couples.T
        self._near = True
        self.taken = substeps
        """Substeps of the last step."""
        self.touched = False
        """Whether a robot body and another one that moves pushed each other in the last step."""

    def parts(self, state_in, state_out, control, contacts, dt) -> list[Part]:
        """Return the parts of a step; see SplitSolver."""
        return [Part(lambda: self.world.push(state_in, control)),
                Part(lambda: self.advance(dt), host=True),
                Part(lambda: self._finish(state_out))]

    def advance(self, dt: float) -> None:
        """Step MuJoCo's own state by `dt` s."""
        self.taken = self._substeps if self._near else self._far_substeps
        self._near = self.touched = False
        for _ in range(self.taken):
            self.world.step(dt / self.taken, 1)
            contacts = self.world.mj_data.contact
            near, touch = _look(contacts.geom, contacts.efc_address, self._couples)
            self._near |= near
            self.touched |= touch

    def reset(self, state, world_mask=None, flags=None) -> None:
        """Forget the last solution; the state stays as it is."""
        self.world.forget()
        self._near = True

    def notify_model_changed(self, flags) -> None:
        """Follow static shapes that were moved; other changes need a new solver."""
        if flags & newton.ModelFlags.SHAPE_PROPERTIES:
            self.world.follow_static_shapes()

    def _finish(self, state_out) -> None:
        self.world.pull(state_out)
        newton.eval_fk(self.model, state_out.joint_q, state_out.joint_qd, state_out)


# The types are given so that the first contact has not to wait for the compiler.
@njit('UniTuple(b1, 2)(i4[:, :], i4[:], b1[:, :])', cache=True)
def _look(geoms, addresses, couples):
    """Whether pairs in `couples` are near to each other, and whether any of them pushes."""
    near = touch = False
    for i in range(len(geoms)):
        if couples[geoms[i, 0], geoms[i, 1]]:
            near = True
            # Those that push have rows among MuJoCo's constraints.
            touch |= addresses[i] >= 0
    return near, touch
