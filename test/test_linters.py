# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Style, by the linters of ROS 2."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = [str(ROOT / name)
           for name in ('nerd_ros', 'launch', 'benchmarks', 'examples', 'setup.py')]
TESTS = [str(ROOT / 'test')]
# Rules that guess at English: they take properties for actions and MuJoCo for a misspelt word.
GUESSED = ['D401', 'D402', 'D403']
# Docstrings that would say nothing: of modules, packages, magic methods and, in tests, at all.
OPTIONAL = ['D100', 'D104', 'D105', 'D107']
IN_TESTS = ['D101', 'D102', 'D103']


def test_flake8():
    ament_flake8 = pytest.importorskip('ament_flake8.main', reason='ament_flake8 is not installed')
    status, errors = ament_flake8.main_with_errors(argv=PACKAGE + TESTS)
    assert status == 0, '\n'.join(errors)


def test_pep257():
    ament_pep257 = pytest.importorskip('ament_pep257.main', reason='ament_pep257 is not installed')
    rules = ['--convention', 'pep257', '--add-ignore', *GUESSED, *OPTIONAL]
    assert ament_pep257.main(argv=[*PACKAGE, *rules]) == 0
    assert ament_pep257.main(argv=[*TESTS, *rules, *IN_TESTS]) == 0


def test_copyright():
    ament_copyright = pytest.importorskip(
        'ament_copyright.main', reason='ament_copyright is not installed')
    assert ament_copyright.main(argv=PACKAGE + TESTS) == 0
