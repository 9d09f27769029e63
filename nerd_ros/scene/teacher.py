# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The teacher: batches of analytic motion that a model learns from and is measured against.

It is MuJoCo's C code on the very model that Newton's SolverMuJoCo builds from the scene, with one
endless plane as ground and one static box near the robot, which differ from trajectory to
trajectory.
"""

import newton
import numpy as np

from nerd_ros.scene.contacts import ContactSlots
from nerd_ros.scene.mujoco_batch import MujocoBatch
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import ground_plane, nearby_box, World

GRAVITY = (0.0, 0.0, -9.81)
NO_GROUND = (0.0, 0.0, 1.0, -np.inf)
NO_BOX = (0.0,) * 6 + (1.0, 0.0, 0.0, 0.0)


class TeacherRollouts:
    """
    Analytic rollouts of one robot, up to `num_worlds` at a time.

    Joint coordinates, velocities and efforts are those of `layout` in Newton's order: rad or m,
    N m or N, a floating base first (position, quaternion xyzw; linear velocity of its centre of
    mass, angular velocity; world frame). `ground` (N, 4) are planes: unit normal and offset [m]
    of the points x with normal . x = offset, world frame; offset -inf means no ground. `box`
    (N, 10) are static boxes: pose x y z [m], quaternion x y z w, half extents [m], 0 means no
    box; None is no box in any trajectory.

    `base_pose` (7,) is the pose of a fixed base in the world; of a floating one, whose pose is in
    its state, the origin.
    """

    def __init__(self, spec: RobotSpec, num_worlds: int = 512, threads: int = 1):
        """Raise RobotError for a robot that cannot be used."""
        friction = spec.contact.friction
        world = World('teacher', GRAVITY, (ground_plane(friction=friction), nearby_box(friction)))
        template = build_scene(spec, world, visuals=False)
        self.layout = template.layout
        self.base_pose = np.array(template.model.joint_X_p.numpy()[0], np.float32)
        self.num_worlds = num_worlds
        self._dt, self._substeps = spec.dt, spec.teacher.substeps
        self._batch = MujocoBatch(template, num_worlds, threads)
        self._scene = build_scene(spec, world, num_worlds, visuals=False)
        self._state = self._scene.model.state()
        self._slots = ContactSlots(self._scene)

    def rollout(self, joint_q: np.ndarray, joint_qd: np.ndarray, effort: np.ndarray,
                ground: np.ndarray, jump: np.ndarray | None = None,
                substeps: int | None = None, box: np.ndarray | None = None
                ) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the motion from N initial states under given efforts.

        Args:
            joint_q, joint_qd: initial states (N, nq), (N, nqd).
            effort: (N, T, A), held during its step.
            ground: planes (N, 4).
            jump: velocity (N, T, nqd) added after each step, as by an impact.
            substeps: solver steps per dt in place of the robot's own.
            box: boxes (N, 10).

        Returns: joint_q (N, T+1, nq) and joint_qd (N, T+1, nqd), float64, initial state first.
        """
        count, steps = effort.shape[:2]
        substeps = substeps or self._substeps
        self._batch.place(ground, self._boxes(box, count), self._dt / substeps)
        joint_qs = np.empty((count, steps + 1, self.layout.nq))
        joint_qds = np.empty((count, steps + 1, self.layout.nqd))
        joint_qs[:, 0], joint_qds[:, 0] = joint_q, joint_qd
        # One call as far as no velocity jumps, then on from the state after the jump.
        jumping = np.zeros(count, bool) if jump is None else np.any(jump != 0.0, axis=(1, 2))

        def advance(rows, first, last):
            after = slice(first + 1, last + 1)
            joint_qs[rows, after], joint_qds[rows, after] = self._batch.advance(
                rows, joint_qs[rows, first], joint_qds[rows, first], effort[rows, first:last],
                substeps)

        if not jumping.all():
            advance(np.flatnonzero(~jumping), 0, steps)
        if jumping.any():
            rows = np.flatnonzero(jumping)
            for step in range(steps):
                advance(rows, step, step + 1)
                joint_qds[rows, step + 1] += jump[rows, step]
        return joint_qs, joint_qds

    def contacts(self, joint_q: np.ndarray, ground: np.ndarray,
                 box: np.ndarray | None = None) -> np.ndarray:
        """Contact slots (N, T, S, 7) of states joint_q (N, T, nq) near planes and boxes."""
        count, steps, width = joint_q.shape
        planes = np.tile(NO_GROUND, (self.num_worlds, 1))
        boxes = np.tile(NO_BOX, (self.num_worlds, 1))
        planes[:count], boxes[:count] = ground, self._boxes(box, count)
        self._scene.set_ground(planes)
        self._scene.set_box(boxes)
        values = np.empty((count, steps, *self._slots.values.shape[1:]), np.float32)
        padded = self._scene.model.joint_q.numpy().reshape(self.num_worlds, width)
        for step in range(steps):
            padded[:count] = joint_q[:, step]
            self._state.joint_q.assign(padded.reshape(-1))
            newton.eval_fk(self._scene.model, self._state.joint_q, self._state.joint_qd,
                           self._state)
            self._slots.update(self._state)
            values[:, step] = self._slots.values.numpy()[:count]
        return values

    def penetration(self, joint_q: np.ndarray, ground: np.ndarray,
                    box: np.ndarray | None = None) -> np.ndarray:
        """How deep (N,) [m] states joint_q (N, nq) reach into plane or box, as MuJoCo sees it."""
        self._batch.place(ground, self._boxes(box, len(ground)), self._dt)
        return self._batch.penetration(joint_q)

    def _boxes(self, box: np.ndarray | None, count: int) -> np.ndarray:
        return np.tile(NO_BOX, (count, 1)) if box is None else box
