# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The one builder of robot and obstacles, for the node, the teacher and the evaluation."""

from dataclasses import dataclass
import logging

import newton
from newton.solvers import SolverMuJoCo
import numpy as np
import warp as wp

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.robot.robots import add_robot, robot_layout, RobotBuilder
from nerd_ros.scene.robot.urdf import read_urdf
from nerd_ros.scene.rows import RobotRows
from nerd_ros.scene.world import NEARBY_BOX, plane_pose, World

# Contact stiffness and damping, which Newton hands to MuJoCo as a critically damped constraint
# of time constant 2 / damping = 0.01 s: twice the largest step in use, the smallest that MuJoCo
# takes without stretching it.
CONTACT_STIFFNESS = 1.0e4
CONTACT_DAMPING = 200.0
# MuJoCo's dry friction drives the velocity to zero at this rate, in shares of one solver step,
# before it saturates. Faster is nearer to Coulomb's law, which turns with the velocity and not a
# moment before; above 2 a semi-implicit step overshoots.
FRICTION_RATE = 1.5
FRICTION_SOLIMP = (0.99, 0.99, 0.001, 0.5, 2.0)
# An end stop takes up a joint like a contact: time constant [s] and damping ratio of MuJoCo's
# limit constraint. Newton's own stops give way by metres to a cart of 11 kg.
STOP_SOLREF = (0.01, 1.0)
# A joint that follows another does so within some micrometres; by MuJoCo's own figures a gripper
# whose finger weighs less than its motor is off by a millimetre.
FOLLOW_SOLIMP = (0.999, 0.999, 0.001, 0.5, 2.0)
# Contacts are looked for from this distance on [m].
CONTACT_GAP = 0.02
# Where a plane goes that a world does not have [m]; infinity would make NaN.
FAR = -1.0e3
# The box that lies there instead of a box that a trajectory does not have.
FAR_BOX = (0.0, 0.0, FAR, 0.0, 0.0, 0.0, 1.0, 0.1, 0.1, 0.1)
# Depth from which on an obstacle in the robot is warned of [m].
OVERLAP = 1.0e-3

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scene(RobotRows):
    """
    A robot and the obstacles of a world in a Newton model, the same in each of its worlds.

    Attributes, beside those of RobotRows:
        spec: the robot.
        world: gravity and obstacles that every world was built from.
        shape_stride: shapes of a world, the robot's first.
        ground_shapes: (W,) indices of the plane named `ground`; empty where there is none.
        box_shapes: (W,) likewise of the box named `nearby_box`.
    """

    spec: RobotSpec
    world: World
    shape_stride: int
    ground_shapes: np.ndarray
    box_shapes: np.ndarray

    def set_ground(self, planes: np.ndarray) -> None:
        """
        Place the plane `ground` of each world.

        `planes` (W, 4): unit normal and offset [m] of the points x with normal . x = offset;
        offset -inf takes the plane away. A running SolverMuJoCo has to be told by
        `notify_model_changed(newton.ModelFlags.SHAPE_PROPERTIES)`. Raises ValueError where the
        world has no plane of that name.
        """
        if not len(self.ground_shapes):
            raise ValueError(f'world {self.world.name} has no plane named ground to be moved.')
        poses = self.model.shape_transform.numpy()
        for shape, plane in zip(self.ground_shapes, np.asarray(planes, float)):
            poses[shape] = plane_pose(plane[:3], max(plane[3], FAR))
        self.model.shape_transform.assign(poses)

    def set_box(self, boxes: np.ndarray) -> None:
        """
        Place the static box `nearby_box` of each world, for what its contact slots see.

        `boxes` (W, 10): pose of its middle, x y z [m] and quaternion x y z w, and half extents
        [m], all 0 to take it away. Raises ValueError where the world has no box of that name.
        """
        if not len(self.box_shapes):
            raise ValueError(f'world {self.world.name} has no box named {NEARBY_BOX} to be moved.')
        poses, sizes = self.model.shape_transform.numpy(), self.model.shape_scale.numpy()
        boxes = np.array(boxes, float)
        boxes[boxes[:, 7] == 0.0] = FAR_BOX
        poses[self.box_shapes], sizes[self.box_shapes] = boxes[:, :7], boxes[:, 7:]
        self.model.shape_transform.assign(poses)
        self.model.shape_scale.assign(sizes)

    def warn_of_overlaps(self, state: newton.State, contacts: newton.Contacts) -> None:
        """
        Log a warning for each obstacle that lies in a link of the robot of the first world.

        `contacts` are those of `state`. A solver, a learned one most of all, throws the robot
        out of such an obstacle at any speed.
        """
        count = int(contacts.rigid_contact_count.numpy()[0])
        shapes, points, margins = (np.stack([
            getattr(contacts, f'rigid_contact_{name}{side}').numpy()[:count] for side in (0, 1)])
            for name in ('shape', 'point', 'margin'))
        normals = contacts.rigid_contact_normal.numpy()[:count]
        bodies, poses = self.model.shape_body.numpy()[shapes], state.body_q.numpy()
        depths = {}
        for i in np.flatnonzero((shapes < self.shape_stride).all(axis=0)):
            of_robot = (0 <= bodies[:, i]) & (bodies[:, i] < self.num_links)
            if of_robot.sum() != 1:
                continue
            ends = [points[k, i] if body < 0 else
                    wp.transform_point(wp.transform(*poses[body]), wp.vec3(*points[k, i]))
                    for k, body in enumerate(bodies[:, i])]
            depth = margins[:, i].sum() - normals[i] @ (np.array(ends[1]) - np.array(ends[0]))
            pair = (self.model.shape_label[shapes[~of_robot, i][0]],
                    self.body_names[bodies[of_robot, i][0]])
            depths[pair] = max(depth, depths.get(pair, OVERLAP))
        for (obstacle, link), depth in depths.items():
            if depth > OVERLAP:
                _log.warning('World %s: obstacle %s starts %.0f mm inside link %s of the robot, '
                             'which will be thrown about; move one of them.',
                             self.world.name, obstacle, 1e3 * depth, link)


def build_scene(spec: RobotSpec, world: World, num_worlds: int = 1, device='cpu',
                visuals: bool = True) -> Scene:
    """
    Build `num_worlds` equal worlds with the robot and the obstacles of `world`.

    `device` is Warp's; one robot is stepped fastest on the CPU. Without `visuals` the robot has
    no more than its collision shapes, which saves the time to read meshes that nobody looks at.
    Raises RobotError for a robot that cannot be used and ValueError for a wrong number of worlds.
    """
    if num_worlds < 1:
        raise ValueError(f'a scene has at least one world, not {num_worlds}.')
    template = RobotBuilder(gravity=world.gravity)
    SolverMuJoCo.register_custom_attributes(template)
    template.rigid_gap = CONTACT_GAP
    root = read_urdf(spec)
    add_robot(template, spec, root, visuals)
    layout = robot_layout(template, spec, root)
    robot_shapes = template.shape_count
    world.add_to(template)
    _set_constraint_parameters(template, spec, robot_shapes, layout)

    builder = newton.ModelBuilder(gravity=world.gravity)
    SolverMuJoCo.register_custom_attributes(builder)
    for _ in range(num_worlds):
        builder.add_world(template)
    model = builder.finalize(device=device)

    ground, box = (np.array([
        s for s, label in enumerate(model.shape_label) if label == name
        and builder.shape_type[s] == kind and builder.shape_body[s] < 0], np.int32)
        for name, kind in (('ground', newton.GeoType.PLANE), (NEARBY_BOX, newton.GeoType.BOX)))
    return Scene(**vars(RobotRows.find(model, layout)), spec=spec, world=world,
                 shape_stride=template.shape_count, ground_shapes=ground, box_shapes=box)


def mujoco_solver(model: newton.Model, **options) -> SolverMuJoCo:
    """
    SolverMuJoCo with the settings that teacher and scene share; `options` as in Newton.

    Runge-Kutta of order 4 pays: with two steps per dt of 5 ms the double pendulum is off by
    3e-5 rad after 50 ms, with the semi-implicit integrators at equal cost by 2e-3 rad.
    """
    settings = {'integrator': 'rk4', 'cone': 'pyramidal', **options}
    solver = SolverMuJoCo(model, **settings)
    if solver.mj_model.neq:
        # All equality constraints are joints that follow others.
        for name, values in (('eq_solref', STOP_SOLREF), ('eq_solimp', FOLLOW_SOLIMP)):
            of_cpu, of_warp = (getattr(part, name) for part in (solver.mj_model, solver.mjw_model))
            of_cpu[:] = values
            of_warp.fill_(of_warp.dtype(*values))
    return solver


def _set_constraint_parameters(builder, spec: RobotSpec, robot_shapes: int,
                               layout: RobotLayout) -> None:
    """Give teacher and scene the same contact, dry friction and end stop constraints."""
    attributes = builder.custom_attributes
    for shape in range(builder.shape_count):
        builder.shape_material_ke[shape] = CONTACT_STIFFNESS
        builder.shape_material_kd[shape] = CONTACT_DAMPING
        if shape < robot_shapes:
            # Of two shapes the one with priority decides: contacts of the robot are the robot's.
            attributes['mujoco:geom_priority'].values[shape] = 1
    solref, solimp, stop, stop_mode = (attributes[f'mujoco:{name}'] for name in (
        'solreffriction', 'solimpfriction', 'solreflimit', 'solreflimit_mode'))
    rate = FRICTION_RATE * spec.teacher.substeps / spec.dt
    for dof in range(layout.num_base_dofs, layout.nqd):
        # Negative values are stiffness (which friction does not have) and damping themselves.
        solref.values[dof] = wp.vec2(-1.0, -rate)
        solimp.values[dof] = solimp.dtype(*FRICTION_SOLIMP)
        stop.values[dof] = wp.vec2(*STOP_SOLREF)
        stop_mode.values[dof] = 1   # as it is, not derived from Newton's stiffness
