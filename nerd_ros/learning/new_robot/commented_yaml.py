# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""YAML in which each value has a comment that says where it comes from."""

from dataclasses import dataclass
import json
import re
import textwrap

_WIDTH = 99
_COLUMN = 34   # where comments start that stand beside their value


@dataclass(frozen=True)
class Choice:
    """A value and why it was chosen."""

    value: object
    comment: str


def plain(section: dict) -> dict:
    """Return the values of a mapping of choices and of other such mappings."""
    return {key: plain(item) if isinstance(item, dict) else item.value
            for key, item in section.items()}


def render(section: dict, indent: int = 0) -> list[str]:
    """
    Return the lines of a mapping of choices and of other such mappings.

    A comment stands beside its value where there is room, else above it.
    """
    lines, pad = [], ' ' * indent
    for key, item in section.items():
        name = _text(key)
        if item == {}:
            item = Choice({}, 'none')
        if isinstance(item, dict):
            lines += [f'{pad}{name}:', *render(item, indent + 2)]
            if not indent:
                lines.append('')
            continue
        line = f'{pad}{name}: {_text(item.value)}'
        beside = f'{line:<{_COLUMN}}  # {item.comment}'
        if len(beside) <= _WIDTH:
            lines.append(beside)
        else:
            lines += [*comment(item.comment, indent), *textwrap.wrap(
                line, _WIDTH, subsequent_indent=f'{pad}  ', break_long_words=False,
                break_on_hyphens=False)]
        if not indent:
            lines.append('')
    return lines


def comment(text: str, indent: int = 0) -> list[str]:
    """Return the lines of a comment."""
    start = ' ' * indent + '# '
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=start,
                         break_long_words=False, break_on_hyphens=False)


def _text(value) -> str:
    if isinstance(value, str) and re.fullmatch(r'[A-Za-z./][\w./-]*', value) \
            and value.lower() not in ('true', 'false', 'null', 'yes', 'no', 'on', 'off'):
        return value
    if isinstance(value, (list, tuple)):
        return f'[{", ".join(map(_text, value))}]'
    if isinstance(value, dict):
        return '{' + ', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items()) + '}'
    return json.dumps(value, ensure_ascii=False)
