# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A bag that arrives piece by piece, resumable after the end of either side."""

from collections.abc import Callable
import hashlib
import json
import os
from pathlib import Path
import shutil
from typing import NamedTuple

from nerd_ros.learning.store.store_files import (
    BagFile, blocks, check_file_name, SHA256, StoreError)

FORMAT_VERSION = 1
_STATE = 'upload.json'


class Piece(NamedTuple):
    """A piece of a file of a bag."""

    file: str
    size: int
    """Of the whole file [bytes]."""
    sha256: str
    """Of the whole file, as 64 hexadecimal digits."""
    offset: int
    """Of the piece in the file [bytes]."""
    data: memoryview | bytes
    """Empty to ask how much of the file is there."""


class IncomingBag:
    """
    The part received so far of bag `name`, in `folder`/`name`, its state in `folder`/upload.json.

    `make_room(size, files)` raises StoreError where a bag of that size [bytes] and number of files
    cannot be taken; `make_room(size, files, more)` also where there is no space for `more` bytes.
    """

    def __init__(self, folder: Path, name: str, make_room: Callable[..., None]):
        self.folder, self.name = folder, name
        self.files_folder = folder / name
        self._make_room = make_room
        # The sha256 of what is there of each file, so that nothing is read again.
        self._hashes: dict[Path, tuple[int, object]] = {}
        self._announced: dict[str, str] = {}
        self._files: dict[str, dict] = {}
        self._load()

    def announce(self, digests: dict[str, str], size: int) -> None:
        """Let the bag be made of files with these sha256, of `size` bytes in all; drop others."""
        here = {file: entry for file, entry in self._files.items()
                if digests.get(file) == entry['sha256']}
        self._make_room(size, len(digests), size - sum(map(self.received, here)))
        for file in self._files.keys() - here.keys():
            self._drop(file)
        self._announced, self._files = digests, here
        self._save()

    def receive(self, piece: Piece) -> int:
        """
        Take a piece and return how much of its file is there [bytes].

        Raises StoreError for one that does not go on where the file ends, differs from what is
        there or does not belong to the bag; then nothing has changed. Raises it too, and the file
        has to be sent anew, when it is complete and its sha256 is another one.
        """
        self._check(piece)
        known = self._files.get(piece.file) == _entry(piece, verified=False) \
            or self._files.get(piece.file) == _entry(piece, verified=True)
        received = self.received(piece.file) if known else 0
        if not len(piece.data) and piece.size:
            return received
        if piece.offset > received:
            raise StoreError(f'{piece.file}: {received} bytes are here; go on at offset '
                             f'{received}, not {piece.offset}.', received)
        if not known:
            self._begin(piece)
        return self._append(piece, received)

    def received(self, file: str) -> int:
        """Return how much of a file is there [bytes]."""
        try:
            return os.stat(self.files_folder / file).st_size
        except FileNotFoundError:
            return 0

    def complete(self) -> dict[str, str]:
        """Return the sha256 of each file, all being there; raises StoreError if not."""
        missing = [f'{file} ({self.received(file)} of {entry["size"]} bytes)'
                   for file, entry in self._files.items() if not entry['verified']]
        missing += sorted(self._announced.keys() - self._files.keys())
        if missing or not self._files:
            raise StoreError(f'bag {self.name} is not complete: '
                             f'{", ".join(missing) or "no file"} is missing.')
        return {file: entry['sha256'] for file, entry in self._files.items()}

    @property
    def size(self) -> int:
        """Of what is there in all [bytes]."""
        return sum(map(self.received, self._files))

    def _check(self, piece: Piece) -> None:
        check_file_name(piece.file)
        if not SHA256.fullmatch(piece.sha256):
            raise StoreError(f'{piece.file}: the sha256 has to be 64 hexadecimal digits.')
        if piece.offset + len(piece.data) > piece.size:
            raise StoreError(f'{piece.file}: a piece of {len(piece.data)} bytes at offset '
                             f'{piece.offset} does not fit into {piece.size} bytes.')
        if self._announced and self._announced.get(piece.file) != piece.sha256:
            raise StoreError(f'{piece.file}: no part of the bag that is sent as {self.name} now; '
                             'choose another name for this one.')

    def _begin(self, piece: Piece) -> None:
        """Start a file anew."""
        others = {file: entry for file, entry in self._files.items() if file != piece.file}
        self._make_room(piece.size + sum(entry['size'] for entry in others.values()),
                        len(others) + 1, piece.size)
        self._drop(piece.file)
        self._files[piece.file] = _entry(piece, verified=False)
        self._save()
        (self.files_folder / piece.file).touch()

    def _append(self, piece: Piece, received: int) -> int:
        path = self.files_folder / piece.file
        here = received - piece.offset  # of the piece, from an earlier try
        with open(path, 'r+b', buffering=0) as file:
            file.seek(piece.offset)
            if file.read(min(here, len(piece.data))) != piece.data[:here]:
                raise StoreError(f'{piece.file}: differs from what was received at offset '
                                 f'{piece.offset} before.', received)
            new = piece.data[here:]
            if new:
                self._make_room(0, 0, len(new))
                self._write(file, path, new, received)
        entry, total = self._files[piece.file], received + len(new)
        if total == piece.size and not entry['verified']:
            self._verify(piece)
        return total

    def _write(self, file, path: Path, data, received: int) -> None:
        sha = self._hash(path, received)
        try:
            file.seek(received)
            left = memoryview(data)
            while left:
                left = left[file.write(left):]
        except OSError as error:  # above all a full disk: what was there before is still good
            file.truncate(received)
            raise StoreError(f'{path.name}: {error.strerror}.', received) from None
        sha.update(data)
        self._hashes[path] = received + len(data), sha

    def _hash(self, path: Path, size: int):
        """Return the sha256 of the first `size` bytes of a file, to go on with."""
        length, sha = self._hashes.pop(path, (0, hashlib.sha256()))
        if length != size:
            sha = hashlib.sha256()
            for block in blocks(BagFile(path.name, path, size)):
                sha.update(block)
        return sha

    def _verify(self, piece: Piece) -> None:
        path = self.files_folder / piece.file
        sha = self._hash(path, piece.size)
        if sha.hexdigest() != piece.sha256:
            self._drop(piece.file)
            self._save()
            raise StoreError(f'{piece.file}: what arrived has another sha256 than was said; send '
                             'it again.')
        with open(path, 'rb') as file:
            os.fsync(file.fileno())
        self._files[piece.file]['verified'] = True
        self._save()

    def _drop(self, file: str) -> None:
        self._files.pop(file, None)
        self._hashes.pop(self.files_folder / file, None)
        (self.files_folder / file).unlink(missing_ok=True)

    def _load(self) -> None:
        try:
            state = json.loads((self.folder / _STATE).read_text())
            if state['format_version'] != FORMAT_VERSION:
                raise ValueError
            self._announced, self._files = state['announced'], state['files']
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # Nothing is there yet, or nothing that can be gone on with.
            shutil.rmtree(self.files_folder, ignore_errors=True)
        for file, entry in self._files.items():
            entry['verified'] &= self.received(file) == entry['size']

    def _save(self) -> None:
        self.files_folder.mkdir(parents=True, exist_ok=True)
        state = {'format_version': FORMAT_VERSION, 'announced': self._announced,
                 'files': self._files}
        written = self.folder / f'{_STATE}.new'
        written.write_text(json.dumps(state, indent=1))
        written.replace(self.folder / _STATE)


def _entry(piece: Piece, verified: bool) -> dict:
    return {'size': piece.size, 'sha256': piece.sha256, 'verified': verified}
