# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The node with the other robots of the package, each in its own world."""

from nav_msgs.msg import Odometry
import numpy as np
import pytest
from running_node import running_node, START_TIMEOUT, wait_for
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage


def stamp(header) -> int:
    return header.stamp.sec * 1_000_000_000 + header.stamp.nanosec


def numbers(message, fields: str = 'xyz') -> np.ndarray:
    return np.array([getattr(message, field) for field in fields])


@pytest.fixture(scope='module')
def cube(listener):
    """Return a node with a cube in a namespace, and its odometry."""
    odometry = listener.collect(Odometry, '/toss/odom')
    with running_node('-r __ns:=/toss', 'robot:=cube', 'solver:=mujoco',
                      'frame_prefix:=toss/') as node:
        wait_for(lambda: odometry or node.process.poll() is not None, 'odometry', START_TIMEOUT)
        assert node.process.poll() is None, node.output
        yield node, odometry


def fall_again(listener, odometry) -> list:
    """Put the cube back to its start when it lies; return the odometry of its fall."""
    wait_for(lambda: odometry[-1].pose.pose.position.z < 0.1, 'the cube to have fallen')
    done = len(odometry)
    assert listener.call(Trigger, '/toss/nerd_sim/reset', Trigger.Request()).success
    first = wait_for(lambda: [i for i in range(done, len(odometry)) if
                              odometry[i].pose.pose.position.z > 0.2], 'the start')[0]
    wait_for(lambda: len(odometry) > first + 40, 'the fall')
    return odometry[first:first + 40]


def test_a_floating_base_publishes_odometry(cube, listener):
    node, odometry = cube
    assert 'world cube_obstacles' in node.output
    fall = fall_again(listener, odometry)
    assert (fall[0].header.frame_id, fall[0].child_frame_id) == ('world', 'toss/cube')
    poses, twists = [m.pose.pose for m in fall], [m.twist.twist for m in fall]
    heights = np.array([pose.position.z for pose in poses])
    assert heights[0] == pytest.approx(0.3, abs=0.01) and heights[-1] < 0.25
    # It falls along the world's z, whichever way its own axes look; the twist is in these.
    down = np.array([Rotation.from_quat(numbers(pose.orientation, 'xyzw'))
                     .apply(numbers(twist.linear)) for pose, twist in zip(poses, twists)])
    times = np.array([stamp(message.header) for message in fall]) * 1e-9
    early = heights > 0.25
    assert early.sum() > 5
    np.testing.assert_allclose(down[early, :2], 0.0, atol=1e-3)
    np.testing.assert_allclose(np.diff(down[early, 2]), -9.81 * np.diff(times[early]), atol=2e-3)


def test_frames_of_a_floating_base(cube, listener):
    _, odometry = cube
    messages = listener.collect(TFMessage, '/tf')

    def both() -> list:
        """Pairs of odometry and transform of one time."""
        poses = {stamp(m.header): m.pose.pose for m in list(odometry)}
        return [(poses[stamp(t.header)], t) for m in list(messages) for t in m.transforms
                if t.child_frame_id == 'toss/cube' and stamp(t.header) in poses]
    pose, transform = wait_for(both, 'the transform of the base')[-1]
    assert transform.header.frame_id == 'world'
    np.testing.assert_array_equal(numbers(transform.transform.translation), numbers(pose.position))
    np.testing.assert_array_equal(numbers(transform.transform.rotation, 'xyzw'),
                                  numbers(pose.orientation, 'xyzw'))
    frames = {t.child_frame_id for m in list(messages) for t in m.transforms}
    assert {'toss/cube', 'box', 'ball'} <= frames


def test_joint_states_of_a_robot_without_joints(cube, listener):
    node, _ = cube
    states = listener.collect(JointState, '/toss/joint_states')
    wait_for(lambda: len(states) > 3, 'joint states')
    first, last = states[0], states[-1]
    assert stamp(last.header) > stamp(first.header)
    for field in ('name', 'position', 'velocity', 'effort'):
        assert not len(getattr(last, field))
    listener.publisher(JointState, '/toss/joint_commands').publish(
        JointState(name=['hand'], effort=[1.0]))
    wait_for(lambda: 'refused: the robot has no joints' in node.output, 'a warning')


def test_the_cartpole_follows_its_motor(listener):
    states = listener.collect(JointState, '/rail/joint_states')
    with running_node('-r __ns:=/rail', 'robot:=cartpole', 'solver:=mujoco',
                      'command_timeout:=0.0') as node:
        wait_for(lambda: states or node.process.poll() is not None, 'states', START_TIMEOUT)
        assert node.process.poll() is None, node.output
        assert 'world cartpole_obstacles' in node.output
        assert list(states[0].name) == ['slider', 'hinge']
        # The hinge has no motor: its limit is zero.
        listener.publisher(Float64MultiArray, '/rail/effort_controller/commands').publish(
            Float64MultiArray(data=[30.0, 5.0]))
        wait_for(lambda: states[-1].effort[0] == 30.0, 'the effort')
        assert states[-1].effort[1] == 0.0
        wait_for(lambda: states[-1].position[0] > 0.2, 'the cart to move')
        # The pole, which hangs at pi, stays behind.
        assert max(abs(state.position[1] - np.pi) for state in list(states)) > 0.05


BALL = """<robot name="lamp"><link name="base"/>
<link name="arm"><inertial><origin xyz="0 0 -0.3"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="neck" type="ball"><parent link="base"/><child link="arm"/><limit effort="5"/></joint>
</robot>"""


def test_a_ball_joint_has_three_names(tmp_path, listener):
    (tmp_path / 'lamp.urdf').write_text(BALL)
    (tmp_path / 'lamp.yaml').write_text(
        'name: lamp\nurdf: lamp.urdf\nbase: {type: fixed, pose: [0, 0, 1, 0, 0, 0]}\ndt: 0.01\n'
        'joints: {neck: {armature: 0.01}}\n')
    states = listener.collect(JointState, '/lamp/joint_states')
    with running_node('-r __ns:=/lamp', f'robot:={tmp_path / "lamp.yaml"}', 'world:=empty',
                      'solver:=mujoco', 'command_timeout:=0.0') as node:
        wait_for(lambda: states or node.process.poll() is not None, 'states', START_TIMEOUT)
        assert node.process.poll() is None, node.output
        assert list(states[0].name) == ['neck_x', 'neck_y', 'neck_z']
        listener.publisher(JointState, '/lamp/joint_commands').publish(
            JointState(name=['neck_y'], effort=[1.0]))
        wait_for(lambda: list(states[-1].effort) == [0.0, 1.0, 0.0], 'the effort')
        wait_for(lambda: states[-1].position[1] > 0.1, 'the lamp to turn')
        assert abs(states[-1].position[0]) < 0.01
