# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The state of a robot in MuJoCo's coordinates and in Newton's.

| joint | Newton | MuJoCo |
|---|---|---|
| free, position | origin of the body in the world | the same |
| free, linear velocity | of the centre of mass, world frame | of the origin, world frame |
| free, angular velocity | world frame | frame of the body |
| ball, position | child anchor in the parent anchor | body against its pose at rest |
| ball, angular velocity | parent anchor | frame of the body |
| others | q, qd | q, qd |

Newton's quaternions are x y z w, MuJoCo's w x y z. Efforts turn as velocities do. MuJoCo may have
the joints in another order.
"""

import newton
from newton.solvers import SolverMuJoCo
import numpy as np
import torch
from torch import Tensor

from nerd_ros.dynamics.frames import (
    quat_conjugate, quat_multiply, quat_rotate, quat_rotate_inverse)

_XYZW = [1, 2, 3, 0]   # where x, y, z, w stand in MuJoCo's quaternion
_WXYZ = [3, 0, 1, 2]


class MujocoCoordinates:
    """
    Both ways between joint_q (..., nq), joint_qd (..., nqd) and qpos (..., nq), qvel (..., nqd).

    `model` holds one world, of which `solver` has made its MuJoCo model; all is float64.
    """

    def __init__(self, model: newton.Model, solver: SolverMuJoCo):
        kinds, children = model.joint_type.numpy(), model.joint_child.numpy()
        q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
        mj_q_start, mj_qd_start = solver.mj_q_start.numpy(), solver.mj_qd_start.numpy()
        anchors, coms = model.joint_X_c.numpy(), model.body_com.numpy()
        self._q = np.empty(model.joint_coord_count, int)    # of each coordinate: where MuJoCo's is
        self._qd = np.empty(model.joint_dof_count, int)
        self._free, self._balls = [], []
        for joint, kind in enumerate(kinds):
            q, qd = (slice(start[joint], start[joint + 1]) for start in (q_start, qd_start))
            self._q[q] = mj_q_start[joint] + np.arange(q.stop - q.start)
            self._qd[qd] = mj_qd_start[joint] + np.arange(qd.stop - qd.start)
            if kind == newton.JointType.FREE:
                self._free.append((q, qd, torch.from_numpy(coms[children[joint]].astype(float))))
            elif kind == newton.JointType.BALL:
                anchor = torch.from_numpy(anchors[joint, 3:].astype(float))
                self._balls.append((q, qd, torch.nn.functional.normalize(anchor, dim=0)))

    @property
    def turning_efforts(self) -> bool:
        """Whether efforts turn with the robot, so that they change during a step."""
        return bool(self._balls)

    def to_mujoco(self, joint_q: np.ndarray, joint_qd: np.ndarray
                  ) -> tuple[np.ndarray, np.ndarray]:
        """Return qpos and qvel of a state."""
        q, qd = (np.array(values, float) for values in (joint_q, joint_qd))
        for at, speeds, com in self._free:
            turn = torch.from_numpy(q[..., at][..., 3:].copy())
            linear, angular = _halves(qd[..., speeds])
            arm = quat_rotate(turn, com.expand_as(linear))
            qd[..., speeds] = torch.cat([linear - torch.linalg.cross(angular, arm),
                                         quat_rotate_inverse(turn, angular)], -1).numpy()
            q[..., at] = np.concatenate([q[..., at][..., :3], turn.numpy()[..., _WXYZ]], -1)
        for at, speeds, anchor in self._balls:
            turn = torch.from_numpy(q[..., at].copy())
            qd[..., speeds] = _into_body(turn, anchor, qd[..., speeds])
            q[..., at] = _similar(turn, anchor)[..., _WXYZ].numpy()
        return _placed(q, self._q), _placed(qd, self._qd)

    def from_mujoco(self, qpos: np.ndarray, qvel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return joint_q and joint_qd of a state, the inverse of `to_mujoco`."""
        q, qd = np.array(qpos[..., self._q], float), np.array(qvel[..., self._qd], float)
        for at, speeds, com in self._free:
            turn = torch.from_numpy(q[..., at][..., 3:][..., _XYZW])
            linear, angular = _halves(qd[..., speeds])
            angular, arm = quat_rotate(turn, angular), quat_rotate(turn, com.expand_as(linear))
            qd[..., speeds] = torch.cat([linear + torch.linalg.cross(angular, arm), angular],
                                        -1).numpy()
            q[..., at] = np.concatenate([q[..., at][..., :3], turn.numpy()], -1)
        for at, speeds, anchor in self._balls:
            turn = _similar(torch.from_numpy(q[..., at][..., _XYZW]), quat_conjugate(anchor))
            velocity = torch.from_numpy(qd[..., speeds].copy())
            back = quat_multiply(turn, quat_conjugate(anchor).expand_as(turn))
            qd[..., speeds] = quat_rotate(back, velocity).numpy()
            q[..., at] = turn.numpy()
        return q, qd

    def efforts(self, joint_q: np.ndarray, joint_f: np.ndarray) -> np.ndarray:
        """Return qfrc (..., nqd) of joint forces (..., nqd), those of a free joint zero."""
        f = np.array(joint_f, float)
        for at, dofs, anchor in self._balls:
            f[..., dofs] = _into_body(torch.from_numpy(np.array(joint_q[..., at], float)), anchor,
                                      f[..., dofs])
        return _placed(f, self._qd)


def _placed(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    placed = np.empty_like(values)
    placed[..., where] = values
    return placed


def _halves(twist: np.ndarray) -> tuple[Tensor, Tensor]:
    return tuple(torch.from_numpy(part.copy()) for part in np.split(twist, 2, axis=-1))


def _similar(turn: Tensor, anchor: Tensor) -> Tensor:
    """The rotation `turn` seen from a frame that `anchor` turns into the present one."""
    anchor = anchor.expand_as(turn)
    return quat_multiply(quat_multiply(anchor, turn), quat_conjugate(anchor))


def _into_body(turn: Tensor, anchor: Tensor, vector: np.ndarray) -> np.ndarray:
    """Vector (..., 3) of the parent anchor in the frame of the child's body."""
    along = quat_multiply(anchor.expand_as(turn), quat_conjugate(turn))
    return quat_rotate(along, torch.from_numpy(vector.copy())).numpy()
