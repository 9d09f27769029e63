# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
What a step costs on one core: learned models, their teachers, Newton's solvers, MuJoCo, the node.

    python benchmarks/step_cost.py --check

First table: CPU time per simulated second and world, in the world `empty`, and that over the one
of NeRD. *NeRD* is SolverNeRD with contact slots and forward kinematics, the compiled step for one
world and torch for more; *network* is the compiled step alone. *Teacher* are MuJoCo's C rollouts
as in training, *MuJoCo C* is `mj_step` in a Python loop, one world after the other. Newton's
solvers run with collision detection in captured graphs. *Steps* are the solver's in one dt: the
teacher's where it is MuJoCo's code, else as many as make 0.5 ms, whether that is accurate or not.
A minus stands where the solver gave numbers that are not finite.

Second table: the compiled step against the least time that its multiplications and the reading of
its weights take, at the speed that this core reaches in a matrix product and in reading as many
bytes again and again. `--check` asks for 3 times that.

Third table: the whole node with its default rates, without view, as fast as it can, on one core,
under random efforts that another process commands; *heard* is with that process listening to all
topics, whose acknowledgements the node's core has to work on too. As other processes may be on
that core, the factor is simulated time over CPU time of the node, all its threads together.
`--check` asks for 20 times, unheard.
"""

import argparse
import math
import sys
import time

import loop
import mujoco
import newton
from newton.solvers import SolverBase, SolverSemiImplicit, SolverXPBD
import numpy as np
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.dynamics.fast_step import FastStep
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers.analytic import FrictionFeatherstone, Substepped
from nerd_ros.scene.solvers.make_solver import shipped_model
from nerd_ros.scene.solvers.solver_nerd import SolverNeRD
from nerd_ros.scene.teacher import NO_GROUND, TeacherRollouts

ROBOTS = ('double_pendulum', 'cartpole', 'cube')
WORLDS = (1, 512)
SMALL_STEP = 5.0e-4         # of solvers that are not MuJoCo [s]
STEP_BOUND, NODE_BOUND = 3.0, 20.0
ROUND, ROUNDS = 0.1, 15     # a measurement takes the fastest of so many rounds of so many s


def cpu_time(function, steps: int = 1) -> float:
    """CPU time [s] of one of the `steps` that a call of `function` takes, without disturbances."""
    function()
    begin = time.process_time()
    function()
    calls = max(1, round(ROUND / max(time.process_time() - begin, 1e-9)))
    times = []
    for _ in range(ROUNDS if calls > 1 else 3):
        begin = time.process_time()
        for _ in range(calls):
            function()
        times.append((time.process_time() - begin) / calls)
    return min(times) / steps


def learned_model(spec: RobotSpec) -> tuple[NerdModel, str]:
    """Model that ships for a robot, or one of the same size that has learned nothing; its name."""
    try:
        return load_checkpoint(shipped_model(spec)), 'NeRD'
    except ValueError:
        return NerdModel(build_scene(spec, load_world('empty')).layout).eval(), 'NeRD (untrained)'


class Maximal(SolverBase):
    """A solver of body coordinates, whose joint coordinates are found from these."""

    def __init__(self, solver: SolverBase):
        super().__init__(solver.model)
        self.solver = solver

    def step(self, state_in, state_out, control, contacts, dt, *, observables=None) -> None:
        """See `newton.solvers.SolverBase.step`."""
        self.solver.step(state_in, state_out, control, contacts, dt)
        newton.eval_ik(self.model, state_out, state_out.joint_q, state_out.joint_qd)

    def reset(self, state, world_mask=None, flags=None) -> None:
        """Nothing is remembered."""


def costs(spec: RobotSpec, worlds: int):
    """Yield name, steps in one dt and CPU time [s] per step and world of each engine."""
    learned, name = learned_model(spec)
    substeps, small = spec.teacher.substeps, math.ceil(spec.dt / SMALL_STEP - 1e-6)
    if worlds == 1:
        yield 'network', 1, network_cost(learned)
    solvers = {
        name: (1, lambda scene: SolverNeRD(scene.model, learned)),
        'MuJoCo-Warp': (substeps, lambda scene: Substepped(
            mujoco_solver(scene.model, use_mujoco_contacts=False, integrator='implicitfast'),
            substeps)),
        'Featherstone': (small, lambda scene: Substepped(
            FrictionFeatherstone(scene.model), small)),
        'XPBD': (small, lambda scene: Maximal(Substepped(SolverXPBD(scene.model), small))),
        'SemiImplicit': (small, lambda scene: Maximal(
            Substepped(SolverSemiImplicit(scene.model), small))),
    }
    for name, (steps, make) in solvers.items():
        yield name, steps, simulation_cost(spec, worlds, make)
    yield 'teacher', substeps, teacher_cost(spec, worlds)
    yield 'MuJoCo C', substeps, mujoco_cost(spec, worlds)


def network_cost(learned: NerdModel) -> float:
    """CPU time [s] of the compiled step, the robot hanging or lying still."""
    step, layout = FastStep(learned), learned.layout
    joint_q = np.zeros(layout.nq, np.float32)
    if layout.floating:
        joint_q[6] = 1.0
    contacts = np.zeros((layout.num_slots, 7), np.float32)
    contacts[:, 5] = 1.0
    arrays = (joint_q, np.zeros(layout.nqd, np.float32), np.zeros(layout.num_dofs, np.float32),
              contacts, np.array([0.0, 0.0, -9.81], np.float32), joint_q[:7].copy()
              if layout.floating else np.array([0, 0, 0, 0, 0, 0, 1], np.float32),
              np.empty(layout.nq, np.float32), np.empty(layout.nqd, np.float32))

    def run():
        for _ in range(100):
            step.step(*arrays)
    return cpu_time(run, 100)


def simulation_cost(spec: RobotSpec, worlds: int, make) -> float:
    """CPU time [s] per step and world of a Simulation; NaN where it leaves the numbers."""
    simulation = Simulation(spec, 'empty', make, num_worlds=worlds)
    limits, rng = simulation.layout.effort_limits, np.random.default_rng(0)
    simulation.set_effort(0.1 * rng.uniform(-limits, limits, (worlds, len(limits))))
    simulation.step(5)
    if simulation.guard_events:
        return math.nan
    count = 10 if worlds == 1 else 1
    return cpu_time(lambda: simulation.step(count), count * worlds)


def teacher_cost(spec: RobotSpec, worlds: int) -> float:
    """CPU time [s] per step and world of the teacher's rollouts."""
    teacher, steps = TeacherRollouts(spec, worlds), 100
    layout = teacher.layout
    joint_q, joint_qd = start(spec, worlds)
    effort = np.random.default_rng(0).uniform(
        -layout.effort_limits, layout.effort_limits, (worlds, steps, layout.num_dofs))
    ground = np.tile(NO_GROUND if not layout.floating else (0.0, 0.0, 1.0, 0.0), (worlds, 1))
    return cpu_time(lambda: teacher.rollout(joint_q, joint_qd, effort, ground),
                    steps * worlds)


def start(spec: RobotSpec, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """State of the robot after a reset, (W, nq) and (W, nqd)."""
    model = build_scene(spec, load_world('empty')).model
    return tuple(np.tile(array.numpy(), (worlds, 1)) for array in (model.joint_q, model.joint_qd))


def mujoco_cost(spec: RobotSpec, worlds: int) -> float:
    """CPU time [s] per step and world of MuJoCo's own loop on the scene of the world `empty`."""
    model = mujoco_solver(build_scene(spec, load_world('empty')).model, use_mujoco_cpu=True,
                          integrator='implicitfast').mj_model
    model.opt.timestep = spec.dt / spec.teacher.substeps
    datas = [mujoco.MjData(model) for _ in range(worlds)]

    def run():
        for data in datas:
            mujoco.mj_step(model, data, spec.teacher.substeps)
    return cpu_time(run, worlds)


def cost_table(robots) -> None:
    """Print the first table."""
    print('| robot | worlds | engine | steps | µs per simulated s | over NeRD |')
    print('|---' * 6 + '|')
    for robot in robots:
        spec = RobotSpec.load(robot)
        for worlds in WORLDS:
            rows = list(costs(spec, worlds))
            nerd = next(cost for name, _, cost in rows if name.startswith('NeRD'))
            for name, steps, cost in rows:
                cells = (f'{1e6 * cost / spec.dt:.0f}', f'{cost / nerd:.2f}')
                cells = cells if math.isfinite(cost) else ('-', '-')
                print(f'| {robot} | {worlds} | {name} | {steps} | {" | ".join(cells)} |',
                      flush=True)


def bound_table(robots) -> list[str]:
    """Print the second table; return what misses its bound."""
    print('\n| robot | flops | bytes | Gflop/s | GB/s | bound [µs] | step [µs] | ratio |\n'
          + '|---' * 8 + '|')
    missed = []
    for robot in robots:
        learned, _ = learned_model(RobotSpec.load(robot))
        flops, size = arithmetic(learned)
        rate, bandwidth = matrix_rate(), read_rate(size)
        bound, took = max(flops / rate, size / bandwidth), network_cost(learned)
        print(f'| {robot} | {flops} | {size} | {rate / 1e9:.0f} | {bandwidth / 1e9:.0f} | '
              f'{1e6 * bound:.1f} | {1e6 * took:.1f} | {took / bound:.2f} |', flush=True)
        if not took <= STEP_BOUND * bound:
            missed.append(f'compiled step of {robot}: {took / bound:.2f} times its bound, not '
                          f'{STEP_BOUND:g}')
    return missed


def arithmetic(learned: NerdModel) -> tuple[int, int]:
    """Floating-point operations of a step, and bytes of weights and history that it reads."""
    matrices = sum(v.numel() for v in learned.state_dict().values() if v.ndim > 1)
    weights = sum(v.numel() for v in learned.state_dict().values())
    history = 2 * sum(learned.config.spans) * learned.config.width
    return 2 * (matrices + history), 4 * (weights + history)


def matrix_rate() -> float:
    """Floating-point operations per second of a product of matrices that stay in the cache."""
    size = 256
    one, other, out = (torch.rand(size, size) for _ in range(3))
    return 2 * size ** 3 / cpu_time(lambda: torch.mm(one, other, out=out))


def read_rate(size: int) -> float:
    """Bytes per second of reading the same `size` bytes again and again."""
    values = torch.rand(size // 4)
    return size / cpu_time(lambda: torch.dot(values, values))


def node_table(robots, seconds: float) -> list[str]:
    """Print the third table; return what misses its bound."""
    print('\n| robot | world | solver | times real time | heard | over wall time | heard |\n'
          + '|---' * 7 + '|')
    missed = []
    for robot in robots:
        learned, name = learned_model(RobotSpec.load(robot))
        solver = 'neural' if name == 'NeRD' else 'mujoco'
        for world in ('empty', RobotSpec.load(robot).world):
            limits = learned.layout.effort_limits.tolist()
            alone, heard = (loop.speed_on_one_core(robot, world, solver, limits, seconds, heard)
                            for heard in (False, True))
            cells = (f'{value:.1f}' for value in (alone[0], heard[0], alone[1], heard[1]))
            print(f'| {robot} | {world} | {solver} | {" | ".join(cells)} |', flush=True)
            if not alone[0] >= NODE_BOUND:
                missed.append(f'node with {robot} in {world}: {alone[0]:.1f} times real time, '
                              f'not {NODE_BOUND:g}')
    return missed


def main() -> int:
    """Print the tables; with --check return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--robot', action='append', choices=ROBOTS, help='by default all')
    parser.add_argument('--seconds', type=float, default=15.0, help='that each node runs')
    parser.add_argument('--tables', default='costs,bound,node', help='which, by default all')
    parser.add_argument('--check', action='store_true', help='exit 1 when a bound is missed')
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    robots, missed = arguments.robot or ROBOTS, []
    print(loop.machine() + '\n')
    tables = arguments.tables.split(',')
    if 'costs' in tables:
        cost_table(robots)
    if 'bound' in tables:
        missed += bound_table(robots)
    if 'node' in tables:
        missed += node_table(robots, arguments.seconds)
    for line in missed:
        print(f'missed: {line}')
    return 1 if arguments.check and missed else 0


if __name__ == '__main__':
    sys.exit(main())
