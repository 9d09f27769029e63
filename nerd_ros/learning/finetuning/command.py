# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`nerd-ros finetune`: which recordings, which model, and where the new one goes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
import os
from pathlib import Path
import signal

from nerd_ros.learning.finetuning.progress import Kept, Progress
from nerd_ros.learning.store.bag_store import BagStore
from nerd_ros.learning.store.model_store import ModelStore
from nerd_ros.learning.store.store_files import StoreError
from nerd_ros.learning.store.work_folders import work_folder
from nerd_ros.scene.robot.robot_spec import RobotSpec

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def recordings(bags: BagStore, paths: Sequence[Path], names: Sequence[str]) -> list[Path]:
    """
    Return the recordings at `paths` and those of these names in the store, or all of the store.

    Each is there once, or one that was learned from would test the model. Raises StoreError for a
    name that is not there, and for an empty store.
    """
    found = [*paths, *map(bags.folder_of, names)] or [bag.path for bag in bags.bags()]
    if not found:
        raise StoreError(f'there are no bags in {bags.folder}; hand some over with `nerd-ros bag '
                         'upload`, or give recordings.')
    places = {}
    for path in found:
        places.setdefault(os.path.realpath(path), path)
    return list(places.values())


def finetune_and_keep(spec: RobotSpec, bags: Sequence[Path], models: ModelStore,
                      output: Path | None = None, *, base: str = '', activate: bool = True,
                      report: Callable[[Progress], None] = lambda progress: None,
                      **options) -> Kept:
    """
    Fine-tune and keep the model: as the new folder `output`, or in the store `models`.

    `base` is a version of the store, a path, or '' for the version in use. With `activate`, a
    model of the store that is better is in use from now on. `report` and `options` are those of
    `finetune`. SIGINT and SIGTERM raise KeyboardInterrupt meanwhile; whatever ends it, there is a
    whole model afterwards or none. Raises StoreError and what `finetune` raises.
    """
    name, folder = models.find(base)
    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise StoreError(f'{output} is there already; give --output the name of a new folder.')
    with _own_signals():
        from nerd_ros.learning.finetuning.finetune import finetune, REPORT
        _handle_signals(_stop)
        with models.new_folder() if output is None else _new_output(output) as work:
            outcome = finetune(spec, bags, work, base=folder, base_name=name, report=report,
                               **options)
            _handle_signals(signal.SIG_IGN)   # for the moment that it takes
            if output is not None:
                work.replace(output)
                return Kept(outcome, str(output), str(output / REPORT))
            version = models.keep(work)
        activated = activate and outcome.better
        if activated:
            models.activate(version)
    folder = models.folder_of(version)
    return Kept(outcome, str(folder), str(folder / REPORT), version, activated)


@contextmanager
def _new_output(output: Path) -> Iterator[Path]:
    """Provide an empty folder beside `output`, lost if it does not take its place."""
    with work_folder(output.absolute().parent, prefix=f'.{output.name}-') as work:
        folder = work / 'model'
        folder.mkdir()
        yield folder


@contextmanager
def _own_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM be as before at the end; at first they end the process at once."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # An exception would be lost where an import catches all of them, as those of trimesh do.
    _handle_signals(signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle_signals(handler) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)


def _stop(number, frame) -> None:
    # One who waits that this ends asks again, which must not disturb it; Ctrl-C may.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
