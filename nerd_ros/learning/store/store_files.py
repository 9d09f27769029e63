# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the store lies, which names are safe in it, and how a recording's files get there."""

from collections.abc import Iterable, Iterator
import hashlib
import os
from pathlib import Path
import re
import stat
from typing import NamedTuple

from nerd_ros.resources import shown

BLOCK = 1 << 20  # read and written at once [bytes]
NAME = re.compile(r'[A-Za-z0-9_-]{1,64}', re.ASCII)
SHA256 = re.compile(r'[0-9a-f]{64}', re.ASCII)
# Files of a recording: those of rosbag2 with the journals of SQLite, compressed or not, and of
# ROS 1.
_BAG_FILE = re.compile(r'metadata\.yaml|.+\.(db3|mcap|bag)([.-][a-z0-9]{1,16})?', re.ASCII)
# In UTF-8; file systems end at 255 bytes.
_LONGEST_FILE_NAME = 200


class StoreError(ValueError):
    """
    What was asked of the store is refused; one sentence that says why.

    `received` is what the answer of an upload says beside it: how much of the file is there, or of
    the bag on this machine [bytes].
    """

    def __init__(self, message: str, received: int = 0):
        super().__init__(message)
        self.received = received


class BagFile(NamedTuple):
    """One file of a recording outside of the store."""

    name: str
    path: Path
    """Of the file itself, where `name` is a link to it."""
    size: int


def store_root(given: str = '') -> Path:
    """Return the folder of the store: `given`, or by default that of the user's data."""
    if given:
        return Path(given).expanduser().absolute()
    data = os.environ.get('XDG_DATA_HOME', '')
    # Others than absolute paths are to be ignored, says the specification.
    return (Path(data) if os.path.isabs(data) else Path.home() / '.local/share') / 'nerd_ros'


def check_name(name: str, what: str = 'bag') -> None:
    """Raise StoreError for a name that cannot be a folder of the store."""
    if not NAME.fullmatch(name):
        raise StoreError(f'{shown(name)!r} cannot be the name of a {what}; use 1 to 64 letters, '
                         'digits, _ and -.')


def is_bag_file(name: str) -> bool:
    """Return whether a file of this name, without folders, can be part of a recording."""
    return bool(_BAG_FILE.fullmatch(name) and name.isprintable() and name[0] != '.'
                and not set(name) & {'/', '\\'}
                and len(name.encode('utf-8', 'replace')) <= _LONGEST_FILE_NAME)


def check_file_name(name: str) -> None:
    """Raise StoreError for a name that is not one of a file of a recording."""
    if not is_bag_file(name):
        raise StoreError(f'{shown(name)!r} cannot be a file of a bag; those are metadata.yaml, '
                         '.db3, .mcap and .bag files, named without folders.')


def find_bag_files(path: Path) -> list[BagFile]:
    """
    Return the files of the recording `path`, a folder or a single file, sorted by name.

    Other files in the folder are left out. Raises StoreError where there is no recording, and for
    a link that leads out of the folder or a name that is no plain file.
    """
    if not os.path.exists(path):
        raise StoreError(f'{shown(path)}: no such file or folder.')
    if path.is_dir():
        names = sorted(filter(is_bag_file, os.listdir(path)))
        files = [_file_in(path, name) for name in names]
        if not any(name != 'metadata.yaml' for name in names):
            raise StoreError(f'{shown(path)}: not a bag, the folder has no .db3, .mcap or .bag '
                             'file.')
        return files
    if not is_bag_file(path.name) or path.name == 'metadata.yaml':
        raise StoreError(f'{shown(path)}: not a bag; give the folder of a rosbag2 recording, or '
                         'a .db3, .mcap or .bag file.')
    return [_plain_file(path.name, path.resolve(), path)]


def _file_in(folder: Path, name: str) -> BagFile:
    given = folder / name
    path = given.resolve()
    if path.parent != folder.resolve():
        raise StoreError(f'{shown(given)}: a link that leads out of the bag; put the file itself '
                         'there.')
    return _plain_file(name, path, given)


def _plain_file(name: str, path: Path, given: Path) -> BagFile:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f'{shown(given)}: not a plain file.')
    return BagFile(name, path, status.st_size)


def blocks(file: BagFile, offset: int = 0) -> Iterator[bytes]:
    """
    Yield the content of `file` from `offset` on, a block at a time.

    Raises StoreError if it is not as long as it was, or is written to meanwhile.
    """
    # Whatever was put in its place since it was looked at is neither followed nor waited for.
    descriptor = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, 'rb', buffering=0) as source:
        before = os.fstat(descriptor)
        source.seek(offset)
        left = file.size - offset
        while left > 0 and stat.S_ISREG(before.st_mode):
            block = source.read(min(BLOCK, left))
            if not block:
                break
            left -= len(block)
            yield block
        after = os.fstat(descriptor)
    if left or after.st_size != file.size or after.st_mtime_ns != before.st_mtime_ns:
        raise StoreError(f'{shown(file.path)}: written to at this moment; stop the recording '
                         'first.', file.size)


def digest(content: Iterable[bytes]) -> str:
    """Return the sha256 of `content` as hexadecimal digits."""
    sha = hashlib.sha256()
    for block in content:
        sha.update(block)
    return sha.hexdigest()


def copy(file: BagFile, target: Path) -> str:
    """Copy `file` to the new file `target`, down to the disk; returns its sha256."""
    sha = hashlib.sha256()
    with open(target, 'xb', buffering=0) as copied:
        for block in blocks(file):
            copied.write(block)
            sha.update(block)
        os.fsync(copied.fileno())
    return sha.hexdigest()
