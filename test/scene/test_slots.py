# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Slots of each kind of collision shape against the signed distances of MuJoCo."""

import mujoco
import newton
import numpy as np
import pytest
import trimesh

from nerd_ros.scene.contacts import ContactSlots
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.world import ground_plane, Obstacle, World

URDF = """
<robot name="body"><link name="body">
  <inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0.02 -0.01 0.03" rpy="0.3 -0.5 0.8"/>
    <geometry>{}</geometry></collision>
</link></robot>
"""
SPHERE = '<sphere radius="0.07"/>'
CAPSULE = '<capsule radius="0.04" height="0.2"/>'
BOX = '<box size="0.1 0.2 0.3"/>'
CYLINDER = '<cylinder radius="0.08" length="0.12"/>'


@pytest.fixture
def body(tmp_path):
    """Make the RobotSpec of a single free body with some collision geometry."""
    def make(geometry, contact=''):
        (tmp_path / 'body.urdf').write_text(URDF.format(geometry))
        (tmp_path / 'body.yaml').write_text(
            f'name: body\nurdf: body.urdf\nbase: {{type: floating}}\ndt: 0.01\njoints: {{}}\n'
            f'contact: {{threshold: 10.0{contact}}}\n')
        return RobotSpec.load(tmp_path / 'body.yaml')
    return make


def poses(count):
    """Random positions and orientations (count, 7)."""
    rng = np.random.default_rng(0)
    pose = np.concatenate([rng.uniform(-0.5, 0.5, (count, 3)), rng.normal(size=(count, 4))], 1)
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    return pose.astype(np.float32)


def compare(spec, obstacle, count=100):
    """Distance (count,) of the closest slot, and of MuJoCo's geometry, in random poses."""
    world = World('test', obstacles=(obstacle,))
    scene, pose = build_scene(spec, world, count), poses(count)
    state = scene.model.state()
    state.joint_q.assign(pose.reshape(-1))
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    slots = ContactSlots(scene)
    slots.update(state)
    model = mujoco_solver(build_scene(spec, world).model, use_mujoco_cpu=True).mj_model
    data = mujoco.MjData(model)
    static, robot = (int(np.flatnonzero((model.geom_bodyid > 0) == moves)[0])
                     for moves in (False, True))
    exact = []
    for x, y, z, qx, qy, qz, qw in pose.astype(float):
        data.qpos[:] = x, y, z, qw, qx, qy, qz
        mujoco.mj_forward(model, data)
        exact.append(mujoco.mj_geomDistance(model, data, static, robot, 10.0, None))
    return slots.values.numpy()[..., 6].min(axis=1), np.array(exact)


@pytest.mark.parametrize('geometry, slots, tolerance', [
    (SPHERE, 1, 1e-5), (CAPSULE, 3, 1e-5), (BOX, 8, 1e-5), (CYLINDER, 3, 1e-5)])
def test_the_closest_slot_is_as_far_from_a_plane_as_the_shape(body, geometry, slots, tolerance):
    spec = body(geometry)
    assert build_scene(spec, World('nothing')).layout.num_slots == slots
    seen, exact = compare(spec, ground_plane((0.6, 0.0, 0.8), -1.0))
    assert seen == pytest.approx(exact, abs=tolerance)


@pytest.mark.parametrize('tilt', [0.0, 1e-3, 0.02, 0.049, 0.06, np.pi / 2 - 0.01, np.pi / 2])
def test_a_cylinder_on_its_end_or_side(body, tilt):
    spec = body(CYLINDER)
    spec.urdf_path.write_text(spec.urdf_path.read_text().replace('rpy="0.3 -0.5 0.8"', ''))
    scene = build_scene(spec, World('test', obstacles=(ground_plane(),)))
    state = scene.model.state()
    state.joint_q.assign(np.array([0, 0, 1, np.sin(tilt / 2), 0, 0, np.cos(tilt / 2)], np.float32))
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    slots = ContactSlots(scene)
    slots.update(state)
    middle = 1.0 - 0.01 * np.sin(tilt) + 0.03 * np.cos(tilt)
    exact = middle - 0.06 * np.cos(tilt) - 0.08 * np.sin(tilt)
    closest = slots.values.numpy()[0, :, 6].min()
    # Where it stands all but level the lowest place of the rim is as good as any other.
    assert exact - 1e-6 <= closest <= exact + 0.08 * 0.05 / 4 + 1e-6
    if tilt > 0.05 or tilt == 0.0:
        assert closest == pytest.approx(exact, abs=1e-6)


@pytest.fixture
def mesh(tmp_path):
    """Write a mesh file and return its geometry."""
    def write(mesh, scale='1 1 1'):
        mesh.export(tmp_path / 'body.stl')
        return f'<mesh filename="body.stl" scale="{scale}"/>'
    return write


def test_a_mesh_of_few_vertices_is_exact(body, mesh):
    spec = body(mesh(trimesh.creation.box((0.1, 0.2, 0.3))))
    seen, exact = compare(spec, ground_plane(offset=-1.0))
    assert seen == pytest.approx(exact, abs=1e-5)


def test_a_mirrored_mesh(body, mesh):
    spec = body(mesh(trimesh.creation.cone(0.1, 0.2, sections=8), scale='1 -2 1'))
    seen, exact = compare(spec, ground_plane(offset=-1.0))
    assert seen == pytest.approx(exact, abs=1e-5)
    straight, _ = compare(body(mesh(trimesh.creation.cone(0.1, 0.2, sections=8), '1 2 1')),
                          ground_plane(offset=-1.0))
    assert straight == pytest.approx(seen, abs=1e-5)   # the cone is symmetric


@pytest.mark.parametrize('slots, tolerance', [(16, 0.020), (32, 0.010), (200, 1e-5)])
def test_a_round_mesh_is_seen_as_finely_as_it_has_slots(body, mesh, slots, tolerance):
    spec = body(mesh(trimesh.creation.icosphere(3, 0.1)), f', shape_slots: {slots}')
    assert build_scene(spec, World('nothing')).layout.num_slots == min(slots, 64)
    seen, exact = compare(spec, ground_plane(offset=-1.0))
    assert (seen > exact - 1e-5).all() and (seen < exact + tolerance).all()


def test_a_hollow_mesh_touches_with_its_hull(body, mesh, caplog):
    cross = [trimesh.creation.box(size) for size in ((0.2, 0.05, 0.05), (0.05, 0.05, 0.2))]
    spec = body(mesh(trimesh.util.concatenate(cross)))
    scene = build_scene(spec, World('nothing'))
    assert scene.model.shape_type.numpy().tolist() == [int(newton.GeoType.CONVEX_MESH)]
    warnings = [r.getMessage() for r in caplog.records if 'not convex' in r.getMessage()]
    assert len(warnings) == 1 and 'body.urdf' in warnings[0] and 'link body' in warnings[0]
    build_scene(spec, World('nothing'))
    assert len([r for r in caplog.records if 'not convex' in r.getMessage()]) == 1


def test_a_flat_mesh_is_refused(body, mesh):
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
    with pytest.raises(RobotError, match='body.urdf: a collision mesh of link body has no volume'):
        build_scene(body(mesh(flat)), World('nothing'))


def test_a_sphere_seen_by_a_cylinder(body):
    """Circles look towards the closest static shape, wherever it is."""
    ball = Obstacle('ball', 'sphere', (0.5,), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), True)
    seen, exact = compare(body(CYLINDER), ball)
    beside = exact > 0.0
    assert beside.sum() > 20
    assert np.abs(seen - exact)[beside].max() < 0.02


@pytest.mark.parametrize('geometry, most, count', [
    (BOX, 4, 4), (CYLINDER, 2, 2), (CAPSULE, 2, 2), (SPHERE, 2, 1)])
def test_shape_slots_is_the_most_of_a_shape(body, geometry, most, count):
    layout = build_scene(body(geometry, f', shape_slots: {most}'), World('nothing')).layout
    assert layout.num_slots == count


def test_only_the_links_that_are_named_have_slots(body):
    assert build_scene(body(BOX, ', links: []'), World('nothing')).layout.num_slots == 0
    assert build_scene(body(BOX, ', links: [body]'), World('nothing')).layout.num_slots == 8
    with pytest.raises(RobotError, match='contact.links: tail is no link of .*body.urdf'):
        build_scene(body(BOX, ', links: [tail]'), World('nothing'))


def test_links_that_cannot_move_have_no_slots(body):
    spec = body(BOX)
    hinge = '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>' \
        '<limit effort="1"/></joint>'
    text, arm = spec.urdf_path.read_text(), URDF.format(SPHERE)
    link = arm[arm.index('<link'):arm.index('</robot>')]
    spec.urdf_path.write_text(text.replace('</robot>', ''.join((
        link.replace('"body"', '"pedestal"'), link.replace('"body"', '"arm"'),
        hinge.format('weld', 'fixed', 'body', 'pedestal'),
        hinge.format('hinge', 'continuous', 'pedestal', 'arm'), '</robot>'))))
    yaml = spec.source.read_text().replace('joints: {}', 'joints: {hinge: {}}')
    spec.source.write_text(yaml)
    slots = build_scene(RobotSpec.load(spec.source), World('nothing')).layout.slots
    assert {slot.link for slot in slots} == {'body', 'pedestal', 'arm'}
    spec.source.write_text(yaml.replace('floating', 'fixed'))
    slots = build_scene(RobotSpec.load(spec.source), World('nothing')).layout.slots
    assert {slot.link for slot in slots} == {'arm'}
