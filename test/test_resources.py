# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Files of the package are found by name, files of the user by path."""

from pathlib import Path
import sys

from nerd_ros.resources import find_named, names, resource_path, ResourceError
import pytest


def test_name_and_path():
    assert find_named('worlds', 'empty', '.sdf').is_file()
    path = resource_path('worlds', 'empty.sdf')
    assert find_named('worlds', str(path), '.sdf') == path
    assert 'double_pendulum' in names('config/robots', '.yaml')


def test_environment_goes_before_source_tree(tmp_path, monkeypatch):
    worlds = tmp_path / 'share' / 'nerd_ros' / 'worlds'
    worlds.mkdir(parents=True)
    (worlds / 'empty.sdf').touch()
    (worlds / 'mine.sdf').touch()
    monkeypatch.setattr(sys, 'prefix', str(tmp_path))
    assert resource_path('worlds', 'empty.sdf') == worlds / 'empty.sdf'
    assert {'mine', 'obstacles'} <= set(names('worlds', '.sdf'))


def test_unknown_name_lists_the_known():
    with pytest.raises(ResourceError, match=r'no moon\.sdf among the worlds.*empty, obstacles'):
        find_named('worlds', 'moon', '.sdf')


def test_missing_file_is_named_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in ('./moon.sdf', 'moon.sdf', 'my/moon'):
        with pytest.raises(ResourceError, match=f'^{given} is not a file'):
            find_named('worlds', given, '.sdf')
    for given in ('~nobody/moon', 'moon/a\0b', 'a\0b', 'x' * 5000, 'x/' * 3000):
        with pytest.raises(ResourceError, match='is not a file|there is no') as error:
            find_named('worlds', given, '.sdf')
        assert str(error.value).isprintable() and len(str(error.value)) < 400
    Path('moon.sdf').touch()
    assert find_named('worlds', 'moon.sdf', '.sdf') == Path('moon.sdf')
