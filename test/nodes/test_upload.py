# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Bags arrive at the running node, over DDS: by path and in pieces, from several at once."""

from array import array
from concurrent.futures import ThreadPoolExecutor
import hashlib
import os
from pathlib import Path
import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip('nerd_ros_interfaces', reason='nerd_ros_interfaces is not built')

from nerd_ros_interfaces.srv import UploadBag  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from running_node import Listener, RunningNode, START_TIMEOUT, wait_for  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402

from nerd_ros.learning.store.store_files import StoreError  # noqa: E402
from nerd_ros.nodes import upload_client  # noqa: E402
from nerd_ros.nodes.upload_client import default_name, upload, UploadFailed  # noqa: E402

sys.path.append(str(Path(__file__).parents[1] / 'learning'))
from bag_writing import swing, write_bag  # noqa: E402

NAMESPACE = '/uploading'
CHUNK = 100_000
# A check starts Newton, on whatever machine [s].
CHECK_TIMEOUT = 300.0


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    return tmp_path_factory.mktemp('store')


@pytest.fixture(scope='module')
def node(store, listener):
    node = start(store, listener)
    yield node
    node.kill()


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return write_bag(tmp_path_factory.mktemp('bags') / 'swing.1', swing())


@pytest.fixture
def client(node):
    client = Client('uploading_client')
    yield client
    client.close()


def start(store, listener):
    """Start a simulator and return it when it simulates."""
    states = listener.collect(JointState, f'{NAMESPACE}/joint_states')
    node = RunningNode(f'-r __ns:={NAMESPACE}', 'solver:=mujoco', 'world:=empty',
                       f'store:={store}', 'min_free_space:=1.0')
    wait_for(lambda: states or node.process.poll() is not None, 'joint_states', START_TIMEOUT)
    assert node.process.poll() is None, node.output
    return node


class Client(Listener):
    """Somebody who uploads, by plain calls of the service."""

    def __init__(self, name):
        super().__init__(name)
        self._client = self.node.create_client(UploadBag, f'{NAMESPACE}/upload_bag')
        assert self._client.wait_for_service(START_TIMEOUT)

    def begin(self, **fields):
        return self._client.call_async(UploadBag.Request(**fields))

    def send(self, **fields):
        future = self.begin(**fields)
        wait_for(future.done, 'an answer of upload_bag', CHECK_TIMEOUT)
        return future.result()

    def refused(self, **fields):
        answer = self.send(**fields)
        assert not answer.success and answer.duration == 0.0
        assert answer.message and '\n' not in answer.message
        return answer


def files(bag):
    return {path.name: path.read_bytes() for path in sorted(bag.iterdir())
            if not path.name.startswith('.')}


def pieces(name, bag):
    """Return the fields of all requests that send a bag."""
    requests = [
        {'name': name, 'file': file, 'size': len(data), 'offset': offset,
         'sha256': hashlib.sha256(data).hexdigest(),
         'data': array('B', data[offset:offset + CHUNK])}
        for file, data in files(bag).items() for offset in range(0, len(data), CHUNK)]
    requests[-1]['last'] = True
    return requests


def kept(store, name):
    return store / 'double_pendulum' / 'bags' / name


def leftovers(store):
    return os.listdir(kept(store, '.incoming'))


def test_the_command_uploads_by_path(node, store, bag):
    result = subprocess.run(
        [sys.executable, '-m', 'nerd_ros.cli', 'bag', 'upload', str(bag), '--namespace',
         NAMESPACE], capture_output=True, text=True, timeout=CHECK_TIMEOUT)
    assert result.returncode == 0, result.stderr
    first, *notes = result.stdout.splitlines()
    assert first == 'bag swing_1: 2.00 s of usable motion'
    assert any('/joint_commands' in note for note in notes)
    assert files(kept(store, 'swing_1')) == files(bag)
    assert 'bag swing_1: 2.00 s' in node.output


def test_in_chunks_while_others_are_served(node, store, bag, client):
    """One client goes on with what another began; commands and steps do not wait for the check."""
    *others, last = pieces('sent', bag)
    assert len(others) >= 3
    for request in others:
        assert client.send(**request).success
    assert client.send(**others[1]).success  # again: no harm
    ask = {**last, 'data': array('B'), 'last': False}
    assert client.send(**ask).received == last['offset']
    states = client.collect(JointState, f'{NAMESPACE}/joint_states')
    future = client.begin(**last)
    waits = []
    for data in (True, False) * 3:
        assert client.call(SetBool, f'{NAMESPACE}/nerd_sim/pause', SetBool.Request(data=data))
        waits.append(future.done())
    before = len(states)
    wait_for(lambda: len(states) > before + 20, 'states')
    waits.append(future.done())
    assert not any(waits), 'the check was over before anybody else was served'
    wait_for(future.done, 'the check', CHECK_TIMEOUT)
    answer = future.result()
    assert answer.success and answer.duration == pytest.approx(2.0, abs=0.01)
    assert answer.received == last['size'] and '/joint_states' in answer.message
    assert files(kept(store, 'sent')) == files(bag) and leftovers(store) == []
    # The client of the command sees that it is there, and sends nothing.
    assert upload(bag, 'sent', NAMESPACE, by_path=False, progress=False) == answer.message


def test_several_clients_under_one_name(node, store, bag, tmp_path):
    """With the same bag all succeed; with another one it is refused, and none are mixed."""
    other = write_bag(tmp_path / 'swing.1', swing(duration=1.0))

    def send(path):
        try:
            return upload(path, 'shared', NAMESPACE, by_path=False, progress=False)
        except UploadFailed as error:
            return error
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(send, (bag, other, bag)))
    bags = [files(path) for path in (bag, other)]
    assert files(kept(store, 'shared')) in bags
    duration = 2.0 if files(kept(store, 'shared')) == bags[0] else 1.0
    succeeded = [result for result in results if not isinstance(result, UploadFailed)]
    told = [float(re.search(r'([\d.]+) s of usable', result)[1]) for result in succeeded]
    # Clocks of recorder and stamps differ a little, and the last sample may fall beyond the end.
    assert told and told == pytest.approx([duration] * len(told), abs=0.02)
    assert all('\n' not in str(result) for result in results if isinstance(result, UploadFailed))
    assert leftovers(store) == []


def test_attacks(node, store, client, bag):
    piece = pieces('x', bag)[0]
    for name in ('', '..', '../../etc', '/etc', 'ä', 'x' * 65, 'x' * 10**6):
        assert '1 to 64 letters' in client.refused(**{**piece, 'name': name}).message
        assert '1 to 64 letters' in client.refused(name=name, path=str(bag)).message
    for file in ('../x.mcap', '/etc/x.mcap', 'a\\x.mcap', '.x.mcap', 'ä' * 200 + '.db3'):
        assert 'cannot be a file' in client.refused(**{**piece, 'file': file}).message
    for path in ('relative', '../../etc', '/etc/passwd', '/nowhere', '/dev/zero', '/x\0', '~/x',
                 '/' * 9999, '/x' * 9999, '/proc/self/mem', str(store)):
        assert client.refused(name='x', path=path).received == 0
    for changed in ({'sha256': ''}, {'sha256': '0' * 63 + '/'}, {'offset': 2**64 - 1},
                    {'size': 2**64 - 1}, {'size': 1}, {'file': ''}, {'file': '', 'data': []},
                    {'offset': 5}):
        assert client.refused(**{**piece, **changed}).received == 0
    # What is no bag leaves nothing but the sentence; the name is free for the next one.
    nonsense = array('B', b'version https://git-lfs.github.com/spec/v1\n')
    answer = client.refused(name='x', file='x.mcap', size=len(nonsense), data=nonsense, last=True,
                            sha256=hashlib.sha256(nonsense).hexdigest().upper())
    assert 'bag x/x.mcap: a Git LFS pointer' in answer.message
    assert leftovers(store) == [] and not kept(store, 'x').exists()
    assert 'Traceback' not in node.output and node.process.poll() is None


def test_limits_can_be_set(node, client, bag):
    def set_limit(name, value):
        request = SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg()])
        result, = client.call(SetParameters, f'{NAMESPACE}/nerd_sim/set_parameters',
                              request).results
        assert result.successful
    size = sum(map(len, files(bag).values()))
    for name, value, usual in (('max_bag_size', (size - 1) / 1e6, 2000.0),
                               ('min_free_space', 1e9, 1.0)):
        set_limit(name, value)
        assert name in client.refused(name='y', path=str(bag)).message
        with pytest.raises(UploadFailed, match=name):
            upload(bag, 'y', NAMESPACE, by_path=False, progress=False)
        set_limit(name, usual)


def test_a_client_that_sees_another_bag(node, store, client, bag, tmp_path):
    """A path that is something else there is not what the client means: it sends its own."""
    size = sum(map(len, files(bag).values()))
    answer = client.refused(name='y', path=str(bag), size=size + 1)
    assert answer.received == 0 and 'another bag' in answer.message
    with pytest.raises(StoreError, match='not a bag'):
        upload(tmp_path, 'y', NAMESPACE)
    with pytest.raises(StoreError, match='1 to 64 letters'):
        upload(bag, '../y', NAMESPACE)
    # It is the same bag there and refused, so there is no use in sending it.
    kept(store, '').mkdir(parents=True, exist_ok=True)
    mine = write_bag(kept(store, 'by_hand'), swing())
    with pytest.raises(UploadFailed, match='in the store already'):
        upload(mine, 'y', NAMESPACE)


def test_nobody_is_there(bag, monkeypatch):
    monkeypatch.setattr(upload_client, 'DISCOVERY_TIMEOUT', 0.5)
    with pytest.raises(UploadFailed, match='no simulator offers /nowhere/upload_bag'):
        upload(bag, namespace='/nowhere')


def test_names_by_default(tmp_path):
    assert default_name(tmp_path / 'rosbag2_2026_01_02-03_04_05') == 'rosbag2_2026_01_02-03_04_05'
    assert default_name(tmp_path / 'my ämazing run.mcap') == 'my_mazing_run'
    assert default_name(tmp_path / ('x' * 100 + '.db3')) == 'x' * 64


def test_goes_on_after_the_end_of_the_node(node, store, bag, client, listener):
    """The last test of this node: it is killed, and another one goes on."""
    requests = pieces('resumed', bag)
    for request in requests[:3]:
        assert client.send(**request).success
    node.kill()
    again = start(store, listener)
    try:
        ask = {**requests[2], 'offset': 0, 'data': array('B')}
        received = requests[2]['offset'] + len(requests[2]['data'])
        assert client.send(**ask).received == received
        assert '2.00 s' in upload(bag, 'resumed', NAMESPACE, by_path=False, progress=False)
        assert files(kept(store, 'resumed')) == files(bag) and leftovers(store) == []
        # In order, and at once, while a bag is checked: that is to be gone on with as well.
        for request in pieces('unfinished', bag):
            client.begin(**request)
        wait_for(lambda: len(leftovers(store)) == 2, 'the check')
        code, took = again.end(signal.SIGINT)
        assert code == 0 and took < 3.0 and 'Traceback' not in again.output, again.output
        assert files(kept(store, '.incoming') / 'unfinished' / 'unfinished') == files(bag)
    finally:
        again.kill()


def test_simulates_without_the_interfaces(listener):
    states = listener.collect(JointState, '/without/joint_states')
    code = ('import sys; sys.modules["nerd_ros_interfaces"] = None; '
            'from nerd_ros.nodes.sim_node import main; sys.exit(main(sys.argv))')
    process = subprocess.Popen(
        [sys.executable, '-c', code, '--ros-args', '-r', '__ns:=/without', '-p', 'solver:=mujoco'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(lambda: states or process.poll() is not None, 'joint_states', START_TIMEOUT)
    finally:
        process.kill()
        output = process.communicate()[0]
    assert states, output
    assert output.count('learned from by fine_tune: nerd_ros_interfaces is not installed') == 1
