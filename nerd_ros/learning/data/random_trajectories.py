# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Random trajectories of the teacher, as the section `sampling` of the RobotSpec says."""

import numpy as np

from nerd_ros.learning.data.initial_states import initial_states
from nerd_ros.learning.data.sampling import Sampler
from nerd_ros.learning.data.trajectories import Trajectories
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import GRAVITY, NO_BOX, TeacherRollouts


def sample_trajectories(spec: RobotSpec, teacher: TeacherRollouts, count: int,
                        rng: np.random.Generator) -> Trajectories:
    """Draw and roll out `count` random trajectories, at most `teacher.num_worlds`."""
    sampler, steps = Sampler(teacher.layout, spec.sampling, rng), spec.sampling.steps
    slow = sampler.slow(count)
    ground = sampler.planes(count, teacher.base_pose)
    box = np.where(sampler.has_box(count)[:, None], sampler.boxes(count, teacher.base_pose),
                   NO_BOX)
    joint_q, joint_qd = initial_states(sampler, teacher, ground, box, slow)
    effort = sampler.efforts(count, steps, slow)
    jump = sampler.jumps(count, steps, slow)
    joint_qs, joint_qds = teacher.rollout(joint_q, joint_qd, effort, ground, jump, box=box)
    base_pose = joint_q[:, :7] if teacher.layout.floating else teacher.base_pose
    trajectories = Trajectories(
        joint_q=joint_qs, joint_qd=joint_qds, effort=effort,
        contacts=teacher.contacts(joint_qs[:, :-1], ground, box), jump=jump,
        gravity=np.tile(GRAVITY, (count, 1)), base_pose=np.broadcast_to(base_pose, (count, 7)),
        ground=ground, box=box)
    # As they are in the file, which halves what goes from process to process.
    return Trajectories(**{name: np.asarray(values, np.float32)
                           for name, values in vars(trajectories).items()})
