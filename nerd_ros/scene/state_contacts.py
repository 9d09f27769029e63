# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Contact slots of states that come from elsewhere than a running simulation."""

import newton
from torch import Tensor
import torch
import warp as wp

from nerd_ros.scene.contacts import ContactSlots
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import World


class StateContacts:
    """
    What the contact slots of `spec` see in `world`, for up to `num_worlds` states at a time.

    `gravity` (3,) is that of the world, `base_pose` (7,) where a fixed base stands in it; of a
    floating one, whose pose is in its state, it means nothing. `layout` is the robot.
    """

    def __init__(self, spec: RobotSpec, world: World, num_worlds: int, device: str = 'cpu'):
        scene = build_scene(spec, world, num_worlds, device, visuals=False)
        self.layout = scene.layout
        self._model, self._state = scene.model, scene.model.state()
        self._slots = ContactSlots(scene)
        self._joint_q = wp.to_torch(self._state.joint_q).view(num_worlds, -1)
        self._values = wp.to_torch(self._slots.values)
        self.gravity = torch.as_tensor(scene.model.gravity.numpy()[0])
        self.base_pose = torch.as_tensor(scene.model.joint_X_p.numpy()[0])

    @torch.no_grad()
    def __call__(self, joint_q: Tensor) -> Tensor:
        """Return the contacts `(W, S, 7)` of states `joint_q (W, nq)`, see `ContactSlots`."""
        count = len(joint_q)
        self._joint_q[:count, :self.layout.nq] = joint_q
        newton.eval_fk(self._model, self._state.joint_q, self._state.joint_qd, self._state)
        self._slots.update(self._state)
        return self._values[:count].clone()
