# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The files of a recording, and the raw messages in them; reads only."""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
import shutil
import sys
from tempfile import TemporaryDirectory

from rosbags import rosbag1, rosbag2
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
import yaml

# What `rosbags` itself reads compressed recordings by.
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TF_MESSAGE = 'tf2_msgs/msg/TFMessage'
_TF_DEFINITION = 'geometry_msgs/TransformStamped[] transforms'
_SUFFIXES = ('.db3', '.mcap', '.bag')
_COMPRESSED = '.zstd'
_LFS_POINTER = b'version https://git-lfs.github.com/spec/'
_ZSTD_FRAME = b'\x28\xb5\x2f\xfd'
# No message of a joint or a pose is larger [bytes].
_LARGEST_MESSAGE = 1 << 22
_COPIED_AT_ONCE = 1 << 20
_LARGEST_METADATA = 1 << 24
# A time beyond this [ns], 146 years to both sides of 1970, is none.
_LARGEST_TIME = 1 << 62


class BagError(ValueError):
    """A recording that cannot be used; one sentence that names the file and what to do."""


class BagFile:
    """
    One open file of a recording: `topics`, a list of (topic, message type), and its messages.

    Types are named as in ROS 2, `sensor_msgs/msg/JointState`.
    """

    def __init__(self, source: Path, name: Path, reader):
        self._name, self._reader = name, reader
        # Only messages whose definitions never changed are decoded: definitions that other tools
        # embed in a bag, and that may be broken, are not needed.
        if source.suffix == '.bag':
            store = get_typestore(Stores.ROS1_NOETIC)
            # It lacks this one, which is the same in both.
            store.register(get_types_from_msg(_TF_DEFINITION, TF_MESSAGE))
            self._decode = store.deserialize_ros1
        else:
            store = get_typestore(Stores.ROS2_JAZZY)
            self._decode = store.deserialize_cdr
        # The columns of SQLite hold anything.
        self._connections = [c for c in reader.connections
                             if isinstance(c.topic, str) and isinstance(c.msgtype, str)]
        self.topics = [(c.topic, _type(c.msgtype)) for c in self._connections]

    def messages(self, types: Set[str]) -> Iterator[tuple[str, str, int, bytes, partial]]:
        """
        Yield topic, type, time of receipt [ns], bytes and the function that decodes them.

        Only topics of `types`, in order of receipt.
        """
        wanted = [c for c in self._connections if _type(c.msgtype) in types]
        for connection in wanted:
            kind = getattr(connection.ext, 'serialization_format', 'cdr')
            if kind != 'cdr':
                raise BagError(f'{self._name}: {connection.topic} is serialised as {kind!r}; only '
                               'cdr can be read')
        decode = {_type(c.msgtype): partial(self._decode, typename=_type(c.msgtype))
                  for c in wanted}
        # Without topics the reader of ROS 1 would give all.
        for connection, received, raw in self._reader.messages(wanted) if wanted else ():
            if raw[:4] == _ZSTD_FRAME:
                raw = zstd.ZstdDecompressor().decompress(raw, _LARGEST_MESSAGE)
            kind = _type(connection.msgtype)
            yield connection.topic, kind, received, raw, decode[kind]


def is_time(value) -> bool:
    """Whether a time of receipt [ns] is one; the columns of SQLite hold anything."""
    return isinstance(value, int) and abs(value) < _LARGEST_TIME


def find_files(path: Path) -> tuple[list[Path], list[str]]:
    """
    Return the files of a recording, a folder or one of its files, and what is odd about them.

    Raises BagError where there is none.
    """
    if not path.exists():
        raise BagError(f'{path}: no such file or folder')
    if path.is_file():
        if path.name == 'metadata.yaml':
            return find_files(path.parent)
        if not _is_bag(path):
            raise BagError(f'{path}: not a bag; expected the folder of a rosbag2 recording or its '
                           '.db3 or .mcap file, or the .bag file of ROS 1')
        return [path], _unwritten(path)

    found = sorted(file for file in path.iterdir() if _is_bag(file) and file.is_file())
    # A file that somebody decompressed lies beside what it was made of.
    found = [f for f in found if f.suffix != _COMPRESSED or f.with_suffix('') not in found]
    listed, notes = _listed(path)
    if found and found[0].suffix == '.bag':
        notes = []
    missing = [file.name for file in listed if not file.is_file()]
    if missing:
        if not found:
            raise BagError(f'{path}: metadata.yaml lists {", ".join(missing)}, which is not there')
        notes.append(f'metadata.yaml lists {", ".join(missing)}, which is not there; read the '
                     f'{len(found)} files found')
    files = listed if listed and not missing else found
    if not files:
        bags = sorted(file.parent.name for file in path.glob('*/metadata.yaml'))
        hint = f'; it holds bags in folders, name one of them: {", ".join(bags)}' if bags else ''
        raise BagError(f'{path}: not a bag, the folder has no .db3, .mcap or .bag file{hint}')
    for file in files:
        notes += _unwritten(file)
    return files, notes


@contextmanager
def open_file(file: Path) -> Iterator[BagFile]:
    """
    Open one file of a recording, which may be compressed as a whole.

    Raises BagError, also for whatever goes wrong while its messages are read.
    """
    try:
        _check_head(file)
        with TemporaryDirectory() as folder:
            # Files are opened one by one, because the reader of a folder silently skips topics
            # whose metadata.yaml and file differ in QoS text.
            source = _decompress(file, Path(folder)) if file.suffix == _COMPRESSED else file
            kind = rosbag1 if source.suffix == '.bag' else rosbag2
            with kind.Reader(source) as reader:
                yield BagFile(source, file, reader)
    except BagError:
        raise
    except PermissionError as error:
        raise BagError(f'{file}: may not be read, {error.strerror}') from error
    except Exception as error:
        # Damaged files make the storage readers raise nearly anything, from struct.error to
        # AssertionError; all of it means the same to the user.
        raise BagError(
            f'{file}: damaged or cut off, reading stopped with: {_line(error)}; '
            f'`mcap recover`, `sqlite3 .recover` or `rosbag reindex` may save a part of it'
        ) from error


def _type(name: str) -> str:
    """Return the ROS 2 name of a type; early recorders wrote that of ROS 1."""
    parts = name.split('/')
    name = f'{parts[0]}/msg/{parts[1]}' if len(parts) == 2 else name
    return TF_MESSAGE if name == 'tf/msg/tfMessage' else name


def _is_bag(file: Path) -> bool:
    return (file.with_suffix('') if file.suffix == _COMPRESSED else file).suffix in _SUFFIXES


def _listed(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the files that `metadata.yaml` lists, none where it is missing or unreadable."""
    file = folder / 'metadata.yaml'
    if not file.exists():
        return [], ['no metadata.yaml; read the files found in the folder']
    try:
        if file.stat().st_size > _LARGEST_METADATA:
            raise ValueError
        metadata = yaml.safe_load(file.read_text())['rosbag2_bagfile_information']
        # Names alone: the folder may have moved since, and no path leaves it.
        names = [PurePath(name).name for name in metadata.get('relative_file_paths') or ()]
        files = [folder / name for name in names]
        if not all(_is_bag(file) for file in files):
            raise ValueError
        return files, []
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [], ['metadata.yaml is not readable; read the files found in the folder']


def _unwritten(file: Path) -> list[str]:
    """Return a note where SQLite's journal holds messages that never reached the file."""
    journal = file.with_name(file.name + '-wal')
    if journal.exists() and journal.stat().st_size:
        return [f'{journal.name} holds messages that were never written to {file.name}: '
                'they were left out']
    return []


def _check_head(file: Path) -> None:
    with file.open('rb') as stream:
        head = stream.read(len(_LFS_POINTER))
    if head == _LFS_POINTER:
        raise BagError(f'{file}: a Git LFS pointer and not the recording itself; fetch it with '
                       '`git lfs pull`')
    if not head:
        raise BagError(f'{file}: the file is empty')


def _decompress(file: Path, folder: Path) -> Path:
    """Return the decompressed copy of `file` in `folder`."""
    copy = folder / file.stem
    # A small file can hold terabytes of zeros.
    left = shutil.disk_usage(folder).free // 2
    with zstd.open(file, 'rb') as packed, copy.open('wb') as stream:
        while piece := packed.read(_COPIED_AT_ONCE):
            left -= len(piece)
            if left < 0:
                raise BagError(f'{file}: too large to be decompressed in {folder.parent}; '
                               'set TMPDIR to a folder with more space')
            stream.write(piece)
    return copy


def _line(error: Exception) -> str:
    """Return the text of an error in one line."""
    return ' '.join(str(error).split())[:200] or type(error).__name__
