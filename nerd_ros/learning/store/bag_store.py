# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The recordings of one robot that were handed to the simulator, a folder each.

    <root>/<robot>/bags/<name>/                 the files of a bag, and .bag.json about it
    <root>/<robot>/bags/.incoming/<name>/       a bag that arrives in pieces
    <root>/<robot>/bags/.incoming/.<random>/    a bag that is copied, checked or removed

A bag appears under its name by one rename, when it is complete and a check found it usable.
"""

from collections.abc import Callable
import json
import os
from pathlib import Path
import shutil
from typing import NamedTuple

from nerd_ros.learning.store.bag_check import BagSummary
from nerd_ros.learning.store.incoming_bag import IncomingBag, Piece
from nerd_ros.learning.store.store_files import (
    BagFile, blocks, check_file_name, check_name, copy, digest, find_bag_files, SHA256, StoreError)
from nerd_ros.learning.store.work_folders import folders, STALE, stale_folders, work_folder
from nerd_ros.resources import shown

FORMAT_VERSION = 1
MEGABYTE = 1_000_000
_ABOUT = '.bag.json'


class StoredBag(NamedTuple):
    """A bag of the store."""

    name: str
    path: Path
    size: int
    """Of its files in all [bytes]."""
    summary: BagSummary | None
    """None of a folder that was put into the store by hand."""


class Receipt(NamedTuple):
    """What became of an upload so far."""

    received: int
    """Of the file, the bag announced, or the bag that was copied [bytes]."""
    summary: BagSummary | None = None
    """Of the bag, as soon as it is complete."""


class BagStore:
    """
    The bags of `robot` (its name) below `root`.

    `check(folder, work, shown_as, size, disk)` returns the summary of a bag or raises StoreError,
    as BagCheck does. A bag of more than `max_bag_size` [bytes] or `max_files` files is refused, as
    is one that would leave less than `min_free_space` [bytes] on the disk; the first and the last
    may be set at any time. What is refused leaves nothing behind; OSError is raised as it comes.
    Not for several threads at once.
    """

    def __init__(self, root: Path, robot: str, check: Callable[..., BagSummary],
                 max_bag_size: float = 2e9, min_free_space: float = 1e9, max_files: int = 1000):
        self.robot = robot
        self.folder = root / robot / 'bags'
        self.max_bag_size, self.min_free_space = max_bag_size, min_free_space
        self._root, self._max_files = root, max_files
        self._check = check
        self._incoming = self.folder / '.incoming'
        self._open: dict[str, IncomingBag] = {}

    def add(self, name: str, path: str, size: int = 0) -> Receipt:
        """
        Copy the bag at `path`, absolute, a folder or a file, and keep it as `name`.

        With a `size` [bytes] only a bag of that size is meant: a client gives it to learn whether
        it speaks of the same machine.
        """
        check_name(name)
        if not os.path.isabs(path) or not path.isprintable():
            raise StoreError(f'{shown(path)!r} cannot be used; give the absolute path of the bag.')
        files = find_bag_files(Path(path))
        total = sum(file.size for file in files)
        if size and total != size:
            raise StoreError(f'{path}: has {total} bytes here and not {size}; it is another bag.')
        try:
            return Receipt(total, self._add(name, Path(path), files, total))
        except StoreError as error:
            raise StoreError(str(error), total) from None

    def announce(self, name: str, listing: str, size: int) -> Receipt:
        """
        Begin, or go on with, a bag that arrives in pieces, and return how much of it is there.

        `listing` is what `sha256sum` prints for its files, `size` the bytes of all. It is not
        needed, but tells what is too large before it is sent, and keeps two bags apart that are
        sent under one name. The summary is returned when the store has this very bag already.
        """
        check_name(name)
        digests = _parse(listing)
        if self._exists(name):
            if self._digests(name) == digests:
                return Receipt(size, self._summary(name))
            raise _taken(name)
        bag = self._incoming_bag(name)
        bag.announce(digests, size)
        return Receipt(bag.size)

    def receive(self, name: str, piece: Piece, last: bool) -> Receipt:
        """
        Take a piece of a bag that is kept as `name`, complete with the `last`.

        The same piece may come again. StoreError tells how much of the file is there.
        """
        check_name(name)
        if self._exists(name):
            check_file_name(piece.file)
            if self._digests(name).get(piece.file) != piece.sha256:
                raise _taken(name)
            return Receipt(piece.size, self._summary(name) if last else None)
        bag = self._incoming_bag(name)
        received = bag.receive(piece)
        asked = received < piece.size and not len(piece.data)
        if asked or not last:
            return Receipt(received)
        try:
            digests = bag.complete()
        except StoreError as error:
            raise StoreError(str(error), received) from None
        try:
            summary = self._keep(bag.files_folder, name, f'bag {name}', digests)
        except StoreError:
            self._discard(name)
            raise
        self._discard(name)
        return Receipt(received, summary)

    def bags(self) -> list[StoredBag]:
        """Return all bags by name."""
        return [self._stored(name) for name in sorted(folders(self.folder))]

    def folder_of(self, name: str) -> Path:
        """Return where a bag lies; raises StoreError where there is no such one."""
        check_name(name)
        if not self._exists(name):
            known = ', '.join(sorted(folders(self.folder))) or 'none'
            raise StoreError(f'there is no bag {name} in {self.folder} (there are: {known}).')
        return self.folder / name

    def remove(self, name: str) -> None:
        """Remove a bag, at once and altogether; raises StoreError where there is none."""
        folder = self.folder_of(name)
        with self._work_folder() as work:
            folder.rename(work / name)

    def remove_stale(self, age: float = STALE) -> list[str]:
        """Remove uploads that nobody went on with for `age` s, and return their names."""
        stale = stale_folders(self._incoming, age)
        for name in stale:
            self._discard(name)
        return [name for name in stale if not name.startswith('.')]

    def _add(self, name: str, path: Path, files: list[BagFile], total: int) -> BagSummary:
        if files[0].path.is_relative_to(self._root.resolve()):
            raise StoreError(f'{path}: lies in the store already.')
        if self._exists(name):
            if self._digests(name) == {file.name: digest(blocks(file)) for file in files}:
                return self._summary(name)
            raise _taken(name)
        self._make_room(total, len(files), total)
        with self._work_folder() as work:
            copied = work / name
            copied.mkdir()
            digests = {file.name: copy(file, copied / file.name) for file in files}
            return self._keep(copied, name, str(path if path.is_dir() else path.parent), digests)

    def _keep(self, folder: Path, name: str, shown_as: str, digests: dict[str, str]) -> BagSummary:
        """Check the bag in `folder` and move it to its place."""
        size = _size(folder)
        summary = self._checked(folder, shown_as, size)
        about = {'format_version': FORMAT_VERSION, 'files': digests, **summary._asdict()}
        (folder / _ABOUT).write_text(json.dumps(about, indent=1))
        try:
            folder.rename(self.folder / name)
        except OSError:  # of another simulator with the same store
            if self._exists(name):
                raise _taken(name) from None
            raise
        return summary

    def _checked(self, folder: Path, shown_as: str, size: int) -> BagSummary:
        with self._work_folder() as work:
            disk = shutil.disk_usage(self.folder).free - self.min_free_space
            return self._check(folder, work, shown_as, size, int(disk))

    def _make_room(self, size: int, files: int, more: int = 0) -> None:
        """Raise StoreError where a bag is too large or the disk too full; make the folders."""
        if size > self.max_bag_size:
            raise StoreError(f'the bag has {_megabytes(size)} and at most '
                             f'{_megabytes(self.max_bag_size)} are taken; record less, or set '
                             'max_bag_size.')
        if files > self._max_files:
            raise StoreError(f'the bag has {files} files and at most {self._max_files} are taken; '
                             'record with larger files.')
        self._incoming.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if more and free - more < self.min_free_space:
            raise StoreError(f'{self.folder}: {_megabytes(free)} are free, {_megabytes(more)} are '
                             f'needed and {_megabytes(self.min_free_space)} are to stay free '
                             '(min_free_space); make room, or choose another store.')

    def _incoming_bag(self, name: str) -> IncomingBag:
        bag = self._open.get(name)
        # Another process may have finished or removed it.
        if bag is None or not bag.folder.exists():
            bag = self._open[name] = IncomingBag(self._incoming / name, name, self._make_room)
        return bag

    def _discard(self, name: str) -> None:
        self._open.pop(name, None)
        shutil.rmtree(self._incoming / name, ignore_errors=True)

    def _work_folder(self):
        return work_folder(self._incoming, prefix='.')

    def _exists(self, name: str) -> bool:
        return (self.folder / name).exists()

    def _about(self, name: str) -> dict:
        """Return what is known of a bag, empty where it was put into the store by hand."""
        try:
            about = json.loads((self.folder / name / _ABOUT).read_text())
            return about if about['format_version'] == FORMAT_VERSION else {}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return {}

    def _digests(self, name: str) -> dict[str, str]:
        about = self._about(name)
        if about:
            return about['files']
        return {file.name: digest(blocks(file)) for file in find_bag_files(self.folder / name)}

    def _summary(self, name: str) -> BagSummary:
        bag = self._stored(name)
        return bag.summary or self._checked(bag.path, f'bag {name}', bag.size)

    def _stored(self, name: str) -> StoredBag:
        about, path = self._about(name), self.folder / name
        summary = BagSummary(about['duration'], tuple(about['notes'])) if about else None
        return StoredBag(name, path, _size(path), summary)


def _parse(listing: str) -> dict[str, str]:
    """Return the sha256 of each file of a listing by `sha256sum`."""
    digests = {}
    for line in listing.splitlines():
        sha256, _, file = line[:64], line[64:66], line[66:]
        if not SHA256.fullmatch(sha256) or line[64:66] not in ('  ', ' *'):
            raise StoreError(f'{shown(line)!r} is no line of `sha256sum`.')
        check_file_name(file)
        digests[file] = sha256
    if not digests:
        raise StoreError('a bag has one file at least; name the file of the piece.')
    return digests


def _size(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder)
               if entry.is_file() and entry.name != _ABOUT)


def _taken(name: str) -> StoreError:
    return StoreError(f'there is another bag {name} already; choose another name, or remove that '
                      'one.')


def _megabytes(size: float) -> str:
    return f'{size / MEGABYTE:.1f} MB'
