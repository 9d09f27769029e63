# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where robots, worlds, models and other files of the package lie, however it was installed."""

import os
from pathlib import Path
import sys


class ResourceError(ValueError):
    """A file that was asked for is not there; the message says what there is."""


def resource_path(*parts: str) -> Path:
    """
    Return the path of a file or folder of the package, such as ('worlds', 'empty.sdf').

    Looked up in this order: the share folder of a ROS workspace, that of the Python environment,
    the source tree. Raises ResourceError where none has it.
    """
    for root in _roots():
        path = root.joinpath(*parts)
        if os.path.exists(path):  # which says False of what cannot be a path
            return path
    raise ResourceError(f'nerd_ros has no {"/".join(parts)}.')


def find_named(kind: str, name_or_path: str, suffix: str) -> Path:
    """
    Return the path of a file given by name or by path.

    A bare name ('empty') is a file of the package in folder `kind` ('worlds') with `suffix`
    ('.sdf'); anything with a separator or the suffix is a path of the user's. Raises
    ResourceError that names the path, or lists the names there are.
    """
    text = str(name_or_path)
    if text.endswith(suffix) or '/' in text or '\\' in text:
        path = Path(os.path.expanduser(text))
        if not os.path.isfile(path):
            raise ResourceError(f'{shown(text)} is not a file.')
        return path
    try:
        return resource_path(kind, text + suffix)
    except ResourceError:
        known = ', '.join(names(kind, suffix)) or 'none'
        raise ResourceError(
            f'there is no {shown(text)}{suffix} among the {Path(kind).name} of nerd_ros (there '
            f'are: {known}); give one of these or a path that ends in {suffix}.') from None


def shown(path: str | Path) -> str:
    """Return a path or name as given, or escaped and cut where it does not fit into a message."""
    text = str(path)
    return text if text.isprintable() and len(text) <= 1000 else f'{ascii(text[:100])}...'


def names(kind: str, suffix: str) -> tuple[str, ...]:
    """Return the names of the files of the package in folder `kind`, without `suffix`, sorted."""
    return tuple(sorted({
        path.name.removesuffix(suffix)
        for root in _roots() for path in (root / kind).glob(f'*{suffix}')}))


def _roots() -> list[Path]:
    roots = [Path(sys.prefix, 'share', 'nerd_ros'), Path(__file__).resolve().parents[1]]
    try:
        from ament_index_python.packages import get_package_share_directory
        roots.insert(0, Path(get_package_share_directory('nerd_ros')))
    except (ImportError, LookupError, OSError):
        pass  # no ROS here, or the package is not installed in its workspace
    return roots
