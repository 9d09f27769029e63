# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What robot and world files have in common: text, XML, and numbers that make sense."""

from pathlib import Path

from lxml import etree
import numpy as np

from nerd_ros.resources import shown

# Largest magnitude of a number. Products of numbers beyond it leave single precision.
LARGEST = 1e6
# Least mass [kg] and size [m] of a body.
SMALLEST = 1e-6
# Least principal moment of inertia [kg m^2]; Newton replaces those below by larger ones.
LEAST_MOMENT = 1e-10


def read_text(path: Path, error: type[ValueError]) -> str:
    """Return the text of a UTF-8 file. Raises `error`, in one sentence, where it has none."""
    try:
        return path.read_text(encoding='utf-8')
    except UnicodeDecodeError:
        raise error(f'{path}: cannot be read: not UTF-8 text; save it as UTF-8.') from None
    except (OSError, ValueError) as reason:  # ValueError: a path with a null character
        raise error(f"{shown(path)}: cannot be read: {getattr(reason, 'strerror', reason)}.") \
            from None


def parse_xml(text: str, path: Path, error: type[ValueError]) -> etree._Element:
    """Parse XML without comments and entities. Raises `error`, which names `path` and line."""
    parser = etree.XMLParser(encoding='utf-8', remove_comments=True, remove_pis=True,
                             resolve_entities=False)
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as reason:
        text = ' '.join(reason.msg.split())
        raise error(f'{path}, line {reason.lineno}: not well-formed XML: {text}.') from None
    if root.getroottree().docinfo.doctype:
        raise error(f'{path}: has a DOCTYPE, which is not supported; remove it, and write out '
                    'the entities that it defines.')
    return root


def parse_numbers(text: str, *counts: int) -> tuple[float, ...]:
    """Numbers in a text; raises ValueError with the text and what was expected instead."""
    try:
        values = tuple(float(part) for part in text.split())
    except ValueError:
        values = ()
    # A value that is not a number compares as false.
    if len(values) not in counts or not all(abs(value) <= LARGEST for value in values):
        wanted = ' or '.join(map(str, counts))
        raise ValueError(f'"{text}", expected {wanted} finite number'
                         f'{"" if counts == (1,) else "s"} of magnitude at most {LARGEST:g}')
    return values


def is_inertia(matrix) -> bool:
    """Whether a body can have the inertia `matrix` (3, 3) about its centre of mass."""
    moments = np.linalg.eigvalsh(matrix)
    return (moments[0] >= LEAST_MOMENT
            and moments[0] + moments[1] >= moments[2] * (1.0 - 1e-6))
