# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A running simulation as PyTorch tensors."""

from typing import NamedTuple

import newton
from torch import Tensor
import warp as wp

from nerd_ros.dynamics.layout import RobotLayout


class StateTensors(NamedTuple):
    """
    Views of the memory of a running simulation, on its device: nothing is copied. SI units.

    Only `effort` is for writing: a solver with a history has to be told when a state is changed,
    as `Simulation.set_state` does.
    """

    joint_q: Tensor
    """Coordinates of the robot (W, nq), as `Simulation.joint_q`."""
    joint_qd: Tensor
    """Its velocities (W, nqd)."""
    body_q: Tensor
    """World poses (W, B, 7) of links and moving obstacles, as `Simulation.body_q`."""
    body_qd: Tensor
    """Their velocities (W, B, 6): linear of the centre of mass, angular, in the world."""
    effort: Tensor
    """Effort (W, A) of the next steps; clamped to the limits as it is applied."""

    @classmethod
    def of(cls, state: newton.State, effort: wp.array, layout: RobotLayout) -> 'StateTensors':
        """Return the views of the state of equal worlds and of `effort` (W, A)."""
        joint_q, joint_qd, body_q, body_qd = (
            wp.to_torch(array, requires_grad=False).unflatten(0, (effort.shape[0], -1))
            for array in (state.joint_q, state.joint_qd, state.body_q, state.body_qd))
        return cls(joint_q[:, :layout.nq], joint_qd[:, :layout.nqd], body_q, body_qd,
                   wp.to_torch(effort, requires_grad=False))
