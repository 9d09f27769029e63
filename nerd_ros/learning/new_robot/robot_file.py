# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The RobotSpec of a new robot, written from its URDF with a comment on every choice."""

import math
import os
from pathlib import Path
import re

from lxml import etree
import numpy as np

from nerd_ros.dynamics.layout import JOINT_DOFS, RobotLayout
from nerd_ros.learning.data.random_trajectories import sample_trajectories
from nerd_ros.learning.data.sampling import Sampler
from nerd_ros.learning.new_robot.commented_yaml import Choice, comment, plain, render
from nerd_ros.learning.new_robot.contact_choices import contact_choices
from nerd_ros.learning.new_robot.robot_choices import (
    base_type, evaluation_choices, joint_choices, joint_speeds, rounded, sampling_choices)
from nerd_ros.scene.robot.mimics import read_mimics
from nerd_ros.scene.robot.robot_spec import FORMAT_VERSION, RobotError, RobotSpec
from nerd_ros.scene.robot.robot_warnings import warn
from nerd_ros.scene.robot.robots import joint_order
from nerd_ros.scene.robot.sampling_spec import SamplingSpec
from nerd_ros.scene.robot.urdf import read_tree
from nerd_ros.scene.robot.urdf_joints import moving_joints, number
from nerd_ros.scene.robot_figures import initial_position, measure, RobotFigures
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.teacher import TeacherRollouts
from nerd_ros.scene.world import World

DT = 0.005
_FAR = 4                 # folders up from which on a URDF is named by its whole path
_POSITIONS = 50          # random positions in which the robot is measured
_CLEARANCE = 0.02        # of the robot above the floor after a reset [m]
_LONGEST_STEP = 0.0025   # of the solver: contacts and end stops act within 0.01 s [s]
_SHORTEST_STEP = 5e-4    # [s]
_TEST_TIME = 0.1         # of random motion that decides on substeps [s]
_TRAJECTORIES = 32       # likewise
_TOLERANCE = 1e-3        # what twice the substeps may change positions by [rad or m]


def write_robot_file(urdf: Path, output: Path | None = None, floating: bool | None = None,
                     dt: float = DT, force: bool = False) -> Path:
    """
    Write the RobotSpec of a URDF or xacro and return its path.

    By default it goes to `<name>.yaml` in the current folder, the base is guessed, and `dt` [s]
    is that of most commands and joint states. Raises RobotError for a URDF that cannot be used
    and for a file that exists, unless `force`.
    """
    path = output or Path(f'{_name(urdf.name.split(".")[0])}.yaml')
    root, floats = read_tree(urdf)
    if path.suffix != '.yaml':
        raise RobotError(f'{path}: a robot file ends in .yaml; give such an --output.')
    if path.exists() and not force:
        raise RobotError(f'{path}: exists; give --force to overwrite it, or another --output.')
    sections = _sections(root, base_type(root, floats, floating), urdf, _name(path.stem), dt)
    _warn_of_missing_limits(root, urdf)
    there = os.path.relpath(urdf.resolve(), path.resolve().parent)
    if there.startswith(os.path.join(*['..'] * _FAR)):
        there = str(urdf.resolve())
    sections['urdf'] = Choice(there, 'or xacro, relative to this file')
    head = (f'Robot {path.stem}, as `nerd-ros init` wrote it from {urdf.name}: all values are '
            'proposals. Lengths in m, angles in rad, time in s. Joints are in the order of the '
            "URDF; their friction, damping and position limits are the URDF's unless given here. "
            'All fields: nerd_ros/scene/robot/robot_spec.py.')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('\n'.join([*comment(head), *render(sections)]))
    RobotSpec.load(path)
    return path


def _warn_of_missing_limits(root: etree._Element, urdf: Path) -> None:
    """Tell which joints have no effort or velocity limit, and what is taken for them."""
    for attribute, taken in (
            ('effort', 'taken for joints without motor; else give effort_limit in the robot file'),
            ('velocity', 'sampling.velocity in the robot file is estimated')):
        names = [name for name, joint in moving_joints(root).items()
                 if joint.find('mimic') is None
                 and not number(joint.find('limit'), attribute, 0.0)]
        if names:
            warn(f'{urdf}: no {attribute} limit, or 0, of joint {", ".join(names)}: {taken}.')


def _name(text: str) -> str:
    """A name as RobotSpec takes it."""
    name = re.sub(r'\W+', '_', text, flags=re.ASCII).strip('_')[:100]
    return name if re.match('[A-Za-z]', name) else f'robot_{name}'.strip('_')


def _sections(root: etree._Element, base: Choice, urdf: Path, name: str, dt: float) -> dict:
    sections = {
        'format_version': Choice(FORMAT_VERSION, 'of this file'),
        'name': Choice(name, 'of data, models and folders'),
        'urdf': Choice(str(urdf), ''),
        'base': {'type': base, 'pose': Choice([0.0] * 6, '')},
        'dt': Choice(dt, 'time of one step of the learned model [s]'),
        'teacher': {'solver': Choice('mujoco', 'the analytic solver to learn from'),
                    'substeps': Choice(1, '')},
        'joints': {},
        'contact': {},
    }

    def build(visuals: bool = False) -> tuple[RobotSpec, RobotLayout]:
        # As if it lay in the current folder, from which the path of the URDF was given.
        spec = RobotSpec.from_data(plain(sections), Path(f'{name}.yaml'))
        return spec, build_scene(spec, World('nothing'), visuals=visuals).layout

    order, mimics = joint_order(root), read_mimics(root, urdf)
    sections['joints'] = joint_choices(order, root, mimics, {})
    inertia = _inertias(*build(visuals=True))   # which warns of all that looks wrong
    sections['joints'] = joint_choices(order, root, mimics, inertia)
    spec, layout = build()
    figures = measure(spec, _positions(layout, spec))
    sections['base']['pose'] = _pose(figures, layout.floating)
    sections['contact'] = contact_choices(spec, figures.reach)
    layout = build()[1]
    speeds, reason = joint_speeds(layout, root, figures)
    sections['sampling'] = sampling_choices(speeds, reason, figures, layout)
    sections['evaluation'] = evaluation_choices(
        speeds, figures, layout, height=sections['base']['pose'].value[2])
    sections['teacher']['substeps'] = _substeps(build()[0])
    return sections


def _positions(layout: RobotLayout, spec: RobotSpec) -> np.ndarray:
    """Joint coordinates (K, nq), the first those after a reset."""
    joint_q = Sampler(layout, SamplingSpec(), np.random.default_rng(0)).positions(_POSITIONS)
    if layout.floating:
        joint_q[:, :7] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
    joint_q[0] = initial_position(spec)
    return joint_q


def _inertias(spec: RobotSpec, layout: RobotLayout) -> dict[str, float]:
    """Smallest inertia of each joint."""
    inertia = measure(spec, _positions(layout, spec)).inertia
    first = layout.num_base_dofs
    return {joint.name: inertia[start - first:][:JOINT_DOFS[joint.type]].min()
            for joint, start in zip(layout.joints, layout.qd_start)}


def _pose(figures: RobotFigures, floating: bool) -> Choice:
    if floating:
        return Choice([0.0, 0.0, rounded(figures.depth + _CLEARANCE), 0.0, 0.0, 0.0],
                      'x y z [m], roll pitch yaw [rad] after a reset: just above the floor z = 0')
    height = rounded(figures.deepest + _CLEARANCE) if figures.depth > _CLEARANCE else 0.0
    return Choice([0.0, 0.0, height, 0.0, 0.0, 0.0], 'x y z [m], roll pitch yaw [rad]: ' + (
        'it hangs below its base, so that this is above the floor z = 0' if height else
        'it stands on the floor z = 0'))


def _substeps(spec: RobotSpec) -> Choice:
    """Smallest number of substeps that gives nearly the motion of twice as many."""
    steps = max(2, round(_TEST_TIME / spec.dt))
    sampling = spec.sampling.model_copy(update={'steps': steps, 'jump_share': 0.0})
    spec = spec.model_copy(update={'sampling': sampling})
    teacher = TeacherRollouts(spec, num_worlds=_TRAJECTORIES)
    sample = sample_trajectories(spec, teacher, _TRAJECTORIES, np.random.default_rng(0))

    def roll(substeps: int) -> np.ndarray:
        return teacher.rollout(sample.joint_q[:, 0], sample.joint_qd[:, 0], sample.effort,
                               sample.ground, box=sample.box, substeps=substeps)[0][:, -1]

    substeps = math.ceil(spec.dt / _LONGEST_STEP - 1e-6)
    motion = roll(substeps)
    while True:
        finer = roll(2 * substeps)
        change = np.abs(np.nan_to_num(finer - motion, nan=np.inf)).max(axis=1)
        if np.median(change) < _TOLERANCE or spec.dt / substeps < _SHORTEST_STEP:
            return Choice(substeps, (
                f'solver steps in one dt; twice as many change positions after '
                f'{steps * spec.dt:g} s of random motion by {np.median(change):.1g}, in one of '
                f'ten cases by {np.quantile(change, 0.9):.1g} or more [rad, m]'))
        substeps, motion = 2 * substeps, finer
