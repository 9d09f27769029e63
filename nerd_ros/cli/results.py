# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What commands do about the files that they make."""

from contextlib import suppress
import os
from pathlib import Path
import shlex
import sys
from tempfile import TemporaryFile

from nerd_ros.arguments import ArgumentError


def check_folder(folder: Path) -> None:
    """Refuse, before the work, a folder that no result can be written into; leaves none behind."""
    missing = [place for place in (folder, *folder.parents) if not os.path.exists(place)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except FileExistsError:
        raise ArgumentError(f'{folder} is a file where --output needs a folder; choose another '
                            'place.') from None
    except OSError as error:
        raise ArgumentError(f'{folder}: nothing can be written there: {error.strerror}; choose '
                            'another place.') from None
    finally:
        with suppress(OSError):
            for place in missing:
                place.rmdir()


def command_line() -> str:
    """Return the command line as typed, for the card of what it makes."""
    return shlex.join(['nerd-ros', *sys.argv[1:]])
