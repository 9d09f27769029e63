# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What was read of a recording, in words."""

from rich.text import Text

from nerd_ros.learning.bags.recording import BagRecording


def recording_summary(recording: BagRecording) -> Text:
    """Return what was read of a `BagRecording`, a line each."""
    lines = [f'{recording.path}: {recording.duration:.2f} s in {len(recording.segments)} '
             f'segments at {recording.dt * 1e3:g} ms']
    return Text('\n'.join([*lines, *(f'  {note}' for note in recording.notes)]))
