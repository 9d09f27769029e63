# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The pose of a floating base comes out as Newton has it, whatever message held it."""

from dataclasses import replace

from bag_writing import LAYOUT, ODOMETRY, POSE, pose_message, swing, TF_MESSAGE, write_bag
from bag_writing import write_ros1_bag
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nerd_ros.dynamics.layout import SlotLayout
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import read_bag

COM = np.array([0.1, -0.05, 0.2])
CUBE = replace(LAYOUT, robot='cube', floating=True, joints=(), base_com=tuple(COM),
               slots=(SlotLayout('cube', (0.0, 0.0, 0.0), 0.0),))
SPIN = np.array([0.4, -1.0, 2.5])   # constant angular velocity in the world [rad/s]


def pose_at(time):
    """Pose (7,) of a base that flies and turns."""
    rotation = Rotation.from_rotvec(SPIN * time) * Rotation.from_rotvec([0.3, 0.2, 0.1])
    return np.concatenate([[time, np.sin(2 * time), 1.0 - time**2], rotation.as_quat()])


def velocity_at(time):
    """Velocity (6,) of the centre of mass, and angular, in the world."""
    rotation = Rotation.from_quat(pose_at(time)[3:])
    origin = np.array([1.0, 2 * np.cos(2 * time), -2 * time])
    return np.concatenate([origin + np.cross(SPIN, rotation.apply(COM)), SPIN])


def twist_at(time):
    """Twist (6,) of the frame of the base in that frame, as in Odometry."""
    rotation = Rotation.from_quat(pose_at(time)[3:]).inv()
    return np.concatenate([rotation.apply([1.0, 2 * np.cos(2 * time), -2 * time]),
                           rotation.apply(SPIN)])


def flight(kind, twist=twist_at, frames=('world', 'cube'), rate=200.0, **options):
    return [pose_message(t, pose_at(t) * options.get('sign', lambda t: 1)(t), twist(t), kind,
                         frames) for t in np.arange(0.0, 2.0, 1 / rate)]


def check(recording, atol_pose=1e-3, atol_velocity=0.02):
    assert recording.duration > 1.9
    for segment in recording.segments:
        poses = np.stack([pose_at(t) for t in segment.time])
        same = np.sign((segment.joint_q[:, 3:7] * poses[:, 3:]).sum(1, keepdims=True))
        np.testing.assert_allclose(segment.joint_q[:, :3], poses[:, :3], atol=atol_pose)
        np.testing.assert_allclose(segment.joint_q[:, 3:7] * same, poses[:, 3:], atol=atol_pose)
        inner = segment.joint_qd[3:-3, :6]
        np.testing.assert_allclose(inner, np.stack(
            [velocity_at(t) for t in segment.time[3:-3]]), atol=atol_velocity)


@pytest.mark.parametrize('kind', [ODOMETRY, TF_MESSAGE, POSE])
def test_robot_without_joints(tmp_path, kind):
    recording = read_bag(write_bag(tmp_path / 'bag', {'/pose': flight(kind)}), CUBE)
    check(recording)
    segment = recording.segments[0]
    assert segment.effort_command.shape == segment.effort_measured.shape == (len(segment.time), 0)
    assert recording.rates == () and recording.topics.base.startswith('/pose')
    assert ('as recorded' in '\n'.join(recording.notes)) == (kind == ODOMETRY)


@pytest.mark.parametrize('kind', [ODOMETRY, TF_MESSAGE, POSE])
def test_ros1(tmp_path, kind):
    check(read_bag(write_ros1_bag(tmp_path / 'old.bag', {'/pose': flight(kind)}), CUBE))


@pytest.mark.parametrize('twist', [
    lambda t: np.zeros(6), lambda t: np.full(6, np.nan),
    lambda t: np.concatenate([[1.0, 2 * np.cos(2 * t), -2 * t], SPIN])])
def test_twist_that_is_none_or_in_another_frame(tmp_path, twist):
    recording = read_bag(write_bag(tmp_path / 'bag', {'/odom': flight(ODOMETRY, twist)}), CUBE)
    assert 'slope of a curve' in '\n'.join(recording.notes)
    check(recording)


def test_quaternions_may_change_their_sign(tmp_path):
    def sign(time):
        return np.where(np.arange(7) < 3, 1.0, -1.0 if int(time * 200) % 3 else 1.0)
    check(read_bag(write_bag(tmp_path / 'bag', {'/odom': flight(ODOMETRY, sign=sign)}), CUBE))


def test_bad_poses_are_left_out_and_gaps_cut(tmp_path):
    messages = flight(TF_MESSAGE)
    for k in (50, 51):
        messages[k][1].transforms[0].transform.rotation.w = np.nan
    messages[100][1].transforms[0].transform.rotation.x = 5.0
    del messages[200:240]
    recording = read_bag(write_bag(tmp_path / 'bag', {'/tf': messages}), CUBE)
    assert '3 messages of /tf' in '\n'.join(recording.notes)
    assert len(recording.segments) == 2
    for segment in recording.segments:
        np.testing.assert_allclose(segment.joint_q[:, :3],
                                   [pose_at(t)[:3] for t in segment.time], atol=1e-3)


def test_pose_that_is_repeated_while_the_camera_is_covered(tmp_path):
    messages = flight(POSE)
    for k in range(101, 160):
        messages[k][1].pose = messages[100][1].pose
    recording = read_bag(write_bag(tmp_path / 'bag', {'/pose': messages}), CUBE)
    assert 'repeats one pose' in '\n'.join(recording.notes)
    assert len(recording.segments) == 2


def test_joints_and_base_together(tmp_path):
    layout = replace(CUBE, joints=LAYOUT.joints)
    topics = {**swing(), '/odom': flight(ODOMETRY)}
    recording = read_bag(write_bag(tmp_path / 'bag', topics), layout)
    check(recording)
    segment = recording.segments[0]
    np.testing.assert_allclose(segment.joint_q[:, 7], np.sin(3 * segment.time), atol=2e-3)
    assert segment.joint_qd.shape[1] == 8 and segment.effort_command.shape[1] == 2


def test_frames_of_a_transform_topic(tmp_path):
    other = [pose_message(t, [t, 0, 0, 0, 0, 0, 1], None, TF_MESSAGE, ('world', 'box'))
             for t in np.arange(0.0, 2.0, 0.005)]
    bag = write_bag(tmp_path / 'bag', {
        '/tf': sorted([*flight(TF_MESSAGE), *other], key=lambda pair: pair[0])})
    recording = read_bag(bag, CUBE)
    assert recording.topics.base == '/tf:cube'
    check(recording)
    box = read_bag(bag, CUBE, Topics(base='/tf:box'))
    np.testing.assert_allclose(box.segments[0].joint_q[:, 0], box.segments[0].time, atol=1e-6)
    strange = replace(CUBE, slots=())
    with pytest.raises(BagError, match='--base /tf:FRAME`: box, cube'):
        read_bag(bag, strange)
    check(read_bag(bag, strange, base_link='cube'))
    with pytest.raises(BagError, match='no poses of /tf:ball'):
        read_bag(bag, CUBE, Topics(base='/tf:ball'))


def test_odometry_of_a_real_robot(shared_data):
    bag = shared_data / 'bags' / 'robot_localization_jackal' / 'test2.bag'
    recording = read_bag(bag, CUBE)
    assert recording.duration > 60.0 and len(recording.segments) == 1
    assert 'as recorded' in '\n'.join(recording.notes)
