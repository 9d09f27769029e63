# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The mechanical energy of a robot, as its teacher counts it."""

import mujoco
import numpy as np

from nerd_ros.scene.mujoco_state import MujocoCoordinates
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.teacher import GRAVITY
from nerd_ros.scene.world import World


class MechanicalEnergy:
    """Kinetic and potential energy of states of one robot, by the teacher's MuJoCo model."""

    def __init__(self, spec: RobotSpec):
        """Raise RobotError for a robot that cannot be used."""
        scene = build_scene(spec, World('energy', GRAVITY))
        solver = mujoco_solver(scene.model, use_mujoco_cpu=True)
        self._coordinates = MujocoCoordinates(scene.model, solver)
        self._model = solver.mj_model
        self._data = mujoco.MjData(self._model)

    def __call__(self, joint_q: np.ndarray, joint_qd: np.ndarray
                 ) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the kinetic and the potential energy (...) [J] of `joint_q (..., nq)`, `joint_qd`.

        Rotors (armature) and springs count; the potential energy of gravity is zero at the height
        of the world's origin.
        """
        shape = joint_q.shape[:-1]
        qpos, qvel = self._coordinates.to_mujoco(joint_q, joint_qd)
        energies = np.empty((int(np.prod(shape)), 2))
        model, data = self._model, self._data
        for row, (q, qd) in enumerate(zip(qpos.reshape(-1, model.nq),
                                          qvel.reshape(-1, model.nv))):
            data.qpos[:], data.qvel[:] = q, qd
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_makeM(model, data)
            mujoco.mj_energyPos(model, data)
            mujoco.mj_energyVel(model, data)
            energies[row] = data.energy
        potential, kinetic = energies.T
        return kinetic.reshape(shape), potential.reshape(shape)
