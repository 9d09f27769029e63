# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Table of the bags of the store, for the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from nerd_ros.learning.store.bag_store import MEGABYTE, StoredBag


def bags_table(robot: str, bags: Sequence[StoredBag]) -> Table:
    """Return a table with a row for each bag."""
    table = Table(title=f'Bags of {robot}', box=SIMPLE_HEAD, pad_edge=False)
    for name in ('bag', 'size', 'usable', 'path'):
        table.add_column(name, justify='right' if name in ('size', 'usable') else 'left',
                         no_wrap=name != 'path', overflow='fold')
    for bag in bags:
        table.add_row(escape(bag.name), f'{bag.size / MEGABYTE:.1f} MB',
                      f'{bag.summary.duration:.1f} s' if bag.summary else '-',
                      escape(str(bag.path)))
    return table
