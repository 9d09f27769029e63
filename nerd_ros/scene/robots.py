# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Robots in a Newton builder, and their layout."""

from lxml import etree
import newton
import warp as wp

from nerd_ros.dynamics.layout import JointLayout, RobotLayout
from nerd_ros.scene.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.slots import place_slots
from nerd_ros.scene.urdf import fingerprint

LABEL = 'robot'   # body and joint labels are robot/<link> and robot/<joint>

_UNLIMITED = 1e10  # Newton's own value for no limit


def add_robot(builder: newton.ModelBuilder, spec: RobotSpec, root: etree._Element) -> None:
    """
    Add the robot to a builder, base at `spec.base.pose`; links do not collide with each other.

    `root` is what `read_urdf` returned. Body labels become `robot/<link>`.
    """
    root.set('name', LABEL)
    x, y, z, roll, pitch, yaw = spec.base.pose
    first_shape, first_dof = builder.shape_count, builder.joint_dof_count
    first_joint = builder.joint_count
    try:
        builder.add_urdf(
            etree.tostring(root, encoding='unicode'),
            xform=wp.transform((x, y, z), wp.quat_rpy(roll, pitch, yaw)),
            floating=spec.base.type == 'floating',
            enable_self_collisions=False)
    except Exception as error:  # readers of mesh files raise many kinds
        raise RobotError(f"{spec.urdf_path}: cannot be built, check its mesh files: "
                         f"{' '.join(str(error).split())}.") from error
    names = [label.split('/', 1)[1] for label, kind
             in zip(builder.joint_label[first_joint:], builder.joint_type[first_joint:])
             if kind in (newton.JointType.REVOLUTE, newton.JointType.PRISMATIC)]
    if names != list(spec.joints):
        raise RobotError(f'{spec.source}: joints are listed as {", ".join(spec.joints)}; '
                         f'list them in the order of the URDF: {", ".join(names)}.')
    dof = first_dof + (6 if spec.base.type == 'floating' else 0)
    for index, (name, joint) in enumerate(spec.joints.items(), start=dof):
        builder.joint_armature[index] = joint.armature
        # URDF joints arrive with position drives; efforts are all that acts here.
        builder.joint_target_mode[index] = int(newton.JointTargetMode.NONE)
        if joint.friction is not None:
            builder.joint_friction[index] = joint.friction
        if joint.damping is not None:
            builder.joint_damping[index] = joint.damping
        if joint.effort_limit is not None:
            builder.joint_effort_limit[index] = joint.effort_limit
    first_q = builder.joint_coord_count - len(spec.joints)
    for offset, joint in enumerate(spec.joints.values()):
        builder.joint_q[first_q + offset] = joint.initial
    for shape in range(first_shape, builder.shape_count):
        builder.shape_material_mu[shape] = spec.contact.friction
        if (spec.contact.rounded_cylinders
                and builder.shape_type[shape] == newton.GeoType.CYLINDER
                and builder.shape_flags[shape] & newton.ShapeFlags.COLLIDE_SHAPES):
            builder.shape_type[shape] = newton.GeoType.CAPSULE


def robot_layout(builder: newton.ModelBuilder, spec: RobotSpec,
                 root: etree._Element) -> RobotLayout:
    """Layout of the robot that is the first thing in `builder`."""
    kinds = {joint.get('name'): joint.get('type') for joint in root.iter('joint')}
    floating = spec.base.type == 'floating'
    base_dofs = 6 if floating else 0
    joints = []
    for index, name in enumerate(spec.joints, start=base_dofs):
        unlimited = kinds[name] == 'continuous'
        joints.append(JointLayout(
            name=name, type=kinds[name],
            lower=-_UNLIMITED if unlimited else float(builder.joint_limit_lower[index]),
            upper=_UNLIMITED if unlimited else float(builder.joint_limit_upper[index]),
            effort_limit=float(builder.joint_effort_limit[index])))
    base_com = tuple(float(v) for v in builder.body_com[0]) if floating else (0.0, 0.0, 0.0)
    return RobotLayout(
        robot=spec.name, dt=spec.dt, floating=floating, joints=tuple(joints),
        slots=place_slots(builder, spec), contact_threshold=spec.contact.threshold,
        base_com=base_com, fingerprint=fingerprint(root))
