# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Random states, efforts, surroundings and impacts, free of any task; ranges in the RobotSpec."""

import numpy as np
import torch

from nerd_ros.dynamics.frames import quat_multiply, quat_rotate, quat_rotate_inverse
from nerd_ros.dynamics.layout import JOINT_DOFS, RobotLayout

# Of the steps of a slow trajectory: how many are followed by a small jump.
SLOW_JUMP_SHARE = 0.2
# Of the boxes: how many stand upright, as most do.
UPRIGHT_SHARE = 0.5


def check_seed(seed: int) -> None:
    """Raise ValueError for a seed whose streams of numbers could be those of another."""
    if not 0 <= seed < 2**32:
        raise ValueError(f'{seed} is no seed; give a whole number from 0 to {2**32 - 1}.')


class Sampler:
    """
    Random draws for one robot.

    `sampling` is the section of that name of the RobotSpec (fields and units there); all draws
    come from `rng`. Order of coordinates, planes and boxes are those of `TeacherRollouts`.
    """

    def __init__(self, layout: RobotLayout, sampling, rng: np.random.Generator):
        self.layout = layout
        self.sampling = sampling
        self.rng = rng
        self._dofs = [JOINT_DOFS[joint.type] for joint in layout.joints]

    def positions(self, count: int) -> np.ndarray:
        """
        Joint coordinates (count, nq): the whole circle, or all between the limits.

        A floating base is at the origin, tilted as `base_tilt` says.
        """
        joint_q = np.zeros((count, self.layout.nq))
        if self.layout.floating:
            joint_q[:, 3:7] = self.orientations(count, self.sampling.base_tilt)
        for joint, start in zip(self.layout.joints, self.layout.q_start):
            if joint.type == 'ball':
                joint_q[:, start:start + 4] = self.orientations(count)
            elif joint.type == 'continuous':
                joint_q[:, start] = self.rng.uniform(-np.pi, np.pi, count)
            else:
                joint_q[:, start] = self.rng.uniform(joint.lower, joint.upper, count)
        return self.follow(joint_q)

    def follow(self, joint_q: np.ndarray) -> np.ndarray:
        """Put joints of joint_q (count, nq) that follow others where these have them."""
        followers, leaders = self.layout.mimic_q.T
        multiplier, offset = self.layout.mimic_coeffs.T
        joint_q[:, followers] = multiplier * joint_q[:, leaders] + offset
        return joint_q

    def _follow_velocities(self, joint_qd: np.ndarray) -> np.ndarray:
        followers, leaders = self.layout.mimic_qd.T
        joint_qd[..., followers] = self.layout.mimic_coeffs[:, 0] * joint_qd[..., leaders]
        return joint_qd

    def orientations(self, count: int, tilt: float = np.pi) -> np.ndarray:
        """Quaternions (count, 4), evenly over all that are at most `tilt` from upright [rad]."""
        half = 0.5 * np.arccos(self.rng.uniform(np.cos(min(tilt, np.pi)), 1.0, count))
        toward, heading = self.rng.uniform(-np.pi, np.pi, (2, count))
        zero = np.zeros(count)
        lean = np.stack([np.cos(toward) * np.sin(half), np.sin(toward) * np.sin(half), zero,
                         np.cos(half)], axis=1)
        turn = np.stack([zero, zero, np.sin(heading / 2), np.cos(heading / 2)], axis=1)
        return quat_multiply(torch.from_numpy(lean), torch.from_numpy(turn)).numpy()

    def velocities(self, count: int) -> np.ndarray:
        """
        Velocities (count, nqd), slow ones more often than fast ones.

        The scale of a trajectory is the square of a uniform number, so that the few high speeds
        that efforts reach are covered without filling the data with them.
        """
        scale = self.rng.uniform(0.0, 1.0, (count, 1)) ** 2
        scale *= self._share(self.sampling.still_share, count, inverted=True)[:, None]
        return scale * self.uniform_velocities(count, self.sampling)

    def uniform_velocities(self, count: int, ranges) -> np.ndarray:
        """Velocities (count, nqd) up to the speeds `velocity` and `base_velocity` of `ranges`."""
        parts = []
        if self.layout.floating:
            parts = [self.directions(count) * self.rng.uniform(0.0, speed, (count, 1))
                     for speed in ranges.base_velocity]
        joints = self.rng.uniform(-1.0, 1.0, (count, self.layout.num_dofs))
        joints *= np.repeat(ranges.velocity, self._dofs)
        return self._follow_velocities(np.concatenate([*parts, joints], axis=1))

    def directions(self, count: int) -> np.ndarray:
        """Unit vectors (count, 3), evenly over the sphere."""
        vectors = self.rng.normal(size=(count, 3))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def slow(self, count: int) -> np.ndarray:
        """Which trajectories (count,) stay near a resting state."""
        return self._share(self.sampling.slow_share, count)

    def slow_velocities(self, *shape: int) -> np.ndarray:
        """Small velocities (*shape, nqd), of all orders of magnitude."""
        shape = *shape, self.layout.nqd
        low, high = np.log(self.sampling.slow_velocity)
        signs = self.rng.choice([-1.0, 1.0], shape)
        return self._follow_velocities(signs * np.exp(self.rng.uniform(low, high, shape)))

    def efforts(self, count: int, steps: int, slow: np.ndarray | bool = False) -> np.ndarray:
        """Efforts (count, steps, A): none, or random values held or joined by straight lines."""
        values = np.zeros((count, steps, self.layout.num_dofs))
        motors = np.flatnonzero(self.layout.effort_limits)
        if not len(motors):
            return values
        driven = self._share(self.sampling.passive_share, count, inverted=True)
        low, high = np.log(self.sampling.slow_effort)
        amplitude = driven * np.where(slow, np.exp(self.rng.uniform(low, high, count)),
                                      self.rng.uniform(0.0, 1.0, count))
        scale = amplitude[:, None] * self.layout.effort_limits
        single = self._share(self.sampling.single_joint_share, count)
        others = np.arange(self.layout.num_dofs) != self.rng.choice(motors, count)[:, None]
        scale[single[:, None] & others] = 0.0
        smooth = self._share(self.sampling.smooth_share, count)
        for trajectory in range(count):
            for dof in motors:
                values[trajectory, :, dof] = self._signal(steps, smooth[trajectory])
        return values * scale[:, None, :]

    def _signal(self, steps: int, smooth: bool) -> np.ndarray:
        """Values in -1 to 1 (steps,), a new one after each random time."""
        low, high = self.sampling.hold
        durations = self.rng.integers(low, high + 1, size=steps // low + 2)
        ends = np.cumsum(durations)
        levels = self.rng.uniform(-1.0, 1.0, len(ends))
        if smooth:
            return np.interp(np.arange(steps), ends - durations[0], levels)
        return levels[np.searchsorted(ends, np.arange(steps), side='right')]

    def jumps(self, count: int, steps: int, slow: np.ndarray) -> np.ndarray:
        """Velocity jumps (count, steps, nqd) as impacts make them; the slow have many small."""
        jump = np.zeros((count, steps, self.layout.nqd))
        base = np.repeat(self.sampling.base_jump_velocity, 3)[:self.layout.num_base_dofs]
        deviation = np.concatenate([base, np.repeat(self.sampling.jump_velocity, self._dofs)])
        low, high = self.sampling.jump_count
        for trajectory in np.flatnonzero(self._share(self.sampling.jump_share, count)):
            number = min(int(self.rng.integers(low, high + 1)), steps)
            at = self.rng.choice(steps, number, replace=False)
            jump[trajectory, at] = self._follow_velocities(
                self.rng.normal(size=(number, self.layout.nqd)) * deviation)
        small = self._share(SLOW_JUMP_SHARE, (count, steps)) & slow[:, None]
        jump[small] = self.slow_velocities(int(small.sum()))
        return jump

    def planes(self, count: int, base_pose: np.ndarray) -> np.ndarray:
        """Ground planes (count, 4) around a base at `base_pose` (7,), some of them none."""
        s = self.sampling
        tilt = self.rng.uniform(-s.ground_tilt, s.ground_tilt, count)
        normal = self._normals(tilt, base_pose)
        anywhere = self._share(s.any_normal_share, count)
        normal[anywhere] = self._any_normals(int(anywhere.sum()), base_pose)
        offset = normal @ base_pose[:3] - self.rng.uniform(*s.ground_distance, count)
        offset[self._share(s.no_ground_share, count)] = -np.inf
        if not self.layout.num_slots:
            offset[:] = -np.inf   # what no slot sees cannot be learned
        return np.concatenate([normal, offset[:, None]], axis=1)

    def has_box(self, count: int) -> np.ndarray:
        """Which trajectories (count,) have a box."""
        return self._share(self.sampling.box_share, count) & bool(self.layout.num_slots)

    def boxes(self, count: int, base_pose: np.ndarray) -> np.ndarray:
        """Boxes (count, 10) around a base at `base_pose` (7,)."""
        s = self.sampling
        half = 0.5 * self.rng.uniform(*s.box_size, (count, 3))
        turn = self.orientations(count)
        upright = self._share(UPRIGHT_SHARE, count)
        turn[upright] = self.orientations(int(upright.sum()), 0.0)
        normal = self._any_normals(count, base_pose)
        # Between the base and the middle lie the distance and what the box measures that way.
        local = quat_rotate_inverse(torch.from_numpy(turn), torch.from_numpy(normal)).numpy()
        reach = self.rng.uniform(*s.box_distance, count) + (np.abs(local) * half).sum(axis=1)
        return np.concatenate([base_pose[:3] - reach[:, None] * normal, turn, half], axis=1)

    def _any_normals(self, count: int, base_pose: np.ndarray) -> np.ndarray:
        """Unit vectors (count, 3) of all directions in which there can be something to touch."""
        if self.layout.floating:
            return self.directions(count)
        return self._normals(self.rng.uniform(-np.pi, np.pi, count), base_pose)

    def _normals(self, tilt: np.ndarray, base_pose: np.ndarray) -> np.ndarray:
        """
        Unit vectors (N, 3) that lean from upright by `tilt` (N,) [rad].

        Above a floating base they lean to any side. Of a fixed one it is the z axis turned about
        the y axis, the swing axis of a planar robot, and then leaned a little out of that plane.
        """
        if self.layout.floating:
            toward = self.rng.uniform(-np.pi, np.pi, len(tilt))
            return np.stack([np.sin(tilt) * np.cos(toward), np.sin(tilt) * np.sin(toward),
                             np.cos(tilt)], axis=1)
        lean = self.rng.uniform(-self.sampling.ground_lean, self.sampling.ground_lean, len(tilt))
        normal = np.stack([np.sin(tilt) * np.cos(lean), np.sin(lean),
                           np.cos(tilt) * np.cos(lean)], axis=1)
        turn = torch.from_numpy(np.tile(np.asarray(base_pose[3:], float), (len(tilt), 1)))
        return quat_rotate(turn, torch.from_numpy(normal)).numpy()

    def _share(self, share: float, count, inverted: bool = False) -> np.ndarray:
        """Boolean of shape `count`, true with probability `share`, or false with it."""
        return (self.rng.uniform(size=count) < share) != inverted
