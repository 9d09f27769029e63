# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The store of models: versions, the active one, and that nothing is left half done."""

from datetime import datetime, timezone
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console
import yaml

from nerd_ros.learning.store.model_store import ModelStore, SHIPPED
from nerd_ros.learning.store.models_report import comparison_table, models_table
from nerd_ros.learning.store.store_files import StoreError
from nerd_ros.resources import resource_path

ROBOT = 'double_pendulum'
MODEL = resource_path('models', ROBOT)
FINE_TUNING = {
    'base': 'shipped', 'bags': {'train': ['a', 'b'], 'validation': ['c'], 'test': ['d']},
    'effort': 'commanded', 'seed': 3, 'better': True, 'reason': 'it halves the error.',
    'error': {'before': 1.0, 'after': 0.5, 'analytic': 0.8, 'hold': 2.0}}


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path, ROBOT)


def fill(folder, fine_tuning=FINE_TUNING):
    """Put a model into a folder, as fine-tuning does."""
    for file in MODEL.iterdir():
        shutil.copy(file, folder)
    card = yaml.safe_load((folder / 'model.yaml').read_text())
    (folder / 'model.yaml').write_text(yaml.safe_dump({**card, 'fine_tuning': fine_tuning}))


def add(store, **fine_tuning):
    with store.new_folder() as folder:
        assert not list(folder.iterdir())
        fill(folder, {**FINE_TUNING, **fine_tuning})
        return store.keep(folder)


def refused(action, *arguments):
    with pytest.raises(StoreError) as refusal:
        action(*arguments)
    message = str(refusal.value)
    assert message and '\n' not in message
    return message


def leftovers(store):
    work = store.folder / '.work'
    return os.listdir(work) if work.exists() else []


def names(store):
    return [model.version for model in store.versions()]


def text_of(table, width=80):
    console = Console(width=width, record=True, file=open(os.devnull, 'w'))
    console.print(table)
    return console.export_text()


def test_an_empty_store_has_the_shipped_model(store):
    model, = store.versions()
    assert (model.version, model.active, model.path, model.made) == (SHIPPED, True, MODEL, None)
    assert store.active == SHIPPED and store.find('') == (SHIPPED, MODEL)
    assert not store.folder.exists()
    assert 'in use before' in refused(store.roll_back)


def test_a_robot_without_a_model(tmp_path):
    store = ModelStore(tmp_path, 'nobody')
    assert store.versions() == []
    assert refused(store.folder_of, SHIPPED) == 'no learned model ships for robot nobody.'


def test_models_appear_by_their_time(store):
    before = datetime.now(timezone.utc)
    versions = [add(store, seed=seed) for seed in range(3)]
    assert names(store) == [SHIPPED, *versions] and store.active == SHIPPED
    assert leftovers(store) == []
    model = store.stored(versions[0])
    assert abs((model.made - before).total_seconds()) < 5.0
    card = model.card
    assert card.base == 'shipped' and card.bags['test'] == ('d',) and card.better is True
    assert card.error == FINE_TUNING['error'] and card.seed == 0 and not model.problem
    # By time and number, not by letter.
    for name in ('20200101-000000-10', '20200101-000000-2', '20200101-000000'):
        shutil.copytree(MODEL, store.folder / name)
    assert names(store)[1:4] == ['20200101-000000', '20200101-000000-2', '20200101-000000-10']


def test_activate_and_roll_back(store):
    first, second, third = (add(store) for _ in range(3))
    for version in (first, second, second, third):
        store.activate(version)
        assert store.active == version
        assert store.find('') == (version, store.folder / version)
        # Another process sees it.
        assert ModelStore(store.folder.parents[1], ROBOT).active == version
    assert (store.folder / 'active').read_text() == f'{first}\n{second}\n{third}\n'
    store.remove(second)
    assert store.roll_back() == first
    shutil.rmtree(store.folder / third)
    assert store.roll_back() == SHIPPED and store.active == SHIPPED
    assert 'in use before' in refused(store.roll_back)
    store.activate(first)
    store.activate(SHIPPED)
    assert store.roll_back() == first
    assert [model.active for model in store.versions()] == [False, True]


def test_only_a_model_that_can_be_loaded_is_activated(store):
    good, bad = add(store), add(store)
    store.activate(good)
    weights = store.folder / bad / 'model.safetensors'
    weights.write_bytes(weights.read_bytes()[:1000])
    assert 'damaged' in refused(store.activate, bad)
    shutil.copytree(resource_path('models', 'cartpole'), store.folder / 'other')
    assert 'a model of cartpole, not of double_pendulum' in refused(store.activate, 'other')
    assert 'there is no model 2020' in refused(store.activate, '2020')
    assert store.active == good
    # Nor is one kept.
    with store.new_folder() as folder:
        (folder / 'report.html').write_text('')
        assert 'model.yaml' in refused(store.keep, folder)
    assert len(names(store)) == 4 and leftovers(store) == []


def test_the_active_model_stays(store):
    first, second = add(store), add(store)
    store.activate(first)
    assert 'is in use' in refused(store.remove, first)
    assert 'part of the package' in refused(store.remove, SHIPPED)
    store.remove(second)
    assert names(store) == [SHIPPED, first] and leftovers(store) == []
    assert 'there is no model' in refused(store.remove, second)


@pytest.mark.parametrize('name', ['..', '.', '.work', '../x', '/etc', 'a/b', '', 'x' * 65, 'é'])
def test_no_name_leaves_the_store(store, name):
    add(store)
    for action in (store.folder_of, store.activate, store.remove):
        assert 'cannot be the name of a model' in refused(action, name)


def test_a_model_is_found_by_version_or_path(store, tmp_path, monkeypatch):
    version = add(store)
    assert store.find(version) == (version, store.folder / version)
    assert store.find(SHIPPED) == (SHIPPED, MODEL)
    assert store.find(str(tmp_path)) == (str(tmp_path), tmp_path)
    monkeypatch.chdir(store.folder)
    assert store.find(f'./{version}')[1].resolve() == store.folder / version
    assert f'shipped, {version}' in refused(store.find, 'gone')


@pytest.mark.parametrize('content', [b'', b'\n\n', b'\xff\x00', b'../../x\n'])
def test_a_damaged_list_of_activations_is_as_none(store, content):
    version = add(store)
    (store.folder / 'active').write_bytes(content)
    assert store.active == SHIPPED
    store.activate(version)
    assert store.active == version


@pytest.mark.parametrize('content', [
    '', '[', 'a: 1', 'fine_tuning: 3', 'fine_tuning: {error: {after: x}, bags: {test: 3}}'])
def test_a_card_of_any_kind_is_listed(store, content):
    version = add(store)
    (store.folder / version / 'model.yaml').write_text(content)
    model = store.stored(version)
    assert model.card.error == {} and model.card.bags == {}
    text = text_of(models_table(ROBOT, store.versions()))
    assert version in text and ('damaged' in text) == bool(model.problem) == (content in ('', '['))
    assert version in text_of(comparison_table(store.versions()))


def test_tables(store):
    first = add(store)
    second = add(store, error={'before': 1.0, 'after': 0.25}, better=False,
                 bags={'test': ['e']}, reason='too [little] data.')
    store.activate(second)
    lines = text_of(models_table(ROBOT, store.versions())).splitlines()
    line, = (line for line in lines if f' {first} ' in line)
    assert line.split() == [first, 'shipped', '2+1+1', '0.5000', '1', '0.8000', '2']
    line, = (line for line in lines if f'* {second} ' in line)
    assert line.split()[:2] == ['*', second] and '0+0+1' in line
    text = text_of(comparison_table([store.stored(v) for v in (SHIPPED, first, second)]))
    rows = {line[:20].strip(): line.split()[-3:] for line in text.splitlines()}
    assert rows['fine-tuned / before'] == ['-', '0.5000', '0.2500']
    assert rows['bags for test'] == ['-', 'd', 'e']
    assert rows['passed the gate'] == ['-', 'yes', 'no']
    assert '[little]' in text and 'different recordings' in ' '.join(text.split())
    alike = text_of(comparison_table([store.stored(first)] * 2))
    assert 'different recordings' not in ' '.join(alike.split())


def test_what_a_killed_process_left_is_removed(store):
    version = add(store)
    code = ('import os, sys, time; from pathlib import Path\n'
            'from nerd_ros.learning.store.model_store import ModelStore\n'
            'with ModelStore(Path(sys.argv[1]), "double_pendulum").new_folder() as folder:\n'
            '    (folder / "model.yaml").write_text("half")\n'
            '    print(folder, flush=True); time.sleep(60)')
    process = subprocess.Popen([sys.executable, '-c', code, str(store.folder.parents[1])],
                               stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    store.remove_abandoned()
    with store.new_folder():
        assert len(leftovers(store)) == 2, 'it is still worked on'
        store.remove_abandoned()
        assert len(leftovers(store)) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert names(store) == [SHIPPED, version] and len(leftovers(store)) == 1
    store.remove_abandoned()
    assert leftovers(store) == []


def test_killed_while_it_writes_the_store_is_as_it_should_be(store):
    """A process activates and rolls back in turns, and is killed somewhere; ten times."""
    versions = [add(store) for _ in range(2)]
    code = ('import sys; from pathlib import Path\n'
            'from nerd_ros.learning.store.model_store import ModelStore\n'
            'store = ModelStore(Path(sys.argv[1]), "double_pendulum")\n'
            'store._check_loads = lambda folder: None\n'
            'while True:\n'
            '    for version in sys.argv[2:]:\n'
            '        store.activate(version)\n'
            '        print(version, flush=True)\n')
    for k in range(10):
        process = subprocess.Popen(
            [sys.executable, '-c', code, str(store.folder.parents[1]), *versions],
            stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(0.003 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        lines = (store.folder / 'active').read_text().splitlines()
        assert lines and set(lines) <= set(versions)
        assert all(a != b for a, b in zip(lines, lines[1:]))
        # The lock went with it.
        store.activate(versions[k % 2])


def test_processes_that_add_and_activate_at_once(store, tmp_path):
    add(store)
    code = ('import shutil, sys; from pathlib import Path\n'
            'from nerd_ros.learning.store.model_store import ModelStore\n'
            'store = ModelStore(Path(sys.argv[1]), "double_pendulum")\n'
            'store._check_loads = lambda folder: None\n'
            'for _ in range(10):\n'
            '    with store.new_folder() as folder:\n'
            '        (folder / "model.yaml").write_text("a: 1")\n'
            '        version = store.keep(folder)\n'
            '    store.activate(version)\n'
            '    print(version)\n')
    processes = [subprocess.Popen([sys.executable, '-c', code, str(tmp_path)],
                                  stdout=subprocess.PIPE, text=True) for _ in range(3)]
    made = [version for process in processes for version in process.communicate()[0].split()]
    assert len(made) == len(set(made)) == 30
    assert set(names(store)) >= set(made)
    assert sorted((store.folder / 'active').read_text().split()) == sorted(made)
    assert leftovers(store) == []
