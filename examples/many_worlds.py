# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""64 double pendulums among obstacles under random efforts, as PyTorch tensors; without ROS."""

import sys

from nerd_ros.scene.simulation import Simulation

solver = sys.argv[1] if sys.argv[1:] else 'neural'   # or mujoco, featherstone
simulation = Simulation('double_pendulum', 'obstacles', solver, num_worlds=64)
tensors = simulation.tensors   # views of the running simulation: read and write without a copy

for _ in range(100):
    tensors.effort.uniform_(-3.0, 3.0)   # (64, 2) [N m]
    simulation.step()

print(f'{solver} after {simulation.time:.2f} s in {len(tensors.joint_q)} worlds, mean and spread:')
for joint, angles in zip(simulation.layout.joint_names, tensors.joint_q.T):
    print(f'  {joint} {angles.mean():.3f}, {angles.std():.3f} rad')
for body, positions in zip(simulation.body_names, tensors.body_q[..., :3].unbind(1)):
    print(f'  {body} at {positions.mean(0).numpy(force=True).round(3)} m')
