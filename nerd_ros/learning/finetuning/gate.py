# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether a fine-tuned model may replace the one that it started from."""

from typing import NamedTuple

from nerd_ros.learning.finetuning.comparison import AFTER, BEFORE, Comparison

# How much farther from the teacher than its base a model may be: real friction differs from the
# teacher's, but what falls apart away from the recordings is of no use.
TEACHER_BOUND = 0.5


class Verdict(NamedTuple):
    """Whether a model is better, and a sentence that says why or why not."""

    better: bool
    reason: str


def judge(comparison: Comparison, teacher_before: float | None,
          teacher_after: float | None) -> Verdict:
    """
    Compare on recordings that were kept back, and on the teacher's own motion.

    `teacher_before` and `teacher_after` are `Checked.score` of the two models, None where the
    robot does not say how it is evaluated.
    """
    ratio = comparison.ratio(AFTER, BEFORE)
    told = (f'on {len(comparison.bags)} test recording(s) with {comparison.effort} effort the '
            f'error is {ratio:.2f} times that before')
    if not ratio < 1.0:
        return Verdict(False, f'not better: {told}')
    if comparison.effort != 'commanded':
        return Verdict(False, f'{told}, but a running robot is driven by commands: fine-tune with '
                              'commanded effort to use it')
    if teacher_after is not None and not teacher_after <= teacher_before + TEACHER_BOUND:
        return Verdict(False, f'{told}, but on the motion of the teacher it is '
                              f'{teacher_after:.2g} off, {teacher_before:.2g} before: record more '
                              'kinds of motion')
    return Verdict(True, told)
