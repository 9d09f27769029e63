# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion that a solver goes on with by itself."""

from dataclasses import dataclass
from typing import NamedTuple

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


class History(NamedTuple):
    """
    Measured motion of W robots in the H steps before a start.

    `joint_q (W, H, nq)`, `joint_qd (W, H, nqd)`, `effort (W, H, num_dofs)`; of each robot the last
    `known (W,)` steps were measured, the others hold anything finite.
    """

    joint_q: np.ndarray
    joint_qd: np.ndarray
    effort: np.ndarray
    known: np.ndarray


def free_run(simulation: Simulation, joint_q: np.ndarray, joint_qd: np.ndarray,
             effort: np.ndarray, ground: np.ndarray | None = None,
             history: History | None = None) -> FreeRun:
    """
    Return the motion from the states `(W, nq)`, `(W, nqd)` under `effort (W, T, num_dofs)`.

    It is the simulation that steps, as in the node, guard included; `ground (W, 4)` moves the
    plane of that name first. `history` is what a learned model knows at the start.
    """
    steps = effort.shape[1]
    if ground is not None:
        simulation.set_ground(ground)
    if history is None:
        simulation.set_state(joint_q, joint_qd)
    else:
        _warm_up(simulation, history)
        _set_state(simulation, joint_q, joint_qd, history.known > 0, history.known == 0)
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


def _warm_up(simulation: Simulation, history: History) -> None:
    """Step from one measured state to the next, so that these become the model's history."""
    steps = history.joint_q.shape[1]
    for step in range(steps):
        left = steps - step
        _set_state(simulation, history.joint_q[:, step], history.joint_qd[:, step],
                   history.known > left, history.known == left)
        simulation.set_effort(history.effort[:, step])
        simulation.step()


def _set_state(simulation: Simulation, joint_q: np.ndarray, joint_qd: np.ndarray,
               going_on: np.ndarray, fresh: np.ndarray) -> None:
    """Set the state of the worlds `going_on`, which keep their history, and of those `fresh`."""
    simulation.set_state(joint_q, joint_qd, going_on, keep_history=True)
    simulation.set_state(joint_q, joint_qd, fresh)
