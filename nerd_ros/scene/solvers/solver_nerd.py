# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""SolverNeRD: the robot's learned model as a Newton solver."""

from pathlib import Path
from typing import NamedTuple

import newton
import numpy as np
import torch
import warp as wp

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.dynamics.fast_step import FastStep
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.residual import STEPS
from nerd_ros.scene.contacts import ContactSlots
from nerd_ros.scene.rows import RobotRows
from nerd_ros.scene.solvers.external_force import ExternalForce
from nerd_ros.scene.solvers.recent_inputs import RecentInputs
from nerd_ros.scene.solvers.split_solver import Part, SplitSolver
from nerd_ros.scene.teacher import GRAVITY

# What gravity may differ from the learned one by, as a share of it; 9.8 m/s^2 passes for 9.81.
_GRAVITY_TOLERANCE = 0.005


class PreparedModel(NamedTuple):
    """A learned model that a SolverNeRD can go on with at once."""

    learned: NerdModel
    network: '_OneRobot | _ManyRobots'


class SolverNeRD(SplitSolver):
    """
    Steps the robot of each world of `model` with its learned dynamics; all else stands still.

    `learned` is a NerdModel or the folder of one. Static geometry acts through the contact slots
    of the robot, so `step` takes no notice of `contacts`; moving bodies act on the robot by
    SolverHybrid, and wrenches of the user's by `State.body_f`, see ExternalForce. The history of
    the last steps is kept here: `reset` clears it, and it has to be called when a state is set
    from outside. `set_model` goes on with another model between two steps.

    Raises ValueError when `model` does not hold the robot or has another gravity than was
    learned, and from `step` when `dt` is not the time step that was learned.
    """

    uses_contacts = False

    def __init__(self, model: newton.Model, learned: NerdModel | Path | str):
        super().__init__(model)
        if not isinstance(learned, NerdModel):
            learned = load_checkpoint(learned)
        self._rows = rows = RobotRows.find(model, learned.layout)
        self._slots = ContactSlots(rows)
        self._force = ExternalForce(rows)
        worlds, layout, device = rows.num_worlds, learned.layout, model.device
        self._q = wp.zeros((worlds, layout.nq), dtype=float, device=device)
        self._qd = wp.zeros((worlds, layout.nqd), dtype=float, device=device)
        self._base = wp.zeros((worlds, 7), dtype=float, device=device)
        self._new_q, self._new_qd = wp.zeros_like(self._q), wp.zeros_like(self._qd)
        self._inputs = (self._q, self._qd, self._force.effort, self._slots.values,
                        model.gravity[:worlds], self._base)
        self._kind = _OneRobot if worlds == 1 and device.is_cpu else _ManyRobots
        self.learned, self._network = self.prepare_model(learned)
        self._recent = RecentInputs(self._network.inputs,
                                    max(learned.config.receptive_field, STEPS))

    def prepare_model(self, learned: NerdModel | Path | str) -> PreparedModel:
        """
        Load and compile what `set_model` then takes at once.

        It takes its time, and touches nothing that a step uses, so any thread may do it. Raises
        ValueError for a model of another robot, of another gravity, or that cannot be loaded.
        """
        layout = self._rows.layout
        if not isinstance(learned, NerdModel):
            learned = load_checkpoint(learned, layout)
        elif differences := learned.layout.differences(layout):
            raise ValueError(f'the model is one of another robot than {layout.robot}: '
                             f'{"; ".join(differences)}.')
        _check_gravity(self._rows, learned)
        return PreparedModel(learned, self._kind(learned, self._inputs,
                                                 (self._new_q, self._new_qd)))

    def set_model(self, model: PreparedModel | NerdModel | Path | str) -> None:
        """
        Go on with another model, between two steps; states stay as they are.

        It sees the last steps as if it had taken them; where it looks further back than the first
        model did, it begins with what is known. Raises ValueError, and changes nothing, where
        `prepare_model` does.
        """
        if not isinstance(model, PreparedModel):
            model = self.prepare_model(model)
        model.network.follow(self._recent)
        self.learned, self._network = model

    @property
    def score(self) -> float:
        """How far the last step of world 0 lay from the training data; above 1 is far."""
        return self._network.score

    @property
    def speed_limit(self) -> np.ndarray:
        """Speed of each dof above which the motion has diverged, (nqd,) [rad/s, m/s]."""
        return self.learned.speed_limit.cpu().numpy()

    def parts(self, state_in, state_out, control, contacts, dt) -> list[Part]:
        """Return the parts of a step: gather its inputs, run the network, update the robot."""
        if abs(dt - self.learned.layout.dt) > 1e-6:
            raise ValueError(f'the model of {self.learned.layout.robot} has learned steps of '
                             f'{self.learned.layout.dt:g} s and cannot take one of {dt:g} s.')
        return [Part(lambda: self._prepare(state_in, control, dt)),
                Part(self._predict, host=True),
                Part(lambda: self._finish(state_in, state_out, dt))]

    def _prepare(self, state_in, control, dt) -> None:
        self._slots.update(state_in)
        self._force.split(state_in, control, dt)
        rows, model = self._rows, self.model
        wp.launch(_gather, rows.num_worlds, [
            rows.q_stride, rows.qd_stride, rows.body_stride, int(rows.layout.floating),
            state_in.joint_q, state_in.joint_qd, state_in.body_q, model.joint_X_p,
            model.joint_count // rows.num_worlds,
        ], [self._q, self._qd, self._base], device=self.device)

    def _predict(self) -> None:
        self._recent.record()
        self._network.step()

    def _finish(self, state_in, state_out, dt) -> None:
        """Add what acts on top of the network and update the robot's links."""
        rows = self._rows
        if state_out is not state_in:
            for name in ('joint_q', 'joint_qd', 'body_q', 'body_qd'):
                wp.copy(getattr(state_out, name), getattr(state_in, name))
        wp.launch(_scatter, rows.num_worlds, [
            rows.q_stride, rows.qd_stride, self._new_q, self._new_qd,
        ], [state_out.joint_q, state_out.joint_qd], device=self.device)
        self._force.add(state_out, dt)
        newton.eval_fk(self.model, state_out.joint_q, state_out.joint_qd, state_out,
                       mask=self._force.robots)

    def reset(self, state, world_mask=None, flags=None) -> None:
        """Forget the history of the robots in `world_mask` (W + 1,), of all by default."""
        mask = self._normalize_reset_world_mask(world_mask)
        worlds = None if mask is None else mask.numpy()[:-1]
        self._network.reset(worlds)
        self._recent.reset(worlds)


def _check_gravity(rows: RobotRows, learned: NerdModel) -> None:
    """Refuse a gravity that was not learned: of gravity a token holds the direction alone."""
    model, robot, strength = rows.model, learned.layout.robot, float(np.linalg.norm(GRAVITY))
    # A mean of directions is as long as each of them only where all are the same.
    usual = learned.token_mean[:3].cpu().numpy()
    one_side = not learned.layout.floating and np.linalg.norm(usual) > 1.0 - 1e-3
    bases = model.joint_X_p.numpy()[::model.joint_count // rows.num_worlds, 3:]
    for gravity, base in zip(model.gravity.numpy()[:rows.num_worlds], bases):
        world = f'the world has a gravity of {_vector(gravity)} m/s^2'
        if abs(np.linalg.norm(gravity) / strength - 1.0) > _GRAVITY_TOLERANCE:
            raise ValueError(f'{world}, but the model of {robot} has learned motion under '
                             f'{strength:g} m/s^2; choose the solver mujoco.')
        side = np.array(wp.quat_rotate_inv(wp.quat(*base), wp.vec3(*gravity))) / strength
        if one_side and np.linalg.norm(side - usual) > 2.0 * _GRAVITY_TOLERANCE:
            raise ValueError(f'{world}, which pulls the base of {robot} along {_vector(side)}, '
                             f'but its model has learned {_vector(usual)}; choose the solver '
                             'mujoco, or turn the base with gravity.')


def _vector(values) -> str:
    return f'({", ".join(f"{value:.4g}" for value in values)})'


class _OneRobot:
    """The compiled step, on the memory of the solver's arrays."""

    def __init__(self, learned: NerdModel, inputs, outputs):
        self.inputs = [array.numpy() for array in inputs]
        self._arrays = [array.numpy()[0] for array in (*inputs, *outputs)]
        self._unused = [np.zeros_like(array) for array in self._arrays[-len(outputs):]]
        self._step = FastStep(learned)
        # The first one may have to be compiled, which takes seconds.
        self._step.step(*(np.zeros_like(array) for array in self._arrays))
        self._step.reset()

    @property
    def score(self) -> float:
        return self._step.score

    def step(self) -> None:
        self._step.step(*self._arrays)

    def reset(self, mask) -> None:
        if mask is None or mask[0]:
            self._step.reset()

    def follow(self, recent: RecentInputs) -> None:
        self._step.reset()
        for _, inputs in recent.replay():
            self._step.step(*(values[0] for values in inputs), *self._unused)


class _ManyRobots:
    """The torch step, on the memory of the solver's arrays."""

    def __init__(self, learned: NerdModel, inputs, outputs):
        self._learned = learned.to(wp.device_to_torch(inputs[0].device))
        self._stream = self._learned.start(inputs[0].shape[0])
        self.inputs = [wp.to_torch(array, requires_grad=False) for array in inputs]
        self._outputs = [wp.to_torch(array, requires_grad=False) for array in outputs]

    @property
    def score(self) -> float:
        return float(self._stream.score[0])

    @torch.no_grad()
    def step(self) -> None:
        results = self._learned.step(self._stream, *self.inputs)
        for output, result in zip(self._outputs, results):
            output.copy_(result)

    def reset(self, mask) -> None:
        if mask is not None:
            mask = torch.as_tensor(mask, device=self._stream.known.device)
        self._stream.reset(mask)

    @torch.no_grad()
    def follow(self, recent: RecentInputs) -> None:
        for first, inputs in recent.replay():
            self.reset(first)
            self._learned.step(self._stream, *inputs)
        self.reset(recent.known == 0)


@wp.kernel
def _gather(q_stride: int, qd_stride: int, body_stride: int, floating: int,
            joint_q: wp.array[float], joint_qd: wp.array[float], body_q: wp.array[wp.transform],
            joint_X_p: wp.array[wp.transform], joint_stride: int,
            q: wp.array2d[float], qd: wp.array2d[float], base: wp.array2d[float]):
    world = wp.tid()
    for i in range(q.shape[1]):
        q[world, i] = joint_q[world * q_stride + i]
    for i in range(qd.shape[1]):
        qd[world, i] = joint_qd[world * qd_stride + i]
    pose = joint_X_p[world * joint_stride]
    if floating == 1:
        pose = body_q[world * body_stride]
    for i in range(7):
        base[world, i] = pose[i]


@wp.kernel
def _scatter(q_stride: int, qd_stride: int, q: wp.array2d[float], qd: wp.array2d[float],
             joint_q: wp.array[float], joint_qd: wp.array[float]):
    world = wp.tid()
    for i in range(q.shape[1]):
        joint_q[world * q_stride + i] = q[world, i]
    for i in range(qd.shape[1]):
        joint_qd[world * qd_stride + i] = qd[world, i]
