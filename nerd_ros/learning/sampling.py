# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Random states, efforts, planes and impacts, free of any task; ranges in the RobotSpec."""

import numpy as np
import torch

from nerd_ros.dynamics.frames import quat_rotate
from nerd_ros.dynamics.layout import RobotLayout

# Of the steps of a slow trajectory: how many are followed by a small jump.
SLOW_JUMP_SHARE = 0.2


class Sampler:
    """
    Random draws for one robot with a fixed base.

    `sampling` is the section of that name of the RobotSpec (fields and units there); all draws
    come from `rng`.
    """

    def __init__(self, layout: RobotLayout, sampling, rng: np.random.Generator):
        self.layout = layout
        self.sampling = sampling
        self.rng = rng

    def positions(self, count: int) -> np.ndarray:
        """Joint coordinates (count, nq): the whole circle, or all between the limits."""
        lower = [-np.pi if j.type == 'continuous' else j.lower for j in self.layout.joints]
        upper = [np.pi if j.type == 'continuous' else j.upper for j in self.layout.joints]
        return self.rng.uniform(lower, upper, (count, self.layout.nq))

    def velocities(self, count: int) -> np.ndarray:
        """
        Joint velocities (count, nqd), slow ones more often than fast ones.

        The scale of a trajectory is the square of a uniform number, so that the few high speeds
        that efforts reach are covered without filling the data with them.
        """
        scale = self.rng.uniform(0.0, 1.0, (count, 1)) ** 2
        scale *= self._share(self.sampling.still_share, count, inverted=True)[:, None]
        return scale * self.rng.uniform(-1.0, 1.0, (count, self.layout.nqd)) \
            * self.sampling.velocity

    def slow(self, count: int) -> np.ndarray:
        """Which trajectories (count,) stay near a resting state."""
        return self._share(self.sampling.slow_share, count)

    def slow_velocities(self, *shape: int) -> np.ndarray:
        """Small velocities (*shape, nqd), of all orders of magnitude."""
        shape = *shape, self.layout.nqd
        low, high = np.log(self.sampling.slow_velocity)
        return self.rng.choice([-1.0, 1.0], shape) * np.exp(self.rng.uniform(low, high, shape))

    def efforts(self, count: int, steps: int, slow: np.ndarray | bool = False) -> np.ndarray:
        """Efforts (count, steps, A): none, or random values held or joined by straight lines."""
        driven = self._share(self.sampling.passive_share, count, inverted=True)
        low, high = np.log(self.sampling.slow_effort)
        amplitude = driven * np.where(slow, np.exp(self.rng.uniform(low, high, count)),
                                      self.rng.uniform(0.0, 1.0, count))
        scale = amplitude[:, None] * self.layout.effort_limits
        single = self._share(self.sampling.single_joint_share, count)
        chosen = self.rng.integers(self.layout.num_dofs, size=count)
        others = np.arange(self.layout.num_dofs) != chosen[:, None]
        scale[single[:, None] & others] = 0.0
        smooth = self._share(self.sampling.smooth_share, count)
        values = np.empty((count, steps, self.layout.num_dofs))
        for trajectory in range(count):
            for dof in range(self.layout.num_dofs):
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
        low, high = self.sampling.jump_count
        for trajectory in np.flatnonzero(self._share(self.sampling.jump_share, count)):
            number = min(int(self.rng.integers(low, high + 1)), steps)
            at = self.rng.choice(steps, number, replace=False)
            jump[trajectory, at] = self.rng.normal(size=(number, self.layout.nqd)) \
                * self.sampling.jump_velocity
        small = self._share(SLOW_JUMP_SHARE, (count, steps)) & slow[:, None]
        jump[small] = self.slow_velocities(int(small.sum()))
        return jump

    def planes(self, count: int, base_pose: np.ndarray) -> np.ndarray:
        """
        Ground planes (count, 4) in the world frame: unit normal, offset [m], -inf for none.

        A direction is the z axis of the base turned about its y axis (the swing axis of a planar
        robot), by a floor's tilt or by any angle, and then leaned out of that plane.
        """
        s, rng = self.sampling, self.rng
        tilt = rng.uniform(-s.ground_tilt, s.ground_tilt, count)
        anywhere = self._share(s.any_normal_share, count)
        tilt[anywhere] = rng.uniform(-np.pi, np.pi, int(anywhere.sum()))
        lean = rng.uniform(-s.ground_lean, s.ground_lean, count)
        normal = np.stack([np.sin(tilt) * np.cos(lean), np.sin(lean),
                           np.cos(tilt) * np.cos(lean)], axis=1)
        turn = torch.from_numpy(np.tile(base_pose[3:].astype(float), (count, 1)))
        normal = quat_rotate(turn, torch.from_numpy(normal)).numpy()
        offset = normal @ base_pose[:3] - rng.uniform(*s.ground_distance, count)
        offset[self._share(s.no_ground_share, count)] = -np.inf
        return np.concatenate([normal, offset[:, None]], axis=1)

    def _share(self, share: float, count, inverted: bool = False) -> np.ndarray:
        """Boolean of shape `count`, true with probability `share`, or false with it."""
        return (self.rng.uniform(size=count) < share) != inverted
