# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Impacts of the pendulum on movable boxes: the hybrid scene against the all-analytic one.

    python benchmarks/impact.py --check

The straight pendulum swings up into a box that stands on a smooth floor; mass, speed of the tip
and angle between its path and the face of the box vary. The same again without floor, where the
box starts to fall and nothing but pendulum and box exchanges momentum. Columns:

- box, pendulum: speed against the all-analytic scene, 60 ms after the touch, when the blow is
  over, and 0.5 s after it. The speed of the box is horizontal, that of the pendulum the root of
  the sum of squares of elbow and tip. Relative to the analytic speed, but differences below
  2 mm/s of the box and 2 % of the tip's speed before the touch of the pendulum count as none:
  what the blow has brought nearly to rest has no meaningful relative error.
- balance (without floor): angular momentum about the shoulder that the blow made or lost in both
  bodies together, over what the box received.
- energy: what the blow added to the scene, over its kinetic energy before.

Last, a box that leans on the hanging pendulum: how far box and tip move in 2 s.
"""

import argparse
import sys

import numpy as np

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import mujoco_solver
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers.analytic import Substepped
from nerd_ros.scene.solvers.make_solver import with_obstacles
from nerd_ros.scene.world import ground_plane, Obstacle, World

MASSES, SPEEDS, ANGLES = (0.5, 5.0, 50.0), (1.0, 2.0, 4.0), (0.3, 0.7)   # kg, m/s, rad
BOX, FLOOR_HEIGHT = 0.2, 0.1        # edge of the box; the tip of the pendulum hangs at 0.13 [m]
LENGTHS, RADIUS = (0.2, 0.3), 0.02  # of the links [m]
RUN_UP, AFTER, LATER = 0.02, 0.06, 0.5   # before and after the touch [s]
LEANING_MASSES, TILT = (0.3, 1.0), 0.45  # kg, rad
BOUNDS = {'box after': 0.10, 'box later': 0.10, 'pendulum after': 0.10, 'pendulum later': 0.10,
          'balance': 0.05, 'energy': 0.02, 'drift': 0.001}
SMALL_BOX, SMALL_SHARE = 0.002, 0.02     # differences that count as none [m/s, of the tip's]
GRAVITY = 9.81


def stand_in(scene):
    """Make an analytic solver in the place of the learned robot, the coupling as it is."""
    robot = mujoco_solver(scene.model, use_mujoco_contacts=False)
    return with_obstacles(scene, Substepped(robot, scene.spec.teacher.substeps))


def box(size, mass: float, middle, turn: float, friction: float) -> Obstacle:
    """Make a box of even density, turned about y."""
    square = np.square(size)
    inertia = mass / 12.0 * np.diag(square.sum() - square)
    return Obstacle('box', 'box', tuple(size),
                    (*middle, 0.0, float(np.sin(turn / 2)), 0.0, float(np.cos(turn / 2))),
                    static=False, mass=mass, friction=friction,
                    inertia=tuple(map(tuple, inertia.tolist())))


def impact_world(mass: float, angle: float, floor: bool) -> World:
    """Place a box where the tip of the straight pendulum touches its near face at `angle`."""
    x = sum(LENGTHS) * np.sin(angle) + RADIUS + 0.5 * BOX
    ground = (ground_plane(offset=FLOOR_HEIGHT, friction=0.01),) if floor else ()
    return World('impact', obstacles=(
        *ground, box((BOX,) * 3, mass, (x, 0.0, FLOOR_HEIGHT + 0.5 * BOX), 0.0, 0.01)))


def leaning_world(mass: float) -> World:
    """Tilt an upright box beyond its balance against the hanging pendulum."""
    size = np.array([0.1, 0.1, 0.3])
    turn = np.array([[np.cos(TILT), -np.sin(TILT)], [np.sin(TILT), np.cos(TILT)]])
    low = (turn @ [-0.5 * size[0], -0.5 * size[2]])[1]
    left = (turn @ [-0.5 * size[0], 0.5 * size[2]])[0]
    middle = (RADIUS - left, 0.0, FLOOR_HEIGHT - low)
    return World('leaning', obstacles=(ground_plane(offset=FLOOR_HEIGHT, friction=0.8),
                                       box(size, mass, middle, -TILT, 0.8)))


class Bench:
    """A scene of pendulum and box, and what momentum and energy it has."""

    def __init__(self, spec: RobotSpec, world: World, solver, model=None):
        self.simulation = sim = Simulation(spec, world, solver, model)
        newton_model = sim.scene.model
        self.mass, self.com = newton_model.body_mass.numpy(), newton_model.body_com.numpy()
        self.inertia = newton_model.body_inertia.numpy()
        self.shoulder = sim.body_q[0, 1, :3].copy()
        self.armature = newton_model.joint_armature.numpy()[:sim.layout.nqd].copy()
        self.friction = float(newton_model.joint_friction.numpy()[0])

    def swing(self, speed: float, angle: float) -> dict[str, np.ndarray]:
        """Let the tip reach `angle` with `speed` [m/s]; return the figures of each step."""
        sim = self.simulation
        sim.reset()
        rate = -speed / sum(LENGTHS)
        sim.set_state([-angle - RUN_UP * rate, 0.0], [rate, 0.0])
        rows = [self._look()]
        for _ in range(round((RUN_UP + LATER + 0.05) / sim.dt)):
            sim.step()
            rows.append(self._look())
        run = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        # What gravity and the friction of the shoulder gave is not the blow's.
        for name in ('pendulum', 'box'):
            torque = run[f'{name} torque']
            given = np.cumsum(0.5 * sim.dt * (torque[1:] + torque[:-1]))
            run[f'{name} momentum'] -= np.append(0.0, given)
        return run

    def drift(self) -> float:
        """Return how far box and tip move in 2 s [m], half a second after the start."""
        sim = self.simulation
        sim.reset()
        sim.step(round(0.5 / sim.dt))
        first = self._places()
        sim.step(round(2.0 / sim.dt))
        return float(np.linalg.norm(self._places() - first, axis=1).max())

    def _places(self) -> np.ndarray:
        poses = self.simulation.body_q[0]
        return np.array([poses[2, :3] + rotation(poses[2, 3:]) @ [0.0, 0.0, -LENGTHS[1]],
                         poses[3, :3]])

    def _look(self) -> dict[str, float]:
        """Figures of the current state; angular momentum about the shoulder along +y."""
        sim = self.simulation
        poses, twists, rates = sim.body_q[0], sim.body_qd[0], sim.joint_qd[0]
        momentum, torque = np.zeros(4), np.zeros(4)
        kinetic, potential = 0.5 * float(self.armature @ rates**2), 0.0
        for i in (1, 2, 3):
            turn = rotation(poses[i, 3:])
            arm = poses[i, :3] + turn @ self.com[i] - self.shoulder
            linear = self.mass[i] * twists[i, :3]
            angular = turn @ self.inertia[i] @ turn.T @ twists[i, 3:]
            momentum[i] = np.cross(arm, linear)[1] + angular[1]
            kinetic += 0.5 * (linear @ twists[i, :3] + angular @ twists[i, 3:])
            potential += self.mass[i] * GRAVITY * arm[2]
            torque[i] = self.mass[i] * GRAVITY * arm[0]
        elbow = LENGTHS[0] * twists[1, 3:]
        tip = np.cross(twists[1, 3:], poses[2, :3] - self.shoulder) \
            + np.cross(twists[2, 3:], rotation(poses[2, 3:]) @ [0.0, 0.0, -LENGTHS[1]])
        return {'box': np.linalg.norm(twists[3, :2]),
                'pendulum': np.sqrt(elbow @ elbow + tip @ tip),
                'box momentum': momentum[3], 'box torque': torque[3],
                'pendulum momentum': momentum[1:3].sum() + self.armature[0] * rates[0],
                'pendulum torque': torque[1:3].sum() - self.friction * np.tanh(1e3 * rates[0]),
                'kinetic': kinetic, 'energy': kinetic + potential}


def rotation(quat: np.ndarray) -> np.ndarray:
    """Matrix of a quaternion xyzw."""
    x, y, z, w = (float(v) for v in quat)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def compare(hybrid, analytic, speed: float, dt: float, floor: bool) -> dict[str, float]:
    """Return the columns of one row from two runs of `Bench.swing`."""
    before = int(np.argmax(analytic['box'] > 1e-3)) - 1
    after, later = before + 1 + round(AFTER / dt), before + 1 + round(LATER / dt)
    row = {}
    for body, small in (('box', SMALL_BOX), ('pendulum', SMALL_SHARE * speed)):
        for name, at in (('after', after), ('later', later)):
            mine, reference = float(hybrid[body][at]), float(analytic[body][at])
            difference = abs(mine - reference)
            row[f'{body} {name}'] = 0.0 if difference < small else difference / reference
    if not floor:
        received, lost = (hybrid[f'{body} momentum'][after] - hybrid[f'{body} momentum'][before]
                          for body in ('box', 'pendulum'))
        row['balance'] = float(abs(1.0 + lost / received))
    row['energy'] = (hybrid['energy'][after] - hybrid['energy'][before]) \
        / hybrid['kinetic'][before]
    return row


def rows(spec: RobotSpec, solver, model):
    """Yield name and columns of each row."""
    for floor in (True, False):
        for mass in MASSES:
            for angle in ANGLES:
                world = impact_world(mass, angle, floor)
                hybrid = Bench(spec, world, solver, model)
                analytic = Bench(spec, world, 'mujoco')
                for speed in SPEEDS:
                    name = (f'{mass:g} kg, {speed:g} m/s, {angle:g} rad, '
                            + ('floor' if floor else 'falling'))
                    yield name, compare(hybrid.swing(speed, angle), analytic.swing(speed, angle),
                                        speed, spec.dt, floor)
    for mass in LEANING_MASSES:
        bench = Bench(spec, leaning_world(mass), solver, model)
        yield f'{mass:g} kg, leaning', {'drift': bench.drift()}


def main() -> int:
    """Print the table; with --check return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--check', action='store_true', help='exit 1 when a bound is missed')
    parser.add_argument('--solver', default='neural', choices=('neural', 'featherstone', 'mujoco'),
                        help='of the robot in the hybrid scene; mujoco: an analytic stand-in')
    parser.add_argument('--model', help='folder of the learned model, by default the shipped one')
    arguments = parser.parse_args()
    solver = stand_in if arguments.solver == 'mujoco' else arguments.solver

    missed = []
    print('| impact | ' + ' | '.join(BOUNDS) + ' |')
    print('|---|' + '---|' * len(BOUNDS))
    for name, row in rows(RobotSpec.load('double_pendulum'), solver, arguments.model):
        cells = [f'{row[column]:.4f}' if column in row else '-' for column in BOUNDS]
        print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)
        missed += [f'{name}: {column} is {value:.4f}, not within {BOUNDS[column]:g}'
                   for column, value in row.items() if not value <= BOUNDS[column]]
    for line in missed:
        print(f'missed: {line}')
    return 1 if arguments.check and missed else 0


if __name__ == '__main__':
    sys.exit(main())
