# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion that a solver goes on with by itself, and its distance from the true one."""

from dataclasses import dataclass

import numpy as np

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.generate import sample_trajectories
from nerd_ros.scene.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solver_nerd import SolverNeRD
from nerd_ros.scene.teacher import GRAVITY, TeacherRollouts
from nerd_ros.scene.world import ground_plane, World

# Training draws from the streams (seed, index of a chunk); with this number in place of the index
# no seed gives a held-out trajectory that a model may have been trained on.
_HELD_OUT_STREAM = 2**31


@dataclass(frozen=True)
class HeldOut:
    """
    Motion of the teacher that no model was trained on: N rollouts of T steps.

    `joint_q (N, T+1, nq)` and `joint_qd (N, T+1, nqd)`, the initial state first, under
    `effort (N, T, num_dofs)` above the planes `ground (N, 4)`; units and planes as in
    `TeacherRollouts`. `touches (N,)` says which of them touch the ground.
    """

    spec: RobotSpec
    joint_q: np.ndarray
    joint_qd: np.ndarray
    effort: np.ndarray
    ground: np.ndarray
    touches: np.ndarray


def held_out(spec: RobotSpec, teacher: TeacherRollouts, count: int, seed: int, steps: int,
             passive: bool, ground: bool | None = None) -> HeldOut:
    """
    Return `count` random rollouts of `steps`, drawn as for training but never part of it.

    Jumps and trajectories near rest, which would be easy, are left out.
    `passive` means without effort, else all have effort. `ground` True means above a plane in
    each, False in none, None as often as in training.
    """
    change = {'steps': steps, 'passive_share': float(passive), 'jump_share': 0.0,
              'slow_share': 0.0}
    if ground is not None:
        change['no_ground_share'] = 0.0 if ground else 1.0
    sampling = spec.sampling.model_copy(update=change)
    changed = spec.model_copy(update={'sampling': sampling})
    rng = np.random.default_rng([seed, _HELD_OUT_STREAM, passive, 2 if ground is None else ground])
    parts = [sample_trajectories(changed, teacher, min(teacher.num_worlds, count - first), rng)
             for first in range(0, count, teacher.num_worlds)]
    touches = [(part.contacts[..., 6] <= 0.0).any((1, 2)) for part in parts]
    return HeldOut(spec, *(np.concatenate([getattr(part, name) for part in parts])
                           for name in ('joint_q', 'joint_qd', 'effort', 'ground')),
                   np.concatenate(touches))


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


class FreeRunningCheck:
    """
    Free-running error of one model on held-out motion, again and again.

    The simulation is built once and steps `model` as it is at the time of each call, so that it
    can be watched during training.
    """

    def __init__(self, model: NerdModel, held: HeldOut):
        self._held = held
        self._simulation = neural_simulation(held.spec, model, len(held.joint_q))

    def run(self) -> FreeRun:
        """Return the motion of the model from the initial states of the held-out motion."""
        held = self._held
        return free_run(self._simulation, held.joint_q[:, 0], held.joint_qd[:, 0], held.effort,
                        held.ground)

    def error(self) -> float:
        """
        Return the mean distance of all joints over all steps and rollouts [rad, m].

        A joint that is off by more than 1 counts 1: how far a lost rollout strays says nothing.
        """
        distance = np.abs(self.run().joint_q - self._held.joint_q)[:, 1:]
        return float(np.minimum(distance, 1.0).mean())
