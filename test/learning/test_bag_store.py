# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The store of bags: whole or in pieces, what it refuses, and that nothing is left of that."""

import hashlib
import os
import sys
from threading import Timer
import time

from bag_writing import LAYOUT, swing, write_bag
import pytest

from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.recording import read_bag
from nerd_ros.learning.store.bag_check import BagCheck, BagSummary
from nerd_ros.learning.store.bag_store import BagStore
from nerd_ros.learning.store.incoming_bag import IncomingBag, Piece
from nerd_ros.learning.store.store_files import store_root, StoreError

CHUNK = 50_000


def arriving(store):
    """Return how much is there of each bag that arrives in pieces [bytes]."""
    folders = [folder for folder in (store.folder / '.incoming').glob('*')
               if not folder.name.startswith('.')]
    return {folder.name: IncomingBag(folder, folder.name, None).size for folder in folders}


def read(folder, work, shown_as, size, disk):
    """Check a bag in this process; test_upload.py does it in another one."""
    try:
        recording = read_bag(folder, LAYOUT)
    except BagError as error:
        raise StoreError(str(error).replace(str(folder), shown_as)) from None
    return BagSummary(recording.duration, recording.notes)


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return write_bag(tmp_path_factory.mktemp('bags') / 'run', swing())


@pytest.fixture(scope='module')
def other_bag(tmp_path_factory):
    return write_bag(tmp_path_factory.mktemp('bags') / 'run', swing(duration=1.0))


@pytest.fixture
def store(tmp_path):
    return new_store(tmp_path)


def new_store(root, **limits):
    return BagStore(root / 'store', 'double_pendulum', read,
                    **{'min_free_space': 0.0, **limits})


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()
            if not path.name.startswith('.')}


def leftovers(store):
    """Return the names of everything there is in the store beside complete bags."""
    incoming = store.folder / '.incoming'
    return sorted(os.listdir(incoming)) if incoming.exists() else []


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def pieces(file, data, start=0):
    """Return all pieces of a file from byte `start` on."""
    return [Piece(file, len(data), sha256(data), offset, data[offset:offset + CHUNK])
            for offset in range(start, len(data), CHUNK)]


def all_pieces(bag):
    return [piece for file, data in sorted(content(bag).items()) for piece in pieces(file, data)]


def send(store, name, parts):
    """Send pieces, the last one as the last; returns its receipt."""
    for piece in parts[:-1]:
        assert store.receive(name, piece, last=False).summary is None
    return store.receive(name, parts[-1], last=True)


def listing(bag):
    """Return what sha256sum prints."""
    return ''.join(f'{sha256(data)}  {file}\n' for file, data in content(bag).items())


def refused(action, *arguments, **keywords):
    """Return the sentence and the number of bytes that something is refused with."""
    with pytest.raises(StoreError) as refusal:
        action(*arguments, **keywords)
    message = str(refusal.value)
    assert message and '\n' not in message
    return message, refusal.value.received


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_bag_by_path(store, tmp_path, storage):
    bag = write_bag(tmp_path / 'run', swing(), storage)
    (bag / 'video.mp4').write_bytes(b'no part of it')
    receipt = store.add('run-1', str(bag))
    (bag / 'video.mp4').unlink()
    assert receipt.received == sum(map(len, content(bag).values()))
    assert receipt.summary.duration == pytest.approx(2.0, abs=0.01)
    assert any('/joint_states' in note for note in receipt.summary.notes)
    stored, = store.bags()
    assert stored.name == 'run-1' and content(stored.path) == content(bag)
    assert stored.summary == receipt.summary and stored.size == receipt.received
    assert leftovers(store) == []
    # The same again is no harm; another one under that name is.
    assert store.add('run-1', str(bag)) == receipt
    os.truncate(bag / 'metadata.yaml', 10)
    message, received = refused(store.add, 'run-1', str(bag))
    assert 'another bag run-1' in message and received == sum(map(len, content(bag).values()))


def test_a_single_file_becomes_a_folder(store, bag):
    receipt = store.add('single', str(bag / 'run.mcap'))
    assert receipt.summary.duration == pytest.approx(2.0, abs=0.01)
    assert set(content(store.folder / 'single')) == {'run.mcap'}


def test_a_size_tells_another_machine(store, bag):
    size = sum(map(len, content(bag).values()))
    assert refused(store.add, 'a', str(bag), size=size + 1)[1] == 0
    assert store.add('a', str(bag), size=size).summary


def test_a_bag_in_pieces(store, bag):
    parts = all_pieces(bag)
    assert len(parts) > 5
    receipt = send(store, 'sent', parts)
    assert receipt.summary.duration == pytest.approx(2.0, abs=0.01)
    assert content(store.folder / 'sent') == content(bag)
    assert leftovers(store) == []
    # The answer to the last piece may have been lost, so it comes again.
    assert store.receive('sent', parts[-1], last=True) == receipt
    assert store.receive('sent', parts[0], last=False).received == parts[0].size


def test_pieces_again_and_out_of_order(store, bag):
    data = content(bag)['run.mcap']
    first, second, third = pieces('run.mcap', data)[:3]
    assert 'go on at offset 0' in refused(store.receive, 'x', second, False)[0]
    assert store.receive('x', first, False).received == CHUNK
    assert store.receive('x', first, False).received == CHUNK
    message, received = refused(store.receive, 'x', third, False)
    assert f'go on at offset {CHUNK}' in message and received == CHUNK
    store.receive('x', second, False)
    store.receive('x', first, False)
    # Half of it is there, as after the end of a node while it wrote.
    half = first._replace(offset=CHUNK + 10, data=data[CHUNK + 10:2 * CHUNK + 10])
    assert store.receive('x', half, False).received == 2 * CHUNK + 10
    changed = first._replace(data=bytes(CHUNK))
    message, received = refused(store.receive, 'x', changed, False)
    assert 'differs' in message and received == 2 * CHUNK + 10
    ask = first._replace(data=b'')
    assert store.receive('x', ask, False).received == 2 * CHUNK + 10
    assert send(store, 'x', pieces('run.mcap', data)).summary


def test_goes_on_after_a_restart(store, tmp_path, bag):
    store.announce('x', listing(bag), 0)
    parts = all_pieces(bag)
    for piece in parts[:4]:
        store.receive('x', piece, False)
    again = new_store(tmp_path)
    received = sum(len(piece.data) for piece in parts[:4])
    assert arriving(again) == {'x': received}
    assert again.announce('x', listing(bag), 0).received == received
    ask = parts[4]._replace(data=b'', offset=0)
    assert again.receive('x', ask, False).received == parts[4].offset
    assert send(again, 'x', parts[4:]).summary
    assert content(again.folder / 'x') == content(bag)


def test_a_wrong_sha256(store, bag):
    data = content(bag)['run.mcap']
    parts = pieces('run.mcap', data[:-1] + b'x')
    parts = [piece._replace(sha256=sha256(data)) for piece in parts]
    for piece in parts[:-1]:
        store.receive('x', piece, False)
    message, received = refused(store.receive, 'x', parts[-1], True)
    assert 'sha256' in message and received == 0
    assert arriving(store) == {'x': 0}
    assert send(store, 'x', pieces('run.mcap', data)).summary


def test_another_file_of_that_name_starts_anew(store, bag, other_bag):
    mine = pieces('run.mcap', content(bag)['run.mcap'])
    others = pieces('run.mcap', content(other_bag)['run.mcap'])
    store.receive('x', mine[0], False)
    # To ask costs nobody what is there.
    assert store.receive('x', others[0]._replace(data=b''), False).received == 0
    assert store.receive('x', mine[1], False).received == 2 * CHUNK
    store.receive('x', others[0], False)
    assert refused(store.receive, 'x', mine[2], False)[1] == 0
    assert send(store, 'x', others[1:]).summary
    assert content(store.folder / 'x') == {'run.mcap': content(other_bag)['run.mcap']}


def test_two_bags_under_one_name_are_not_mixed(store, bag, other_bag):
    store.announce('x', listing(other_bag), 0)
    store.receive('x', all_pieces(other_bag)[0], False)
    assert store.announce('x', listing(bag), 0).received == 0
    message, _ = refused(store.receive, 'x', all_pieces(other_bag)[1], False)
    assert 'another name' in message
    first = pieces('run.mcap', content(bag)['run.mcap'])[0]
    message, received = refused(store.receive, 'x', first, last=True)
    assert 'not complete' in message and 'metadata.yaml' in message and received == CHUNK
    assert send(store, 'x', all_pieces(bag)).summary
    assert store.announce('x', listing(bag), 7).summary.duration == pytest.approx(2.0, abs=0.01)
    assert 'another bag x' in refused(store.announce, 'x', listing(other_bag), 0)[0]
    assert 'another bag x' in refused(store.receive, 'x', all_pieces(other_bag)[0], False)[0]


@pytest.mark.parametrize('name', [
    '', '.', '..', '../../etc', '/etc', 'a/b', 'a\\b', '.incoming', 'a\0b', 'a\n', 'ä', '\u202ea',
    '\ud800', 'x' * 65, 'a b', '~'])
def test_names_that_are_not_safe(store, bag, name):
    piece = all_pieces(bag)[0]
    for action, *arguments in ((store.add, str(bag)), (store.receive, piece, False),
                               (store.announce, listing(bag), 1), (store.remove,)):
        assert '1 to 64 letters' in refused(action, name, *arguments)[0]
    assert not store.folder.exists()


@pytest.mark.parametrize('file', [
    '.', '..', '../run.mcap', '/etc/x.mcap', 'a/x.mcap', 'a\\x.mcap', '.x.mcap', 'x.mcap\0',
    'x.sh', 'upload.json', '.bag.json', 'x\n.mcap', '\ud800.mcap', 'x' * 250 + '.mcap', '.mcap'])
def test_file_names_that_are_not_safe(store, file):
    assert 'cannot be a file of a bag' in refused(
        store.receive, 'x', Piece(file, 1, sha256(b'x'), 0, b'x'), True)[0]
    if '\n' not in file:
        assert 'cannot be a file of a bag' in refused(
            store.announce, 'x', f'{sha256(b"x")}  {file}\n', 1)[0]
    assert leftovers(store) == []


@pytest.mark.parametrize('piece, told', [
    (Piece('x.mcap', 10, 'abc', 0, b'x'), '64 hexadecimal digits'),
    (Piece('x.mcap', 10, 'z' * 64, 0, b'x'), '64 hexadecimal digits'),
    (Piece('x.mcap', 10, 'a' * 64, 9, b'xx'), 'does not fit'),
    (Piece('x.mcap', 10, 'a' * 64, 2**64 - 1, b''), 'does not fit'),
    (Piece('x.mcap', 2**63, 'a' * 64, 0, b'x'), 'max_bag_size'),
])
def test_pieces_that_cannot_be(store, piece, told):
    assert told in refused(store.receive, 'x', piece, False)[0]
    assert arriving(store) in ({}, {'x': 0})
    assert 'sha256sum' in refused(store.announce, 'x', 'a b\n', 1)[0]
    assert refused(store.announce, 'x', '', 1)


def test_an_empty_file_is_a_file(store, bag):
    store.receive('x', Piece('run.db3-wal', 0, sha256(b''), 0, b''), False)
    assert send(store, 'x', pieces('run.mcap', content(bag)['run.mcap'])).summary
    assert content(store.folder / 'x')['run.db3-wal'] == b''


def test_paths_that_are_no_bags(store, tmp_path, bag):
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'pipe').mkdir()
    os.mkfifo(tmp_path / 'pipe' / 'x.mcap')
    (tmp_path / 'link').mkdir()
    (tmp_path / 'link' / 'x.mcap').symlink_to(bag / 'run.mcap')
    (tmp_path / 'zero.mcap').symlink_to('/dev/zero')
    store.add('kept', str(bag))
    for path, told in (('run', 'absolute'), ('', 'absolute'), ('/a\0b', 'absolute'),
                       ('/nowhere', 'no such file'), ('/etc', 'not a bag'),
                       ('/etc/passwd', 'not a bag'), (str(tmp_path / 'empty'), 'not a bag'),
                       (str(tmp_path / 'pipe'), 'not a plain file'),
                       (str(tmp_path / 'zero.mcap'), 'not a plain file'),
                       (str(tmp_path / 'link'), 'leads out of the bag'),
                       (str(store.folder / 'kept'), 'in the store already'),
                       (str(store.folder / '..' / 'bags' / 'kept' / 'run.mcap'), 'already')):
        assert told in refused(store.add, 'x', path)[0], path
    assert [stored.name for stored in store.bags()] == ['kept'] and leftovers(store) == []


def test_a_link_within_the_bag_or_to_it_is_followed(store, tmp_path, bag):
    (tmp_path / 'run').mkdir()
    (tmp_path / 'run' / 'run.mcap').write_bytes(content(bag)['run.mcap'])
    (tmp_path / 'latest').symlink_to(tmp_path / 'run')
    assert store.add('x', str(tmp_path / 'latest')).summary
    assert not (store.folder / 'x' / 'run.mcap').is_symlink()


def test_what_cannot_be_used_leaves_nothing(store, tmp_path, bag):
    cut = content(bag)['run.mcap'][:CHUNK]
    folder = tmp_path / 'cut'
    folder.mkdir()
    (folder / 'run.mcap').write_bytes(cut)
    message, received = refused(store.add, 'x', str(folder))
    assert str(folder / 'run.mcap') in message and received == CHUNK
    message, _ = refused(send, store, 'y', pieces('run.mcap', cut))
    assert 'bag y/run.mcap' in message
    assert store.bags() == [] and leftovers(store) == []
    # The name is free for a better one.
    assert send(store, 'y', all_pieces(bag)).summary


def test_limits(tmp_path, bag):
    size = sum(map(len, content(bag).values()))
    for limits, told in (({'max_bag_size': size - 1}, 'max_bag_size'), ({'max_files': 1}, 'files'),
                         ({'min_free_space': 1e18}, 'min_free_space')):
        store = new_store(tmp_path, **limits)
        assert told in refused(store.add, 'x', str(bag))[0]
        assert told in refused(store.announce, 'x', listing(bag), size)[0]
        assert told in refused(send, store, 'x', all_pieces(bag))[0]
    assert store.bags() == []


def test_a_disk_that_fills_up_loses_nothing(store, bag):
    parts = pieces('run.mcap', content(bag)['run.mcap'])
    store.receive('x', parts[0], False)
    store.min_free_space = 1e18
    assert 'min_free_space' in refused(store.receive, 'x', parts[1], False)[0]
    store.min_free_space = 0.0
    assert store.receive('x', parts[1]._replace(data=b''), False).received == CHUNK
    assert send(store, 'x', parts[1:]).summary


def test_what_was_given_up_is_removed_after_a_day(store, bag):
    store.receive('x', all_pieces(bag)[0], False)
    store.receive('y', all_pieces(bag)[0], False)
    assert store.remove_stale() == [] and leftovers(store) == ['x', 'y']
    yesterday = time.time() - 100_000
    for path in (store.folder / '.incoming' / 'x', *(store.folder / '.incoming' / 'x').rglob('*')):
        os.utime(path, (yesterday, yesterday))
    assert store.remove_stale() == ['x'] and leftovers(store) == ['y']
    assert store.receive('x', all_pieces(bag)[0]._replace(data=b''), False).received == 0


def test_remove(store, bag):
    store.add('x', str(bag))
    store.remove('x')
    assert store.bags() == [] and leftovers(store) == []
    assert 'there are: none' in refused(store.remove, 'x')[0]


def test_a_bag_put_there_by_hand(store, bag):
    store.folder.mkdir(parents=True)
    os.rename(write_bag(store.folder / 'tmp', swing()), store.folder / 'mine')
    stored, = store.bags()
    assert stored.summary is None and stored.size > 1000
    assert 'another bag mine' in refused(store.add, 'mine', str(bag))[0]


def test_where_the_store_is(monkeypatch, tmp_path):
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.delenv('XDG_DATA_HOME', raising=False)
    assert store_root() == tmp_path / '.local/share/nerd_ros'
    monkeypatch.setenv('XDG_DATA_HOME', '/data')
    assert str(store_root()) == '/data/nerd_ros'
    assert store_root('~/mine') == tmp_path / 'mine'


@pytest.mark.parametrize('code, told', [
    ('import os; os.kill(os.getpid(), 11)', 'SIGSEGV'),
    ('while True: pass', 'more than 1 s'),
    ('import time; time.sleep(1000)', 'more than 1 s'),
    # Less than there is, but more than it gets.
    ('import os, numpy; numpy.empty(int(0.6 * os.sysconf("SC_PHYS_PAGES")'
     ' * os.sysconf("SC_PAGE_SIZE")), "u1")', 'MemoryError'),
    ('open("big", "wb").write(bytes(10**8))', 'File too large'),
    ('print("nonsense")', 'ended with: 0'),
])
def test_no_bag_harms_who_asks(tmp_path, monkeypatch, code, told):
    """What becomes of the process that reads it is told in a sentence, in time."""
    monkeypatch.chdir(tmp_path)
    check = BagCheck('double_pendulum', time_limit=1.0, command=(sys.executable, '-c', code))
    message, _ = refused(check, tmp_path / 'run', tmp_path, 'my bag', size=0, disk=10**7)
    assert message.startswith('my bag: ') and told in message


def test_a_check_is_stopped(tmp_path):
    code = 'import subprocess, time; subprocess.Popen(["sleep", "1000"]); time.sleep(1000)'
    check = BagCheck('double_pendulum', command=(sys.executable, '-c', code))
    Timer(0.5, check.stop).start()
    begin = time.monotonic()
    with pytest.raises(InterruptedError):
        check(tmp_path / 'run', tmp_path, 'my bag', size=0, disk=10**7)
    assert time.monotonic() - begin < 20.0


def test_the_check_is_bag_info(tmp_path, bag):
    """The process itself; it keeps out of the way of others."""
    niceness = []

    def look():
        niceness.append(os.getpriority(os.PRIO_PROCESS, check._process.pid))
    check = BagCheck('double_pendulum')
    Timer(0.5, look).start()
    summary = check(bag, tmp_path, 'my bag', size=10**6, disk=10**9)
    assert summary.duration == pytest.approx(2.0, abs=0.01) and summary.notes
    assert niceness == [19]
    (tmp_path / 'x.mcap').write_bytes(b'x')
    message, _ = refused(check, tmp_path, tmp_path, 'my bag', size=10**6, disk=10**9)
    assert message.startswith('my bag/x.mcap: ')
