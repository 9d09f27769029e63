# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Robots in a Newton builder, and their layout."""

import copy

from lxml import etree
import newton
import warp as wp

from nerd_ros.dynamics.layout import JOINT_DOFS, JointLayout, MimicLayout, RobotLayout
from nerd_ros.scene.robot.link_shapes import use_hulls, warn_of_implausible
from nerd_ros.scene.robot.mesh_files import unreadable_mesh
from nerd_ros.scene.robot.mimics import read_mimics
from nerd_ros.scene.robot.robot_spec import JointSpec, RobotError, RobotSpec
from nerd_ros.scene.robot.slots import place_slots
from nerd_ros.scene.robot.urdf import fingerprint
from nerd_ros.scene.robot.urdf_joints import moving_joints, number

LABEL = 'robot'   # body and joint labels are robot/<link> and robot/<joint>

_UNLIMITED = 1e10  # Newton's own value for no limit
_MOVING = (newton.JointType.REVOLUTE, newton.JointType.PRISMATIC, newton.JointType.BALL)


class RobotBuilder(newton.ModelBuilder):
    """Newton's builder, with ball joints for URDFs: floating joints between links become these."""

    def add_joint_free(self, child: int, *, parent: int = -1, **options) -> int:
        """Add a free joint to the world, or a ball joint to another link."""
        if parent < 0:
            return super().add_joint_free(child, parent=parent, **options)
        return self.add_joint_ball(parent, child, **options)


def add_robot(builder: RobotBuilder, spec: RobotSpec, root: etree._Element,
              visuals: bool = True) -> None:
    """
    Add the robot to a builder, base at `spec.base.pose`; links do not collide with each other.

    `root` is what `read_urdf` returned. Body labels become `robot/<link>`. Meshes collide as
    their convex hulls. Without `visuals` there is nothing to see but its collision shapes.

    Raises RobotError for meshes that cannot be read and for joints in another order than Newton's.
    """
    first_shape, first_joint = builder.shape_count, builder.joint_count
    _add_urdf(builder, root if visuals else _without(root, 'visual'), spec)
    names = _joint_names(builder, first_joint)
    if names != list(spec.joints):
        raise RobotError(f'{spec.source}: joints are listed as {", ".join(spec.joints)}; '
                         f'list them in the order of the URDF: {", ".join(names)}.')
    elements = moving_joints(root)
    for index in range(first_joint, builder.joint_count):
        name = _name(builder.joint_label[index])
        if name in spec.joints:
            _set_joint(builder, index, spec.joints[name], elements[name])
    for index in range(first_joint, builder.joint_count):
        leader = builder.joint_mimic_joint[index]
        if leader >= 0:
            offset, multiplier = builder.joint_mimic_coeffs[index]
            builder.joint_q[builder.joint_q_start[index]] = (
                offset + multiplier * builder.joint_q[builder.joint_q_start[leader]])
    use_hulls(builder, first_shape, spec.urdf_path)
    for shape in range(first_shape, builder.shape_count):
        builder.shape_material_mu[shape] = spec.contact.friction
        if (spec.contact.rounded_cylinders
                and builder.shape_type[shape] == newton.GeoType.CYLINDER
                and builder.shape_flags[shape] & newton.ShapeFlags.COLLIDE_SHAPES):
            builder.shape_type[shape] = newton.GeoType.CAPSULE
    if visuals:
        warn_of_implausible(builder, first_shape, spec.urdf_path)


def joint_order(root: etree._Element) -> list[str]:
    """Names of the joints of a URDF that move, in the order that a RobotSpec has to list them."""
    builder = RobotBuilder()
    builder.add_urdf(_text(_without(root, 'visual', 'collision')))
    return _joint_names(builder, 0)


def robot_layout(builder: newton.ModelBuilder, spec: RobotSpec,
                 root: etree._Element) -> RobotLayout:
    """Layout of the robot that is the first thing in `builder`."""
    mimics, elements = read_mimics(root, spec.urdf_path), moving_joints(root)
    floating = spec.base.type == 'floating'
    joints, dof = [], 6 if floating else 0
    for name, joint in spec.joints.items():
        kind = elements[name].get('type')
        joints.append(_joint_layout(builder, dof, name, kind, joint, mimics.get(name)))
        dof += JOINT_DOFS[kind]
    base_com = tuple(float(v) for v in builder.body_com[0]) if floating else (0.0, 0.0, 0.0)
    return RobotLayout(
        robot=spec.name, dt=spec.dt, floating=floating, joints=tuple(joints),
        slots=place_slots(builder, spec), contact_threshold=spec.contact.threshold,
        base_com=base_com, fingerprint=fingerprint(root))


def _joint_layout(builder, dof: int, name: str, kind: str, joint: JointSpec,
                  mimic: MimicLayout | None) -> JointLayout:
    limited = kind in ('revolute', 'prismatic')
    driven = mimic is None and joint.effort_limit != 0.0
    return JointLayout(
        name=name, type=kind,
        lower=float(builder.joint_limit_lower[dof]) if limited else -_UNLIMITED,
        upper=float(builder.joint_limit_upper[dof]) if limited else _UNLIMITED,
        effort_limit=float(builder.joint_effort_limit[dof]) if driven else 0.0, mimic=mimic)


def _add_urdf(builder: RobotBuilder, root: etree._Element, spec: RobotSpec) -> None:
    x, y, z, roll, pitch, yaw = spec.base.pose
    try:
        builder.add_urdf(
            _text(root), xform=wp.transform((x, y, z), wp.quat_rpy(roll, pitch, yaw)),
            floating=spec.base.type == 'floating', enable_self_collisions=False)
    except Exception as error:  # readers of mesh files raise many kinds
        culprit = unreadable_mesh(root)
        where = (f'the mesh {culprit[1]} of link {culprit[0]} cannot be read, check the file'
                 if culprit else 'cannot be built, check its mesh files')
        reason = ' '.join(str(error).split()).rstrip('.')
        raise RobotError(f'{spec.urdf_path}: {where}: {reason}.') from error


def _without(root: etree._Element, *tags: str) -> etree._Element:
    """Return a URDF without some parts of its links."""
    root = copy.deepcopy(root)
    for link in root.findall('link'):
        for part in link.xpath('|'.join(tags)):
            link.remove(part)
    return root


def _text(root: etree._Element) -> str:
    """URDF for a RobotBuilder."""
    root = copy.deepcopy(root)
    root.set('name', LABEL)
    for joint in root.findall('joint'):
        if joint.get('type') == 'ball':
            joint.set('type', 'floating')
    return etree.tostring(root, encoding='unicode')


def _joint_names(builder: newton.ModelBuilder, first: int) -> list[str]:
    return [_name(label) for label, kind in zip(builder.joint_label[first:],
                                                builder.joint_type[first:]) if kind in _MOVING]


def _name(label: str) -> str:
    return label.split('/', 1)[1]


def _set_joint(builder: newton.ModelBuilder, index: int, joint: JointSpec, element) -> None:
    """Give all dofs of a joint what the RobotSpec says of it, or else the URDF."""
    first = builder.joint_qd_start[index]
    limit, dynamics = element.find('limit'), element.find('dynamics')
    effort, friction, damping = (
        number(part, attribute, 0.0) if value is None else value for value, part, attribute in (
            (joint.effort_limit, limit, 'effort'), (joint.friction, dynamics, 'friction'),
            (joint.damping, dynamics, 'damping')))
    for dof in range(first, first + JOINT_DOFS[element.get('type')]):
        builder.joint_armature[dof] = joint.armature
        builder.joint_friction[dof] = friction
        builder.joint_damping[dof] = damping
        # MuJoCo knows no limit of 0; the layout holds the one that counts.
        builder.joint_effort_limit[dof] = effort or 1.0
        # URDF joints arrive with position drives; efforts are all that acts here.
        builder.joint_target_mode[dof] = int(newton.JointTargetMode.NONE)
    if element.get('type') != 'ball':
        builder.joint_q[builder.joint_q_start[index]] = joint.initial
