# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Publishers on a floating base: odometry and the frame of the base, against the scene."""

from nav_msgs.msg import Odometry
import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from running_node import Listener, wait_for
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from nerd_ros.nodes.conversions import robot_description
from nerd_ros.nodes.publishers import JointStatePublisher, OdometryPublisher
from nerd_ros.nodes.transforms import TransformPublisher
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.world import World

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
URDF = '''<robot name="r">
  <link name="body">
    <inertial><origin xyz="0.05 0.02 0"/><mass value="2"/>
      <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="arm">
    <inertial><mass value="1"/>
      <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="hand"/>
  <joint name="swing" type="continuous">
    <parent link="body"/><child link="arm"/><origin xyz="0.2 0 0"/><axis xyz="0 0 1"/>
    <limit effort="1" velocity="9"/>
  </joint>
  <joint name="grip" type="fixed">
    <parent link="arm"/><child link="hand"/><origin xyz="0.1 0 0" rpy="0 0 1.5"/>
  </joint>
</robot>'''
POSITION, ANGLES = (1.0, 2.0, 3.0), (0.3, -0.2, 1.9)  # [m], roll pitch yaw [rad]


@pytest.fixture(scope='module')
def simulation(tmp_path_factory):
    """Return a body with an arm, thrown into a world without gravity, after some steps."""
    folder = tmp_path_factory.mktemp('floating')
    (folder / 'r.urdf').write_text(URDF)
    (folder / 'r.yaml').write_text(
        'name: r\nurdf: r.urdf\ndt: 0.005\njoints: {swing: {}}\n'
        f'base: {{type: floating, pose: {[*POSITION, *ANGLES]}}}\n')
    simulation = Simulation(folder / 'r.yaml', World('w', (0.0, 0.0, 0.0)), 'mujoco')
    simulation.set_state(simulation.joint_q[0], [0.5, -0.3, 0.2, 0.4, -0.6, 1.0, 2.0])
    simulation.step(20)
    return simulation


@pytest.fixture(scope='module')
def listener():
    """Return a Listener that goes with this module, and with it what it has published."""
    listener = Listener('publishing')
    yield listener
    listener.close()


def base_of(simulation) -> tuple[np.ndarray, Rotation]:
    """Position and orientation of the base in the world."""
    pose = simulation.body_q[0, 0].astype(float)
    return pose[:3].copy(), Rotation.from_quat(pose[3:])


def numbers(message, fields: str) -> list[float]:
    return [getattr(message, field) for field in fields]


def test_odometry(simulation, listener):
    messages = listener.collect(Odometry, 'odom')
    publisher = OdometryPublisher(listener.node, simulation, 'map', 'left/body')
    time_ns = round(simulation.time * 1e9)

    def heard():
        publisher.publish(time_ns)
        return messages
    message = wait_for(heard, 'odometry')[0]
    assert (message.header.frame_id, message.child_frame_id) == ('map', 'left/body')
    assert message.header.stamp.nanosec == time_ns
    position, orientation = base_of(simulation)
    # It has moved since its start.
    assert np.linalg.norm(position - POSITION) > 0.02
    pose, twist = message.pose.pose, message.twist.twist
    np.testing.assert_allclose(numbers(pose.position, 'xyz'), position, atol=1e-6)
    np.testing.assert_allclose(numbers(pose.orientation, 'xyzw'), orientation.as_quat(), atol=1e-6)
    # The twist by differences of the pose, half a step on either side.
    simulation.step()
    after = base_of(simulation)
    linear = orientation.inv().apply(after[0] - position) / simulation.dt
    angular = (orientation.inv() * after[1]).as_rotvec() / simulation.dt
    np.testing.assert_allclose(numbers(twist.linear, 'xyz'), linear, atol=0.02)
    np.testing.assert_allclose(numbers(twist.angular, 'xyz'), angular, atol=0.02)
    assert np.linalg.norm(angular) > 0.5


@pytest.mark.parametrize('links, moving', [
    (True, {'left/body': 'map', 'left/arm': 'left/body'}), (False, {'left/body': 'map'})])
def test_transforms_of_a_floating_base(simulation, listener, links, moving):
    messages = listener.collect(TFMessage, '/tf')
    static = listener.collect(TFMessage, '/tf_static', LATCHED)
    description = robot_description(simulation.spec.urdf_path)
    publisher = TransformPublisher(listener.node, simulation, description, links, 'map', 'left/')

    def heard():
        publisher.publish(7)
        return [m for m in list(messages) if m.transforms[-1].child_frame_id == 'left/body'
                and len(m.transforms) == len(moving)]
    transforms = {t.child_frame_id: t for t in wait_for(heard, 'transforms')[0].transforms}
    assert {name: t.header.frame_id for name, t in transforms.items()} == moving
    position, orientation = base_of(simulation)
    base = transforms['left/body'].transform
    np.testing.assert_allclose(numbers(base.translation, 'xyz'), position, atol=1e-6)
    np.testing.assert_allclose(numbers(base.rotation, 'xyzw'), orientation.as_quat(), atol=1e-6)
    fixed = {t.child_frame_id: t for m in wait_for(lambda: list(static), 'static transforms')
             for t in m.transforms}
    assert 'left/body' not in fixed, 'the base moves'
    if links:
        arm, hand = transforms['left/arm'].transform, fixed['left/hand']
        np.testing.assert_allclose(numbers(arm.translation, 'xyz'), [0.2, 0.0, 0.0], atol=1e-6)
        turn = Rotation.from_quat(numbers(arm.rotation, 'xyzw')).as_rotvec()
        np.testing.assert_allclose(turn, [0.0, 0.0, simulation.joint_q[0, 7]], atol=1e-5)
        assert hand.header.frame_id == 'left/arm'
        assert hand.transform.rotation.z == pytest.approx(np.sin(0.75))


def test_joint_states_of_a_floating_base(simulation, listener):
    messages = listener.collect(JointState, 'floating_states')
    publisher = JointStatePublisher(listener.node, simulation, 'floating_states')

    def heard():
        publisher.publish(7)
        return messages
    message = wait_for(heard, 'joint states')[0]
    assert list(message.name) == ['swing']
    assert message.position[0] == pytest.approx(float(simulation.joint_q[0, 7]))
    assert message.velocity[0] == pytest.approx(float(simulation.joint_qd[0, 6]))
    # Discovery does not tell the depth, so it is asked of the publisher itself.
    there = next(p for p in listener.node.publishers if p.topic_name == '/floating_states')
    assert there.qos_profile.depth == 10
    assert there.qos_profile.reliability == ReliabilityPolicy.RELIABLE
