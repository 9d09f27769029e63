# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The guard: what a step may hand on as the new state."""

import numpy as np
import warp as wp

ROBOT_FAULT, OBSTACLE_FAULT = wp.constant(1), wp.constant(2)


class Guard:
    """
    Accepts a new state world by world, or keeps what is sound.

    A robot whose coordinates are not finite, or with a joint faster than `speed_limit` (nqd,)
    [rad/s, m/s], keeps its last position at zero velocity; so do the moving obstacles of a world
    where one of them is not finite.
    """

    def __init__(self, scene, speed_limit):
        self._scene = scene
        device = scene.model.device
        self._limit = wp.empty(scene.layout.nqd, dtype=float, device=device)
        self.set_speed_limit(speed_limit)
        self._sizes = (scene.layout.nq, scene.layout.nqd, scene.num_links)
        self._strides = (scene.q_stride, scene.qd_stride, scene.body_stride)
        self.faults = wp.zeros(scene.num_worlds, dtype=int, device=device)
        """What was wrong with each world in the last step, 0 if nothing, shape (W,)."""
        self._on_cpu = self.faults.numpy() if device.is_cpu else None

    def set_speed_limit(self, speed_limit) -> None:
        """Change `speed_limit`, (nqd,) or one for all [rad/s, m/s]; captured steps follow."""
        self.speed_limit = np.broadcast_to(np.float32(speed_limit), len(self._limit))
        self._limit.assign(self.speed_limit)

    @property
    def found_fault(self) -> bool:
        """Whether anything was wrong in the last step."""
        faults = self.faults.numpy() if self._on_cpu is None else self._on_cpu
        return bool(faults.any())

    def accept(self, new, state) -> None:
        """Copy what is sound of `new` into `state`; one kernel launch, capturable."""
        wp.launch(_accept, self._scene.num_worlds, [
            *self._sizes, *self._strides, self._limit,
            new.joint_q, new.joint_qd, new.body_q, new.body_qd,
        ], [state.joint_q, state.joint_qd, state.body_q, state.body_qd, self.faults],
            device=self._scene.model.device)

    def describe(self, world: int, new) -> str:
        """One sentence on the fault that `accept` found in `world` of `new`."""
        fault = int(self.faults.numpy()[world])
        if not fault & int(ROBOT_FAULT):
            return f'world {world}: an obstacle is no longer at a finite place or speed'
        layout, scene = self._scene.layout, self._scene
        speeds = new.joint_qd.numpy().reshape(-1, scene.qd_stride)[world, :layout.nqd]
        if not np.isfinite(speeds).all():
            return f'world {world}: the solver gave a robot state that is not finite'
        worst = int(np.argmax(np.abs(speeds) / self.speed_limit))
        name = (*('base' for _ in range(layout.num_base_dofs)), *layout.dof_names)[worst]
        if np.abs(speeds[worst]) <= self.speed_limit[worst]:
            return f'world {world}: the solver gave a robot position that is not finite'
        return (f'world {world}: joint {name} moves at {speeds[worst]:.1f}, beyond its limit of '
                f'{self.speed_limit[worst]:.1f} rad/s or m/s')


@wp.kernel
def _accept(nq: int, nqd: int, num_links: int, q_stride: int, qd_stride: int, body_stride: int,
            limit: wp.array[float],
            new_q: wp.array[float], new_qd: wp.array[float],
            new_body_q: wp.array[wp.transform], new_body_qd: wp.array[wp.spatial_vector],
            joint_q: wp.array[float], joint_qd: wp.array[float],
            body_q: wp.array[wp.transform], body_qd: wp.array[wp.spatial_vector],
            faults: wp.array[int]):
    world = wp.tid()
    first_q, first_qd, first_body = world * q_stride, world * qd_stride, world * body_stride
    fault = int(0)
    for i in range(q_stride):
        if not wp.isfinite(new_q[first_q + i]):
            fault |= wp.where(i < nq, ROBOT_FAULT, OBSTACLE_FAULT)
    for i in range(qd_stride):
        speed = wp.abs(new_qd[first_qd + i])
        # Written so that a speed that is not a number is a fault too.
        if i < nqd and not speed <= limit[i]:
            fault |= ROBOT_FAULT
        if i >= nqd and not wp.isfinite(speed):
            fault |= OBSTACLE_FAULT
    faults[world] = fault
    robot_ok, rest_ok = (fault & ROBOT_FAULT) == 0, (fault & OBSTACLE_FAULT) == 0
    for i in range(q_stride):
        if (i < nq and robot_ok) or (i >= nq and rest_ok):
            joint_q[first_q + i] = new_q[first_q + i]
    for i in range(qd_stride):
        ok = (i < nqd and robot_ok) or (i >= nqd and rest_ok)
        joint_qd[first_qd + i] = wp.where(ok, new_qd[first_qd + i], 0.0)
    for i in range(body_stride):
        body = first_body + i
        if (i < num_links and robot_ok) or (i >= num_links and rest_ok):
            body_q[body] = new_body_q[body]
            body_qd[body] = new_body_qd[body]
        else:
            body_qd[body] = wp.spatial_vector()
