# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the models of the store, for the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from nerd_ros.learning.report import number
from nerd_ros.learning.store.fine_tuning_card import ERRORS, PARTS
from nerd_ros.learning.store.model_store import StoredModel

_ERRORS = {'after': 'fine-tuned', 'before': 'before', 'analytic': 'analytic solver',
           'hold': 'hold last state'}


def models_table(robot: str, models: Sequence[StoredModel]) -> Table:
    """Return a table with a row for each model."""
    # Narrow enough for a terminal of 80 columns.
    table = Table(title=f'Models of {robot}', box=SIMPLE_HEAD, pad_edge=False,
                  padding=(0, 1, 0, 0),
                  caption='* is in use; bags for training, validation and test; errors on the '
                  'test recordings')
    table.add_column('  version (UTC)', no_wrap=True)
    table.add_column('from', overflow='fold')
    table.add_column('bags', no_wrap=True)
    for name in ('fine-\ntuned', 'before', 'analytic\nsolver', 'hold\nstate'):
        table.add_column(name, justify='right', no_wrap=True)
    for model in models:
        card = model.card
        table.add_row(
            f'{"*" if model.active else " "} {escape(model.version)}', escape(card.base) or '-',
            '+'.join(str(len(card.bags.get(part, ()))) for part in PARTS) if card.bags else '-',
            *(['damaged', '', '', ''] if model.problem else _errors(model)))
    return table


def comparison_table(models: Sequence[StoredModel]) -> Table:
    """Return a table with a column for each model."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title='Errors on the test recordings')
    table.add_column('')
    for model in models:
        table.add_column(escape(model.version), justify='right', overflow='fold')
    for name, values in zip(ERRORS, zip(*map(_errors, models))):
        table.add_row(_ERRORS[name], *values)
    table.add_row('fine-tuned / before', *(number(_gain(model)) for model in models),
                  end_section=True)
    for part in PARTS:
        table.add_row(f'bags for {part}',
                      *(_listed(model.card.bags.get(part, ())) for model in models))
    for title, values in (
            ('from', [escape(model.card.base) for model in models]),
            ('effort', [escape(model.card.effort) for model in models]),
            ('seed', ['' if m.card.seed is None else str(m.card.seed) for m in models]),
            ('passed the gate', [{None: '', True: 'yes', False: 'no'}[model.card.better]
                                 for model in models]),
            ('', [escape(model.card.reason or model.problem) for model in models])):
        table.add_row(title, *(value or '-' for value in values))
    tests = {(model.card.bags['test'], model.card.effort)
             for model in models if model.card.bags.get('test')}
    if len(tests) > 1:
        table.caption = ('these models were tested on different recordings or with another '
                         'effort: compare each with its own baselines')
    return table


def _errors(model: StoredModel) -> list[str]:
    return [number(model.card.error.get(name)) for name in ERRORS]


def _gain(model: StoredModel) -> float | None:
    error = model.card.error
    if 'after' not in error or not error.get('before'):
        return None
    return error['after'] / error['before']


def _listed(names: Sequence[str]) -> str:
    return escape('\n'.join(names)) or '-'
