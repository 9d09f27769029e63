# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion that a solver goes on with by itself."""

from dataclasses import dataclass

import numpy as np

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers.solver_nerd import SolverNeRD
from nerd_ros.scene.teacher import GRAVITY
from nerd_ros.scene.world import ground_plane, World


def ground_world(spec: RobotSpec) -> World:
    """World of one endless plane, which `free_run` moves, as the teacher has it."""
    return World('evaluation', GRAVITY, (ground_plane(friction=spec.contact.friction),))


def neural_simulation(spec: RobotSpec, model: NerdModel, num_worlds: int) -> Simulation:
    """Return a simulation on `ground_world` that `model` steps, as it is at each step."""
    return Simulation(spec, ground_world(spec), lambda scene: SolverNeRD(scene.model, model),
                      num_worlds=num_worlds)


@dataclass(frozen=True)
class FreeRun:
    """Motion of W robots, arrays as in `HeldOut`, and which of them the guard stopped (W,)."""

    joint_q: np.ndarray
    joint_qd: np.ndarray
    diverged: np.ndarray


def free_run(simulation: Simulation, joint_q: np.ndarray, joint_qd: np.ndarray,
             effort: np.ndarray, ground: np.ndarray | None = None) -> FreeRun:
    """
    Return the motion from the states `(W, nq)`, `(W, nqd)` under `effort (W, T, num_dofs)`.

    It is the simulation that steps, as in the node, guard included; `ground (W, 4)` moves the
    plane of that name first.
    """
    steps = effort.shape[1]
    if ground is not None:
        simulation.set_ground(ground)
    simulation.set_state(joint_q, joint_qd)
    all_q = np.empty((len(joint_q), steps + 1, joint_q.shape[1]), np.float32)
    all_qd = np.empty((len(joint_q), steps + 1, joint_qd.shape[1]), np.float32)
    diverged = np.zeros(len(joint_q), bool)
    all_q[:, 0], all_qd[:, 0] = joint_q, joint_qd
    for step in range(steps):
        simulation.set_effort(effort[:, step])
        simulation.step()
        diverged |= simulation.faults
        all_q[:, step + 1], all_qd[:, step + 1] = simulation.joint_q, simulation.joint_qd
    return FreeRun(all_q, all_qd, diverged)
