# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The solvers of a scene, by name."""

import math
from pathlib import Path
import warnings

from newton.solvers import SolverBase
import numpy as np

from nerd_ros.arguments import SOLVERS
from nerd_ros.resources import resource_path, ResourceError
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import mujoco_solver, Scene
from nerd_ros.scene.solvers.analytic import FrictionFeatherstone, Substepped
from nerd_ros.scene.solvers.shadow import MujocoCShadow, SolverShadow
from nerd_ros.scene.solvers.solver_hybrid import SolverHybrid
from nerd_ros.scene.solvers.solver_mujoco_c import SolverMujocoC

# Featherstone's penalty contacts and the steep friction law need steps of this size [s].
_FEATHERSTONE_STEP = 5.0e-4
# MuJoCo's longest steps where bodies hit each other [s].
_BLOW_STEP = 1.25e-3


def make_solver(scene: Scene, name: str, model: Path | str | None = None) -> SolverBase:
    """
    Make a solver by name for all that is in `scene`.

    'neural' takes the learned model in folder `model`, by default the one that ships for the
    robot. Moving obstacles are MuJoCo's in each case.
    """
    if name == 'mujoco':
        return analytic_solver(scene)
    if name == 'neural':
        # Imports torch, which the analytic solvers do without.
        from nerd_ros.dynamics.checkpoint import load_checkpoint
        from nerd_ros.scene.solvers.solver_nerd import SolverNeRD
        folder = model or shipped_model(scene.spec)
        robot = SolverNeRD(scene.model, load_checkpoint(folder, scene.layout))
    elif name == 'featherstone':
        substeps = math.ceil(scene.spec.dt / _FEATHERSTONE_STEP - 1e-6)
        robot = Substepped(FrictionFeatherstone(scene.model), substeps)
    else:
        raise ValueError(f'unknown solver {name!r}; known are {", ".join(SOLVERS)}.')
    return with_obstacles(scene, robot)


def shipped_model(spec: RobotSpec) -> Path:
    """Return the folder of the model that ships for a robot; raises ValueError without one."""
    try:
        return resource_path('models', spec.name)
    except ResourceError:
        raise ValueError(
            f'no learned model ships for robot {spec.name}; name the folder of one (train it '
            f'with `nerd-ros train --robot {spec.source}`), or choose the solver mujoco.'
        ) from None


def analytic_solver(scene: Scene) -> SolverBase:
    """
    MuJoCo for everything in the scene: its C code for one world on the CPU, else MuJoCo-Warp.

    Where nothing but the robot moves it steps as the teacher does. Blows between bodies are not
    for RK4, whose contact forces are those of its last stage, and not for one step of dt: at
    5 ms boxes are hit up to half too fast, at 1.25 ms within a few per cent.
    """
    substeps, integrator = scene.spec.teacher.substeps, 'rk4'
    if _has_obstacles(scene):
        substeps, integrator = _blow_substeps(scene), 'implicitfast'
    if _in_c(scene):
        return SolverMujocoC(scene.model, substeps, integrator=integrator)
    with warnings.catch_warnings():
        # Steps this small make up for contact geometry that RK4 keeps during a step.
        warnings.filterwarnings('ignore', 'SolverMuJoCo with RK4 and Newton contacts')
        solver = mujoco_solver(scene.model, use_mujoco_contacts=False, integrator=integrator)
    return Substepped(solver, substeps)


def with_obstacles(scene: Scene, robot: SolverBase) -> SolverBase:
    """Let `robot` step the robot, and MuJoCo the moving obstacles where there are any."""
    if not _has_obstacles(scene):
        return robot
    bodies = np.arange(scene.model.body_count).reshape(-1, scene.body_stride)
    robots, obstacles = (part.reshape(-1) for part in np.split(bodies, [scene.num_links], axis=1))
    if _in_c(scene):
        shadow = MujocoCShadow(scene.model, robots, obstacles,
                               scene.spec.dt / _blow_substeps(scene), integrator='implicitfast')
    else:
        shadow = SolverShadow(analytic_solver(scene), analytic_solver(scene))
    return SolverHybrid(scene.model, robot, shadow, robots)


def _blow_substeps(scene: Scene) -> int:
    return max(scene.spec.teacher.substeps, math.ceil(scene.spec.dt / _BLOW_STEP - 1e-6))


def _in_c(scene: Scene) -> bool:
    """Whether MuJoCo's C code is the fastest; it steps one world at a time."""
    return scene.num_worlds == 1 and scene.model.device.is_cpu


def _has_obstacles(scene: Scene) -> bool:
    return scene.num_links < scene.body_stride
