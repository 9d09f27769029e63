# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The teacher: batches of analytic motion that a model learns from and is measured against.

It is MuJoCo's C code on the very model that Newton's SolverMuJoCo builds from the scene, with one
endless plane as ground, which differs from trajectory to trajectory.
"""

import copy

import mujoco
from mujoco import rollout as mujoco_rollout
import newton
import numpy as np

from nerd_ros.scene.contacts import ContactSlots
from nerd_ros.scene.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.scene import build_scene, FAR, mujoco_solver
from nerd_ros.scene.world import ground_plane, plane_pose, World

GRAVITY = (0.0, 0.0, -9.81)


class TeacherRollouts:
    """
    Analytic rollouts of one robot, up to `num_worlds` at a time.

    Joint coordinates, velocities and efforts are those of `layout`: rad or m, N m or N. Planes
    (N, 4) are unit normal and offset [m] of the points x with normal . x = offset, world frame;
    offset -inf means no ground.
    """

    def __init__(self, spec: RobotSpec, num_worlds: int = 512, threads: int = 1):
        """Raise RobotError for a robot that cannot be used or that has a floating base."""
        if spec.base.type == 'floating':
            raise RobotError(f'{spec.source}: the teacher moves robots with a fixed base only.')
        world = World('teacher', GRAVITY, (ground_plane(friction=spec.contact.friction),))
        template = build_scene(spec, world)
        self.layout = template.layout
        self.base_pose = np.array(template.model.joint_X_p.numpy()[0], np.float32)
        self.num_worlds = num_worlds
        self._dt = spec.dt
        self._substeps = spec.teacher.substeps
        reference = mujoco_solver(template.model, use_mujoco_cpu=True).mj_model
        self._ground = int(np.flatnonzero(
            reference.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)[0])
        # Else the geometry is taken to lie in the frame of its body, wherever it is moved.
        reference.geom_sameframe[self._ground] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
        self._models = [copy.copy(reference) for _ in range(num_worlds)]
        self._datas = [mujoco.MjData(reference) for _ in range(threads)]
        self._pool = mujoco_rollout.Rollout(nthread=threads)
        self._scene = build_scene(spec, world, num_worlds)
        self._state = self._scene.model.state()
        self._slots = ContactSlots(self._scene)

    def rollout(self, joint_q: np.ndarray, joint_qd: np.ndarray, effort: np.ndarray,
                ground: np.ndarray, jump: np.ndarray | None = None,
                substeps: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the motion from N initial states under given efforts.

        Args:
            joint_q, joint_qd: initial states (N, nq), (N, nqd).
            effort: (N, T, A), held during its step.
            ground: planes (N, 4).
            jump: velocity (N, T, nqd) added after each step, as by an impact.
            substeps: solver steps per dt in place of the robot's own.

        Returns: joint_q (N, T+1, nq) and joint_qd (N, T+1, nqd), float64, initial state first.
        """
        count, steps = effort.shape[:2]
        substeps = substeps or self._substeps
        models = self._prepare(ground, substeps)
        joint_qs = np.empty((count, steps + 1, joint_q.shape[1]))
        joint_qds = np.empty((count, steps + 1, joint_qd.shape[1]))
        joint_qs[:, 0], joint_qds[:, 0] = joint_q, joint_qd
        if jump is None:
            jump = np.zeros((count, steps, joint_qd.shape[1]))
        # One call as far as no velocity jumps, then on from the state after the jump.
        jumping = np.any(jump != 0.0, axis=(1, 2))
        smooth = np.flatnonzero(~jumping)
        self._advance(models, smooth, 0, steps, effort, joint_qs, joint_qds, substeps)
        rest = np.flatnonzero(jumping)
        for step in range(steps if len(rest) else 0):
            self._advance(models, rest, step, step + 1, effort, joint_qs, joint_qds, substeps)
            joint_qds[rest, step + 1] += jump[rest, step]
        return joint_qs, joint_qds

    def contacts(self, joint_q: np.ndarray, ground: np.ndarray) -> np.ndarray:
        """Contact slots (N, T, S, 7) of states joint_q (N, T, nq) above planes (N, 4)."""
        count, steps, width = joint_q.shape
        planes = np.tile(np.array([0.0, 0.0, 1.0, -np.inf]), (self.num_worlds, 1))
        planes[:count] = ground
        self._scene.set_ground(planes)
        values = np.empty((count, steps, *self._slots.values.shape[1:]), np.float32)
        padded = np.zeros((self.num_worlds, width), np.float32)
        for step in range(steps):
            padded[:count] = joint_q[:, step]
            self._state.joint_q.assign(padded.reshape(-1))
            newton.eval_fk(self._scene.model, self._state.joint_q, self._state.joint_qd,
                           self._state)
            self._slots.update(self._state)
            values[:, step] = self._slots.values.numpy()[:count]
        return values

    def _prepare(self, ground: np.ndarray, substeps: int) -> list:
        """One MuJoCo model per trajectory, with its ground and time step."""
        if len(ground) > self.num_worlds:
            raise ValueError(f'{len(ground)} trajectories for a teacher of {self.num_worlds}.')
        models = self._models[:len(ground)]
        for model, plane in zip(models, np.asarray(ground, float)):
            x, y, z, qx, qy, qz, qw = plane_pose(plane[:3], max(plane[3], FAR))
            model.geom_pos[self._ground] = x, y, z
            model.geom_quat[self._ground] = qw, qx, qy, qz
            model.opt.timestep = self._dt / substeps
        return models

    def _advance(self, models, rows, first: int, last: int, effort, joint_qs, joint_qds,
                 substeps: int) -> None:
        """Move trajectories `rows` from step `first` to `last`, in place."""
        if not len(rows):
            return
        nq, nqd = joint_qs.shape[2], joint_qds.shape[2]
        # MuJoCo's full state: time, positions, velocities.
        initial = np.concatenate([np.zeros((len(rows), 1)), joint_qs[rows, first],
                                  joint_qds[rows, first]], axis=1)
        states, _ = self._pool.rollout(
            [models[row] for row in rows], self._datas, initial,
            np.repeat(effort[rows, first:last].astype(float), substeps, axis=1),
            control_spec=int(mujoco.mjtState.mjSTATE_QFRC_APPLIED))
        states = states[:, substeps - 1::substeps]
        joint_qs[rows, first + 1:last + 1] = states[:, :, 1:1 + nq]
        joint_qds[rows, first + 1:last + 1] = states[:, :, 1 + nq:1 + nq + nqd]
