# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Minutes of random effort commands, as fast as the machine can, for each robot of the package.

    python benchmarks/endurance.py --check

Each joint gets a new effort 10 times a second, within a share of its limits that is drawn anew
every two seconds; then a robot that floats is tossed as well. (The full limits all the time would
spin even the teacher of the double pendulum up to twice the speed that its model has learned.) In
the robot's own world and in the empty one. Columns: guard
events, largest speed of a joint or of the base over the speed at which the guard acts, share of
steps outside what the model has learned (score above 1), and simulated over wall time. `--check`
exits 1 when the guard had to act or a state is not finite.
"""

import argparse
import sys
import time

import numpy as np

from nerd_ros.scene.simulation import Simulation

ROBOTS = ('double_pendulum', 'cartpole', 'cube')
HOLD, STRETCH = 0.1, 2.0                  # [s]
TOSS_SPEED, TOSS_SPIN = 2.0, 10.0         # largest of a toss [m/s, rad/s]


def row(robot: str, world: str | None, arguments) -> tuple[list[str], bool]:
    """Run a robot; return the cells of its row, and whether it went well."""
    simulation = Simulation(robot, world, arguments.solver, arguments.model)
    rng, dt = np.random.default_rng(arguments.seed), simulation.dt
    limits = simulation.layout.effort_limits
    speed_limit = np.abs(getattr(simulation.solver, 'speed_limit', np.inf))
    worst, far, finite = 0.0, 0, True
    begin = time.perf_counter()
    for hold in range(round(60.0 * arguments.minutes / HOLD)):
        if hold % round(STRETCH / HOLD) == 0:
            share = rng.uniform()
            if simulation.layout.floating:
                toss(simulation, rng)
        simulation.set_effort(share * rng.uniform(-limits, limits))
        for _ in range(round(HOLD / dt)):
            simulation.step()
            worst = max(worst, float((np.abs(simulation.joint_qd[0]) / speed_limit).max()))
            far += simulation.score > 1.0
        finite &= bool(np.isfinite(simulation.body_q).all())
    took, steps = time.perf_counter() - begin, simulation.steps
    cells = [robot, simulation.world.name, arguments.solver, f'{steps * dt / 60.0:.1f} min',
             str(simulation.guard_events), f'{worst:.2f}', f'{far / steps:.4f}',
             f'{steps * dt / took:.0f}']
    return cells, finite and simulation.guard_events == 0


def toss(simulation: Simulation, rng: np.random.Generator) -> None:
    """Throw a floating robot from its start, turned at random."""
    turn = rng.normal(size=4)
    joint_q = [*simulation.spec.base.pose[:3], *(turn / np.linalg.norm(turn)),
               *simulation.joint_q[0, 7:]]
    joint_qd = np.zeros(simulation.layout.nqd)
    joint_qd[:6] = rng.uniform(-1.0, 1.0, 6) * np.repeat([TOSS_SPEED, TOSS_SPIN], 3)
    simulation.set_state(joint_q, joint_qd)


def main() -> int:
    """Print the table; with --check return 1 when a run did not go well."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--robot', action='append', choices=ROBOTS, help='by default all')
    parser.add_argument('--world', help='in place of the two')
    parser.add_argument('--solver', default='neural', choices=('neural', 'mujoco', 'featherstone'))
    parser.add_argument('--model', help='folder of the learned model, by default the shipped one')
    parser.add_argument('--minutes', type=float, default=10.0, help='of simulated time')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--check', action='store_true', help='exit 1 when a run went wrong')
    arguments = parser.parse_args()
    print('| robot | world | solver | time | guard events | speed over limit | far share '
          '| times real time |\n|' + '---|' * 8)
    failed = []
    for robot in arguments.robot or ROBOTS:
        for world in (arguments.world,) if arguments.world else ('empty', None):
            cells, ok = row(robot, world, arguments)
            print(f'| {" | ".join(cells)} |', flush=True)
            failed += [] if ok else [f'{robot} in {cells[1]}: {cells[4]} guard events']
    for line in failed:
        print(f'missed: {line}')
    return 1 if arguments.check and failed else 0


if __name__ == '__main__':
    sys.exit(main())
