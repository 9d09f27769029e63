# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Computing time of a model and of its teacher."""

from dataclasses import dataclass
import time

import numpy as np

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.held_out import HeldOut
from nerd_ros.learning.evaluation.free_running import ground_world, neural_simulation
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.teacher import TeacherRollouts

# Steps that the cost of a step is measured over, of one robot and of many.
_STEPS = (200, 50)


@dataclass(frozen=True)
class Cost:
    """Computing time of one simulated second [s], for one robot and per robot of many."""

    one: float
    many: float


def measure_cost(spec: RobotSpec, model: NerdModel, teacher: TeacherRollouts, held: HeldOut
                 ) -> dict[str, Cost]:
    """
    Measure the computing time of a simulated second, of one robot and per robot of many.

    'neural' and 'mujoco' are steps of the simulation with collision detection and guard;
    'MuJoCo C' is the teacher alone. All start from states of `held`, without effort; many are as
    many as `teacher` has worlds.
    """
    many = min(teacher.num_worlds, len(held.joint_q))
    cost = {'neural': [], 'mujoco': [], 'MuJoCo C': []}
    for worlds, steps in zip((1, many), _STEPS):
        joint_q, joint_qd = held.joint_q[:worlds, 0], held.joint_qd[:worlds, 0]
        ground = held.ground[:worlds]
        effort = np.zeros((worlds, steps, teacher.layout.num_dofs))
        for solver in ('neural', 'mujoco'):
            simulation = (neural_simulation(spec, model, worlds) if solver == 'neural' else
                          Simulation(spec, ground_world(spec), solver, num_worlds=worlds))
            simulation.set_ground(ground)
            simulation.set_state(joint_q, joint_qd)
            cost[solver].append(_best_time(lambda: simulation.step(steps)) / (worlds * steps))
        cost['MuJoCo C'].append(_best_time(
            lambda: teacher.rollout(joint_q, joint_qd, effort, ground)) / (worlds * steps))
    return {name: Cost(*(value / spec.dt for value in values)) for name, values in cost.items()}


def _best_time(run) -> float:
    """Return the shortest time of three runs [s]."""
    shortest = np.inf
    for _ in range(3):
        start = time.perf_counter()
        run()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest
