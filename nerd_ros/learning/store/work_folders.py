# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How a store makes and removes folders so that nobody ever sees a part of one."""

from collections.abc import Iterator
from contextlib import contextmanager
import fcntl
import os
from pathlib import Path
import tempfile
import time

# What nobody went on with for so long was given up [s].
STALE = 86_400.0


@contextmanager
def work_folder(parent: Path, prefix: str = '') -> Iterator[Path]:
    """Provide a folder in `parent` that is removed at the end, or later as a stale one."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent,
                                     ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep all others out who lock `folder`, threads and processes, even ones that are killed."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / '.lock', 'a') as file:
        fcntl.flock(file, fcntl.LOCK_EX)   # let go of as the file is closed
        yield


def folders(folder: Path, hidden: bool = False) -> list[str]:
    """Return the names of the folders in `folder`; links are none."""
    if not folder.is_dir():
        return []
    return [entry.name for entry in os.scandir(folder)
            if entry.is_dir(follow_symlinks=False) and (hidden or not entry.name.startswith('.'))]


def stale_folders(parent: Path, age: float) -> list[str]:
    """Return the names of the folders in `parent` in which nothing has changed for `age` s."""
    return [name for name in sorted(folders(parent, hidden=True))
            if time.time() - _last_change(parent / name) > age]


def abandoned_folders(parent: Path) -> list[str]:
    """Return the names of the folders in `parent` that nobody has `locked`."""
    return [name for name in sorted(folders(parent, hidden=True)) if not _is_locked(parent / name)]


def flush_to_disk(folder: Path) -> None:
    """Let the files in `folder` be on the disk before it is given its name."""
    for path in folder.iterdir():
        if path.is_file():
            with open(path, 'rb') as file:
                os.fsync(file.fileno())


def _is_locked(folder: Path) -> bool:
    try:
        with open(folder / '.lock') as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def _last_change(folder: Path) -> float:
    """Return when anything in a folder was changed last [s since 1970]."""
    try:
        return max(os.lstat(Path(parent, name)).st_mtime for parent, folders, files
                   in os.walk(folder) for name in ('', *folders, *files))
    except (FileNotFoundError, ValueError):   # somebody else removes it
        return time.time()
