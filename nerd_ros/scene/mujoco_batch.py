# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Many robots in MuJoCo's C code, each with a ground and a box of its own."""

import copy

import mujoco
from mujoco import rollout as mujoco_rollout
import numpy as np

from nerd_ros.scene.mujoco_state import MujocoCoordinates
from nerd_ros.scene.scene import FAR, FAR_BOX, mujoco_solver, Scene
from nerd_ros.scene.world import plane_pose


class MujocoBatch:
    """
    Copies of the MuJoCo model of `scene`, which has one world with `ground` and `nearby_box`.

    States and efforts are Newton's, planes and boxes as in `TeacherRollouts`.
    """

    def __init__(self, scene: Scene, num_worlds: int, threads: int):
        solver = mujoco_solver(scene.model, use_mujoco_cpu=True)
        reference = solver.mj_model
        geoms = solver.mjc_geom_to_newton_shape.numpy()[0].tolist()
        self._ground = geoms.index(scene.ground_shapes[0])
        self._box = geoms.index(scene.box_shapes[0])
        # Else a geometry is taken to lie in the frame of its body, wherever it is moved.
        reference.geom_sameframe[[self._ground, self._box]] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
        # The boxes around groups of geometry, which it looks at first, do not move with them.
        reference.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
        self._first_dof, self._num_dofs = scene.layout.num_base_dofs, scene.layout.nqd
        self._coordinates = MujocoCoordinates(scene.model, solver)
        self._models = [copy.copy(reference) for _ in range(num_worlds)]
        self._datas = [mujoco.MjData(reference) for _ in range(threads)]
        self._pool = mujoco_rollout.Rollout(nthread=threads)

    def place(self, ground: np.ndarray, box: np.ndarray, timestep: float) -> None:
        """
        Give the first N models their planes (N, 4), boxes (N, 10) and time step [s].

        Raises ValueError where there are fewer models.
        """
        if len(ground) > len(self._models):
            raise ValueError(f'{len(ground)} trajectories for a teacher of {len(self._models)}.')
        for model, plane, box_ in zip(self._models, np.array(ground, float), np.array(box, float)):
            _place(model, self._ground, plane_pose(plane[:3], max(plane[3], FAR)))
            pose, half = np.split(box_ if box_[7] else np.array(FAR_BOX), [7])
            _place(model, self._box, pose)
            model.geom_size[self._box] = half
            model.geom_rbound[self._box] = np.linalg.norm(half)
            model.geom_aabb[self._box, 3:] = half
            model.opt.timestep = timestep

    def advance(self, rows: np.ndarray, joint_q: np.ndarray, joint_qd: np.ndarray,
                effort: np.ndarray, substeps: int) -> tuple[np.ndarray, np.ndarray]:
        """
        Move the robots `rows` (n,) from their states under efforts (n, T, A), each held a step.

        Returns joint_q (n, T, nq) and joint_qd (n, T, nqd) after each step.
        """
        force = np.zeros((*effort.shape[:2], joint_qd.shape[1]))
        force[..., self._first_dof:] = effort
        models = [self._models[row] for row in rows]
        if not (self._coordinates.turning_efforts and force.any()):
            force = self._coordinates.efforts(joint_q[:, None], force)
            return self._steps(models, joint_q, joint_qd, np.repeat(force, substeps, axis=1),
                               substeps)
        joint_qs = np.empty((*effort.shape[:2], joint_q.shape[1]))
        joint_qds = np.empty_like(force)
        for step in range(effort.shape[1]):
            for _ in range(substeps):
                turned = self._coordinates.efforts(joint_q, force[:, step])
                joint_q, joint_qd = (part[:, 0] for part in self._steps(
                    models, joint_q, joint_qd, turned[:, None], 1))
            joint_qs[:, step], joint_qds[:, step] = joint_q, joint_qd
        return joint_qs, joint_qds

    def penetration(self, joint_q: np.ndarray) -> np.ndarray:
        """Depth (N,) [m] of the deepest contact of the first N robots, 0 without one."""
        qpos, _ = self._coordinates.to_mujoco(joint_q, np.zeros((len(joint_q), self._num_dofs)))
        depth = np.zeros(len(qpos))
        for i, (model, q) in enumerate(zip(self._models, qpos)):
            data = self._datas[0]
            data.qpos[:] = q
            mujoco.mj_fwdPosition(model, data)
            depth[i] = -data.contact.dist.min(initial=0.0)
        return depth

    def _steps(self, models, joint_q, joint_qd, force,
               every: int) -> tuple[np.ndarray, np.ndarray]:
        """States after every `every` of k solver steps under MuJoCo's forces (n, k, nqd)."""
        qpos, qvel = self._coordinates.to_mujoco(joint_q, joint_qd)
        nq, nqd = qpos.shape[1], qvel.shape[1]
        # MuJoCo's full state: time, positions, velocities.
        initial = np.concatenate([np.zeros((len(qpos), 1)), qpos, qvel], axis=1)
        states, _ = self._pool.rollout(models, self._datas, initial, force,
                                       control_spec=int(mujoco.mjtState.mjSTATE_QFRC_APPLIED))
        states = states[:, every - 1::every]
        return self._coordinates.from_mujoco(states[..., 1:1 + nq],
                                             states[..., 1 + nq:1 + nq + nqd])


def _place(model: mujoco.MjModel, geom: int, pose) -> None:
    x, y, z, qx, qy, qz, qw = pose
    model.geom_pos[geom] = x, y, z
    model.geom_quat[geom] = qw, qx, qy, qz
