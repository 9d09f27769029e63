# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""JointState messages out of the files of a rosbag2 recording; reads only."""

from operator import index
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from rosbags.rosbag2 import Reader
from rosbags.typesys import get_typestore, Stores
import yaml

JOINT_STATE = 'sensor_msgs/msg/JointState'
# Early recorders wrote the type's name in the style of ROS 1.
_TYPE_NAMES = (JOINT_STATE, 'sensor_msgs/JointState')
_SUFFIXES = ('.db3', '.mcap')
_LFS_POINTER = b'version https://git-lfs.github.com/spec/'
_ZSTD_FRAME = b'\x28\xb5\x2f\xfd'


class BagError(ValueError):
    """A recording that cannot be used; one sentence that names the file and what to do."""


class JointMessage(NamedTuple):
    """One JointState message; an array is empty where the message does not fill it."""

    received: int
    """Time at which the recorder got it [ns]."""
    stamp: int
    """Time in its header [ns]; 0 where the sender set none."""
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class BagContent(NamedTuple):
    """What a recording holds."""

    joint_states: dict[str, list[JointMessage]]
    """Messages of each JointState topic by order of receipt."""
    other_topics: dict[str, str]
    """Message type of each further topic."""
    notes: list[str]
    """What was odd about the files, a sentence each."""


def read_joint_states(path: str | Path) -> BagContent:
    """
    Read all JointState topics of a bag: a folder, a `.db3` or an `.mcap` file.

    Raises BagError where this is no readable rosbag2 recording.
    """
    sources, notes = _sources(Path(path))
    content = BagContent({}, {}, notes)
    for source in sources:
        _check_file(source)
        try:
            broken = _read(source, content)
        except BagError:
            raise
        except Exception as error:
            # Damaged files make the storage readers raise nearly anything, from struct.error to
            # AssertionError; all of it means the same to the user.
            raise BagError(
                f'{source}: damaged or cut off, reading stopped with: {_line(error)}; '
                f'`mcap recover` or `sqlite3 .recover` may save a part of it') from error
        if broken:
            notes.append(f'{broken} messages of {source.name} could not be decoded and were left '
                         'out')
    for messages in content.joint_states.values():
        messages.sort(key=lambda message: message.received)
    return content


def _sources(path: Path) -> tuple[list[Path], list[str]]:
    """Return what to open, files or a compressed folder, and notes on it."""
    if not path.exists():
        raise BagError(f'{path}: no such file or folder')
    if path.is_file():
        if path.name == 'metadata.yaml':
            return _sources(path.parent)
        if path.suffix == '.bag':
            raise BagError(f'{path}: a ROS 1 bag; convert it with `rosbags-convert --src '
                           f'{path} --dst FOLDER` first')
        if path.suffix not in _SUFFIXES:
            raise BagError(f'{path}: not a bag; expected the folder of a rosbag2 recording or its '
                           '.db3 or .mcap file')
        return [path], _unwritten(path)

    found = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    metadata, notes = _metadata(path)
    if metadata.get('compression_mode'):
        return [path], notes
    listed = [path / PurePath(name).name for name in metadata.get('relative_file_paths') or ()]
    missing = [file.name for file in listed if not file.exists()]
    if missing:
        if not found:
            raise BagError(f'{path}: metadata.yaml lists {", ".join(missing)}, which is not there')
        notes.append(f'metadata.yaml lists {", ".join(missing)}, which is not there; read the '
                     f'{len(found)} files found')
    files = listed if listed and not missing else found
    if not files:
        bags = sorted(file.parent.name for file in path.glob('*/metadata.yaml'))
        hint = f'; it holds bags in folders, name one of them: {", ".join(bags)}' if bags else ''
        raise BagError(f'{path}: not a bag, the folder has no .db3 or .mcap file{hint}')
    for file in files:
        notes += _unwritten(file)
    return files, notes


def _metadata(folder: Path) -> tuple[dict, list[str]]:
    """Return the content of `metadata.yaml`, empty where it is missing or unreadable."""
    file = folder / 'metadata.yaml'
    if not file.exists():
        return {}, ['no metadata.yaml; read the files found in the folder']
    try:
        metadata = yaml.safe_load(file.read_text())['rosbag2_bagfile_information']
        names = metadata.get('relative_file_paths') or []
        mode = metadata.get('compression_mode') or ''
        if not all(isinstance(name, str) for name in names):
            raise TypeError
        mode = '' if mode.lower() == 'none' else mode
        return {'relative_file_paths': names, 'compression_mode': mode}, []
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return {}, ['metadata.yaml is not readable; read the files found in the folder']


def _unwritten(file: Path) -> list[str]:
    """Return a note where SQLite's journal holds messages that never reached the file."""
    journal = file.with_name(file.name + '-wal')
    if journal.exists() and journal.stat().st_size:
        return [f'{journal.name} holds messages that were never written to {file.name}: '
                'they were left out']
    return []


def _check_file(source: Path) -> None:
    if source.is_dir():
        return
    with source.open('rb') as file:
        head = file.read(len(_LFS_POINTER))
    if head == _LFS_POINTER:
        raise BagError(f'{source}: a Git LFS pointer and not the recording itself; fetch it with '
                       '`git lfs pull`')
    if not head:
        raise BagError(f'{source}: the file is empty')


def _read(source: Path, content: BagContent) -> int:
    """Append the messages of one source to `content`; return how many could not be decoded."""
    # Only JointState is decoded, and its definition never changed: definitions that other tools
    # embed in a bag, and that may be broken, are not needed. Files are opened one by one, because
    # a folder's reader silently skips topics whose metadata.yaml and file differ in QoS text.
    store = get_typestore(Stores.ROS2_JAZZY)
    broken = 0
    with Reader(source) as reader:
        wanted = [c for c in reader.connections if c.msgtype in _TYPE_NAMES]
        content.other_topics.update(
            (c.topic, c.msgtype) for c in reader.connections if c.msgtype not in _TYPE_NAMES)
        for connection in wanted:
            if connection.ext.serialization_format != 'cdr':
                raise BagError(f'{source}: {connection.topic} is serialised as '
                               f'{connection.ext.serialization_format!r}; only cdr can be read')
            content.joint_states.setdefault(connection.topic, [])
        decoded = 0
        for connection, received, raw in reader.messages(wanted) if wanted else ():
            if raw[:4] == _ZSTD_FRAME:
                raise BagError(f'{source}: its messages are compressed one by one; give the '
                               'folder of the bag, with its metadata.yaml, instead of the file')
            try:
                message = _decode(store, received, raw)
            except Exception:
                # Whatever a garbled payload makes the decoder raise, it is one lost message.
                broken += 1
                continue
            content.joint_states[connection.topic].append(message)
            decoded += 1
    if source.is_dir() and not decoded and sum(c.msgcount for c in wanted):
        raise BagError(f'{source}: the metadata.yaml of this compressed bag does not fit its '
                       'files; write it anew with `ros2 bag reindex`')
    return broken


def _decode(store, received: int, raw: bytes) -> JointMessage:
    message = store.deserialize_cdr(raw, JOINT_STATE)
    stamp = message.header.stamp
    names = tuple(message.name)
    # A field of another length cannot be assigned to joints.
    position, velocity, effort = (
        np.array(values if len(values) == len(names) else (), np.float64)
        for values in (message.position, message.velocity, message.effort))
    # SQLite columns hold any type: `index` refuses a time that is no integer.
    return JointMessage(index(received), stamp.sec * 10**9 + stamp.nanosec, names, position,
                        velocity, effort)


def _line(error: Exception) -> str:
    """Return the text of an error in one line."""
    return ' '.join(str(error).split())[:200] or type(error).__name__
