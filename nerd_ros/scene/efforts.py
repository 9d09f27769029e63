# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Efforts at the joints of a robot, within its limits, from the caller to the solver."""

import numpy as np
import warp as wp

from nerd_ros.scene.rows import RobotRows


class Efforts:
    """
    Efforts at the A joint dofs of the robots in `rows` [N m, N], zero at first.

    Attributes:
        wanted: Warp array (W, A), the effort of the next steps.
        applied: Warp array (W, A), the effort that acted during the last step.
    """

    def __init__(self, rows: RobotRows):
        layout, self._device = rows.layout, rows.model.device
        self._names, self._bounds = layout.dof_names, layout.effort_limits
        self._first_dof, self._qd_stride = layout.num_base_dofs, rows.qd_stride
        self._limits = wp.array(self._bounds, dtype=float, device=self._device)
        self.wanted = wp.zeros((rows.num_worlds, layout.num_dofs), dtype=float,
                               device=self._device)
        self.applied = wp.zeros_like(self.wanted)

    def set(self, values) -> None:
        """
        Set what is wanted, `(A,)` for all worlds or `(W, A)`, clamped to the limits.

        Raises ValueError on a wrong shape or a value that is not finite.
        """
        values = np.asarray(values, np.float32)
        shape = self.wanted.shape
        if values.shape not in (shape, shape[1:]):
            raise ValueError(f'an effort has {shape[1]} values, one per joint '
                             f'({", ".join(self._names)}), not shape {values.shape}.')
        if not np.isfinite(values).all():
            raise ValueError('an effort holds values that are not finite.')
        self.wanted.assign(np.broadcast_to(np.clip(values, -self._bounds, self._bounds), shape))

    def clear(self, mask: np.ndarray) -> None:
        """Let the worlds in `mask` (W,) go on without effort."""
        self.wanted.assign(np.where(mask[:, None], 0.0, self.wanted.numpy()))

    def apply(self, joint_f: wp.array) -> None:
        """Write what is wanted now, within the limits, into the joint forces of all worlds."""
        wp.launch(_apply, self.wanted.shape,
                  [self.wanted, self._limits, self._first_dof, self._qd_stride],
                  [self.applied, joint_f], device=self._device)


@wp.kernel
def _apply(wanted: wp.array2d[float], limits: wp.array[float], first_dof: int, qd_stride: int,
           applied: wp.array2d[float], joint_f: wp.array[float]):
    world, i = wp.tid()
    value = wp.clamp(wanted[world, i], -limits[i], limits[i])
    applied[world, i] = value
    joint_f[world * qd_stride + first_dof + i] = value
