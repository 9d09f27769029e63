# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The learned models of one robot that came of its recordings, a folder each.

    <root>/<robot>/models/<version>/        a model: model.safetensors, model.yaml, report.html
    <root>/<robot>/models/active            which were in use, a version a line, the last one now
    <root>/<robot>/models/.work/<random>/   a model that is made or removed

A version is named by the time it was made, YYYYMMDD-HHMMSS in UTC, and appears by one rename. The
model that ships with the package is the version `shipped`, active as long as no other is.
"""

from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
from datetime import datetime, timezone
import os
from pathlib import Path
import re
import shutil
from typing import NamedTuple

from nerd_ros.learning.store.fine_tuning_card import FineTuningCard, read_fine_tuning
from nerd_ros.learning.store.store_files import check_name, NAME, StoreError
from nerd_ros.learning.store.work_folders import (
    abandoned_folders, flush_to_disk, folders, locked, work_folder)
from nerd_ros.resources import resource_path, ResourceError, shown

SHIPPED = 'shipped'
_TIME = '%Y%m%d-%H%M%S'
_VERSION = re.compile(r'(\d{8}-\d{6})(?:-(\d+))?', re.ASCII)
# So many activations can be rolled back.
_LONGEST_HISTORY = 100


class StoredModel(NamedTuple):
    """A model of the store."""

    version: str
    path: Path
    active: bool
    made: datetime | None
    """In UTC; None where the name does not tell."""
    card: FineTuningCard
    problem: str
    """Why its card cannot be read, a sentence; empty where it can."""


class ModelStore:
    """
    The models of `robot` (its name) below `root`.

    For several processes and threads at once. A process may be killed at any time: what is there
    stays as it was before, or as it should become. Raises StoreError where something is refused,
    and OSError as it comes.
    """

    def __init__(self, root: Path, robot: str):
        self.robot = robot
        self.folder = root / robot / 'models'
        self._work = self.folder / '.work'

    @property
    def active(self) -> str:
        """Version in use."""
        return (self._history() or [SHIPPED])[-1]

    def versions(self) -> list[StoredModel]:
        """Return all models, the shipped one first if there is one, then by time."""
        names = sorted((name for name in folders(self.folder)
                        if NAME.fullmatch(name) and name != SHIPPED), key=_age)
        active = self.active
        found = [self._stored(name, self.folder / name, active) for name in names]
        try:
            shipped = self.folder_of(SHIPPED)
        except StoreError:
            return found
        return [self._stored(SHIPPED, shipped, active), *found]

    def stored(self, version: str) -> StoredModel:
        """Return one model."""
        return self._stored(version, self.folder_of(version), self.active)

    def folder_of(self, version: str) -> Path:
        """Return where a version lies; raises StoreError where there is no such one."""
        if version == SHIPPED:
            try:
                return resource_path('models', self.robot)
            except ResourceError:
                raise StoreError(f'no learned model ships for robot {self.robot}.') from None
        check_name(version, 'model')
        if not (self.folder / version).is_dir():
            raise StoreError(f'there is no model {version} in {self.folder} (there are: '
                             f'{self._known()}).')
        return self.folder / version

    def find(self, model: str) -> tuple[str, Path]:
        """
        Return name and folder of `model`: a version, a path, or '' for the active version.

        Raises StoreError where there is neither.
        """
        if not model or model == SHIPPED or (
                NAME.fullmatch(model) and (self.folder / model).is_dir()):
            version = model or self.active
            return version, self.folder_of(version)
        path = Path(os.path.expanduser(model))
        if not os.path.isdir(path):
            raise StoreError(f'{shown(model)} is not a folder, nor a model of {self.robot} in the '
                             f'store (there are: {self._known()}).')
        return model, path

    def activate(self, version: str) -> None:
        """Use `version` from now on, which has to be a model that can be loaded."""
        self._check_loads(self.folder_of(version))
        with locked(self.folder):
            self.folder_of(version)   # which somebody may have removed meanwhile
            if version != self.active:
                self._write_history([*self._history(), version])

    def roll_back(self) -> str:
        """Use the version again that was in use before the active one, and return it."""
        with locked(self.folder):
            history = self._history()
            left = history[-1:]
            while history and (history[-1:] == left or not self._exists(history[-1])):
                history.pop()
            version = (history or [SHIPPED])[-1]
            if not left or left == [version] or not self._exists(version):
                raise StoreError(f'no other model of {self.robot} was in use before '
                                 f'{self.active}; `nerd-ros models` lists what there is.')
            self._check_loads(self.folder_of(version))
            self._write_history(history)
        return version

    def remove(self, version: str) -> None:
        """Remove a version, at once and altogether; the active one is refused."""
        if version == SHIPPED:
            raise StoreError('the shipped model is part of the package and stays.')
        with locked(self.folder), work_folder(self._work) as work:
            folder = self.folder_of(version)
            if version == self.active:
                raise StoreError(f'model {version} is in use; activate another one first.')
            self._write_history([name for name in self._history() if name != version])
            folder.rename(work / version)

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """Provide an empty folder to make a model in; it is lost if it is not given to `keep`."""
        with ExitStack() as stack:
            with locked(self.folder):   # or another might remove it before it is held
                self._remove_abandoned()
                work = stack.enter_context(work_folder(self._work))
                stack.enter_context(locked(work))
            folder = work / 'model'
            folder.mkdir()
            yield folder

    def keep(self, folder: Path) -> str:
        """Take the model in `folder`, of `new_folder`, into the store; return its version."""
        self._check_loads(folder)
        flush_to_disk(folder)
        with locked(self.folder):
            time = version = datetime.now(timezone.utc).strftime(_TIME)
            count = 1
            while (self.folder / version).exists():
                count += 1
                version = f'{time}-{count}'
            folder.rename(self.folder / version)
        return version

    def remove_abandoned(self) -> None:
        """Remove what processes left that were killed."""
        if self._work.is_dir():
            with locked(self.folder):
                self._remove_abandoned()

    def _remove_abandoned(self) -> None:
        for name in abandoned_folders(self._work):
            shutil.rmtree(self._work / name, ignore_errors=True)

    def _exists(self, version: str) -> bool:
        try:
            self.folder_of(version)
        except StoreError:
            return False
        return True

    def _known(self) -> str:
        return ', '.join(model.version for model in self.versions()) or 'none'

    def _check_loads(self, folder: Path) -> None:
        # Imports torch, which a list of models does without.
        from nerd_ros.dynamics.checkpoint import CheckpointError, load_checkpoint
        try:
            robot = load_checkpoint(folder).layout.robot
        except CheckpointError as error:
            raise StoreError(str(error)) from None
        if robot != self.robot:
            raise StoreError(f'{folder} is a model of {robot}, not of {self.robot}.')

    def _stored(self, version: str, path: Path, active: str) -> StoredModel:
        try:
            card, problem = read_fine_tuning(path), ''
        except StoreError as error:
            card, problem = FineTuningCard(), str(error)
        return StoredModel(version, path, version == active, _made(version), card, problem)

    def _history(self) -> list[str]:
        try:
            text = (self.folder / 'active').read_text('ascii', 'replace')
        except FileNotFoundError:
            return []
        return [line for line in text.splitlines() if NAME.fullmatch(line)]

    def _write_history(self, history: list[str]) -> None:
        with work_folder(self._work) as work:
            written = work / 'active'
            written.write_text(''.join(f'{version}\n' for version in history[-_LONGEST_HISTORY:]))
            flush_to_disk(work)
            written.replace(self.folder / 'active')


def _made(version: str) -> datetime | None:
    match = _VERSION.fullmatch(version)
    try:
        return match and datetime.strptime(match[1], _TIME).replace(tzinfo=timezone.utc)
    except ValueError:   # 99 minutes
        return None


def _age(version: str) -> tuple[str, int]:
    """Return what versions are sorted by, oldest first."""
    match = _VERSION.fullmatch(version)
    return (match[1], int(match[2] or 1)) if match else (version, 0)
