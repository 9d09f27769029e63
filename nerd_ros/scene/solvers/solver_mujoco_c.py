# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""SolverMujocoC: MuJoCo's C code as a Newton solver of a single world on the CPU."""

import newton

from nerd_ros.scene.solvers.mujoco_world import MujocoWorld
from nerd_ros.scene.solvers.split_solver import Part, SplitSolver


class SolverMujocoC(SplitSolver):
    """
    Steps all of `model`, one world on the CPU, in `substeps` steps of MuJoCo with its contacts.

    It is the MuJoCo model that Newton's SolverMuJoCo makes, so the teacher's physics, and many
    times as fast as MuJoCo-Warp on a CPU. `options` are SolverMuJoCo's. Efforts and wrenches are
    held during a step, efforts of ball joints in the frame that the body has at its begin.
    """

    uses_contacts = False

    def __init__(self, model: newton.Model, substeps: int = 1, **options):
        super().__init__(model)
        self._world, self._substeps = MujocoWorld(model, **options), substeps

    def parts(self, state_in, state_out, control, contacts, dt) -> list[Part]:
        """Return the parts of a step; see SplitSolver."""
        def finish():
            self._world.pull(state_out)
            newton.eval_fk(self.model, state_out.joint_q, state_out.joint_qd, state_out)
        return [Part(lambda: self._world.push(state_in, control)),
                Part(lambda: self._world.step(dt, self._substeps), host=True), Part(finish)]

    def reset(self, state, world_mask=None, flags=None) -> None:
        """Forget the last solution; the state stays as it is."""
        self._world.forget()

    def notify_model_changed(self, flags) -> None:
        """Follow static shapes that were moved; other changes need a new solver."""
        if flags & newton.ModelFlags.SHAPE_PROPERTIES:
            self._world.follow_static_shapes()
