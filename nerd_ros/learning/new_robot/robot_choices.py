# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What to write into the RobotSpec of a new robot, derived from its URDF, and why."""

import math

from lxml import etree
import numpy as np

from nerd_ros.dynamics.layout import JOINT_DOFS, MimicLayout, RobotLayout
from nerd_ros.learning.new_robot.commented_yaml import Choice
from nerd_ros.scene.robot.urdf_joints import base_link, carriers, moving_joints, number
from nerd_ros.scene.robot_figures import RobotFigures

GRAVITY = 9.81
# A geared motor takes about this time to its velocity limit at full effort [s].
RISE_TIME = 0.025
# Share of the range of initial velocities that an impact changes them by.
JUMP = 0.15
_MOST_PER_STEP = {'prismatic': 0.05}   # of a joint in one dt [m]
_MOST_TURN = 0.5                       # likewise [rad]
_LEAST_SPEED = {'prismatic': 0.1}      # [m/s]
_LEAST_TURN = 1.0                      # [rad/s]


def rounded(value: float) -> float:
    """Return a value to two digits."""
    return float(f'{value:.2g}')


def base_type(root: etree._Element, floats: bool, floating: bool | None) -> Choice:
    """Guess whether the base of a URDF is fixed or floating; `floats`: it has a floating joint."""
    base, joints = base_link(root), root.findall('joint')
    if floating is not None:
        return Choice('floating' if floating else 'fixed', 'as asked for on the command line')
    if floats:
        return Choice('floating', 'the URDF carries it by a floating joint')
    moving = moving_joints(root).values()
    if not moving:
        return Choice('floating', 'without joints nothing else can move')
    carrier = carriers(root)
    heavy = any(link.find('inertial/mass') is not None for link in root.findall('link')
                if carrier[link.get('name')] == base)
    if not heavy:
        return Choice('fixed', f'link {base} has no mass, so that it cannot float')
    if base in ('world', 'map', 'ground'):
        return Choice('fixed', f'its first link is called {base}')
    chains = sum(carrier[joint.find('parent').get('link')] == base for joint in moving)
    if chains > 1:
        return Choice('floating', f'link {base} has mass and carries {chains} chains of joints, '
                                  'like the trunk of a vehicle or walker; else write fixed')
    return Choice('fixed', f'link {base} carries a single chain of {len(joints)} joints, like '
                           'that of an arm; else write floating')


def joint_choices(order: list[str], root: etree._Element, mimics: dict[str, MimicLayout],
                  inertia: dict[str, float]) -> dict:
    """Sections of the joints; armature is estimated where the `inertia` of a joint is known."""
    elements = moving_joints(root)
    return {name: Choice({}, f'follows {mimics[name].leader}, without effort')
            if name in mimics else _joint(elements[name], inertia.get(name, math.inf))
            for name in order}


def _joint(element: etree._Element, inertia: float) -> dict:
    kind, limit = element.get('type'), element.find('limit')
    force, mass, travel = (('N', 'kg', 'm') if kind == 'prismatic'
                           else ('N m', 'kg m^2', 'rad'))
    effort, speed = number(limit, 'effort', 0.0), number(limit, 'velocity', 0.0)
    section = {'effort_limit': Choice(effort, f'of the URDF [{force}]')}
    if not effort:
        section['effort_limit'] = Choice(
            0.0, 'the URDF gives no effort, or 0: taken for a joint without motor; else give its '
                 f'largest effort [{force}]')
    motor = rounded(max(RISE_TIME * effort / speed - inertia, 0.0)) if speed else 0.0
    section['armature'] = Choice(motor, (
        f'estimated, so that full speed takes {RISE_TIME:g} s; better: rotor inertia x gear '
        f'ratio^2 [{mass}]') if motor else
        f'rotor inertia x gear ratio^2, where it is known [{mass}]')
    if kind != 'ball':
        section['initial'] = Choice(0.0, f'position after a reset [{travel}]')
    if kind in ('revolute', 'prismatic'):
        lower, upper = (number(limit, side, 0.0) for side in ('lower', 'upper'))
        if not lower <= 0.0 <= upper:
            section['initial'] = Choice(round((lower + upper) / 2.0, 3), (
                f'after a reset: the middle, since 0 is beyond the limits [{travel}]'))
    return section


def joint_speeds(layout: RobotLayout, root: etree._Element, figures: RobotFigures
                 ) -> tuple[list[float], str]:
    """Range of velocities per joint [rad/s or m/s], and where it comes from."""
    elements, speeds, derived, dof = moving_joints(root), {}, [], 0
    for joint in layout.joints:
        part = slice(dof, dof + JOINT_DOFS[joint.type])
        dof = part.stop
        if joint.mimic is not None:
            continue
        limit = number(elements[joint.name].find('limit'), 'velocity', 0.0)
        if not limit:
            derived.append(joint.name)
            travel = min(joint.upper - joint.lower, math.pi / 2.0)
            drive = joint.effort_limit + figures.load[part]
            limit = np.sqrt(2.0 * travel * drive / figures.inertia[part]).max()
            limit = max(limit, _LEAST_SPEED.get(joint.type, _LEAST_TURN))
        most = _MOST_PER_STEP.get(joint.type, _MOST_TURN) / layout.dt
        speeds[joint.name] = rounded(min(limit, most))
    for joint in layout.joints:
        if joint.mimic is not None:
            speeds[joint.name] = rounded(abs(joint.mimic.multiplier) * speeds[joint.mimic.leader])
    reason = 'velocity limits of the URDF' if len(derived) < len(layout.joints) else ''
    if derived:
        names = f' for {", ".join(derived)}' if reason else ''
        reason += (f"{', and' if reason else ''} what effort and weight give within a quarter "
                   f'turn{names}')
    return [speeds[joint.name] for joint in layout.joints], reason


def sampling_choices(speeds: list[float], reason: str, figures: RobotFigures,
                     layout: RobotLayout) -> dict:
    """Section `sampling`."""
    reach = figures.reach
    slow = rounded(max(min([1.0, *speeds]), 0.01))
    section = {
        'steps': Choice(100, f'length of a trajectory [dt], {100 * layout.dt:g} s'),
        'velocity': Choice(speeds, f'largest initial velocity per joint [rad/s or m/s]: {reason}'
                           if speeds else 'there are no joints'),
        'still_share': Choice(0.05, 'trajectories that start with zero velocity'),
        'settled_share': Choice(0.15, 'trajectories that start after settle_steps without effort'),
        'settle_steps': Choice(max(1, round(1.0 / layout.dt)), '[dt], 1 s'),
        'slow_share': Choice(0.2, 'trajectories that stay near rest, where friction is learned'),
        'slow_velocity': Choice([0.001, slow], 'velocities of these, log-uniform [rad/s or m/s]'),
        'slow_effort': Choice([0.003, 0.3], 'efforts of these, log-uniform, of the limit'),
        'passive_share': Choice(0.25, 'trajectories without effort'),
        'single_joint_share': Choice(0.25 if len(speeds) > 1 else 0.0,
                                     'of the driven ones: only one joint has effort'),
        'smooth_share': Choice(0.25, 'of the driven ones: effort goes along straight lines'),
        'hold': Choice([1, 30], 'shortest and longest time that an effort lasts [dt]'),
        'jump_share': Choice(0.2, 'trajectories with velocity jumps, as impacts make them'),
        'jump_count': Choice([1, 3], 'jumps in such a trajectory'),
        'jump_velocity': Choice([rounded(JUMP * speed) for speed in speeds],
                                f'standard deviation of a jump: {JUMP:g} x velocity'),
        'no_ground_share': Choice(0.3 if layout.slots else 1.0, 'trajectories without ground'
                                  if layout.slots else 'no ground, which no slot would see'),
        'any_normal_share': Choice(0.2, 'of the others: walls, slopes and ceilings'),
        'ground_distance': Choice([rounded(0.2 * reach), rounded(1.1 * reach)],
                                  f'base to plane [m]; the robot reaches {reach:.2g} m far'),
        'ground_tilt': Choice(0.5, 'largest tilt of a floor [rad]'),
        'box_share': Choice(0.1 if layout.slots else 0.0, 'trajectories with a static box nearby'),
        'box_size': Choice([rounded(0.2 * reach), rounded(0.8 * reach)], 'its edges [m]'),
        'box_distance': Choice([rounded(0.1 * reach), rounded(0.9 * reach)], 'base to box [m]'),
        'max_penetration': Choice(0.002, 'of robot and ground at the start [m]'),
    }
    if not layout.floating:
        section['ground_lean'] = Choice(0.1 if figures.planar else 1.0, (
            'tilt of planes and boxes about the x axis [rad]' +
            (': little, since all moves in the x-z plane' if figures.planar else '')))
    else:
        linear, angular = base_speeds(figures)
        section |= {
            'base_velocity': Choice([linear, angular],
                                    'linear: a fall from its own height [m/s]; angular: turning '
                                    'over in such a fall [rad/s]'),
            'base_tilt': Choice(1.0 if speeds else 3.1416, (
                'largest initial tilt from upright [rad]; 3.1416: any orientation, for robots '
                'that fall over' if speeds else 'any orientation [rad]')),
            'base_jump_velocity': Choice([rounded(JUMP * linear), rounded(JUMP * angular)],
                                         f'standard deviation of a jump: {JUMP:g} x'),
        }
    return section


def base_speeds(figures: RobotFigures) -> tuple[float, float]:
    """Linear [m/s] and angular [rad/s] speeds that a floating base comes to."""
    linear = math.sqrt(2.0 * GRAVITY * figures.reach)
    return rounded(linear), rounded(linear / figures.reach)


def evaluation_choices(speeds: list[float], figures: RobotFigures, layout: RobotLayout,
                       height: float) -> dict:
    """Section `evaluation`; `height` of the base in the world [m]."""
    reach, depth = figures.reach, figures.depth
    section = {'duration': Choice(1.0, 'of a rollout [s]'),
               'velocity': Choice([rounded(0.5 * speed) for speed in speeds],
                                  'largest initial speed per joint: half of that in training')}
    if layout.floating:
        section |= {
            'base_velocity': Choice([rounded(0.5 * speed) for speed in base_speeds(figures)],
                                    'of the base [m/s, rad/s], likewise'),
            'base_tilt': Choice(0.5 if speeds else 3.1416, 'largest initial tilt [rad]'),
            'base_height': Choice([rounded(depth), rounded(depth + 0.5 * reach)],
                                  'above the ground [m]: standing, and falling to it'),
        }
    if layout.slots:
        floor = 0.0 if layout.floating else rounded(height - max(0.1 * reach, 0.6 * depth))
        section['grounds'] = Choice([{'height': floor}, {'height': floor, 'pitch': 0.2}],
                                    'planes through x = y = 0 at a height [m], the second tilted')
    return section
