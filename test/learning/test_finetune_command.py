# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`nerd-ros finetune`, and the process that runs it beside a simulation."""

import json
import math
import os
import signal
import subprocess
import sys
from threading import Thread
import time

import pytest
from weak_motors import record

from nerd_ros.learning.finetuning.command import recordings
from nerd_ros.learning.finetuning.job import FineTuningJob, JobError
from nerd_ros.learning.finetuning.progress import Kept, line_of, Outcome, Progress, read_line
from nerd_ros.learning.helper_process import GRACE
from nerd_ros.learning.store.bag_store import BagStore
from nerd_ros.learning.store.model_store import ModelStore
from nerd_ros.learning.store.store_files import StoreError

ROBOT = 'double_pendulum'


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    """Return the root of a store with five bags."""
    root = tmp_path_factory.mktemp('store')
    folder = root / ROBOT / 'bags'
    folder.mkdir(parents=True)
    record(folder)
    return root


@pytest.fixture
def models(root):
    return ModelStore(root, ROBOT)


def command(*words):
    return [sys.executable, '-m', 'nerd_ros.cli', 'finetune', *map(str, words)]


def leftovers(models):
    work = models.folder / '.work'
    return os.listdir(work) if work.exists() else []


def test_what_is_told_to_another_process_arrives():
    outcome = Outcome(True, 'it is "half"', 0.2, 0.1, math.nan, 0.5)
    kept = Kept(outcome, '/a/ä', '/a/ä/report.html', '20260101-000000', True)
    for told in (Progress('training', 0.5, 30.0, 0.25, 0.75), Progress('reading', 0.0, math.nan)):
        assert repr(read_line(line_of(told))) == repr(told)
    assert repr(read_line(line_of(kept))) == repr(kept)
    assert json.loads(line_of(kept))['outcome']['error_analytic'] is None
    for line in ('', 'Warp 1.17', '5', '[]', '{}', '{"outcome": 1}', '{"phase": "x"}', '{"a": 1'):
        assert read_line(line) is None


def test_recordings_count_once(root, tmp_path):
    bags = BagStore(root, ROBOT, check=None)
    stored = [bags.folder / f'weak_{k}' for k in range(5)]
    assert recordings(bags, (), ()) == stored
    link = tmp_path / 'link'
    link.symlink_to(stored[0])
    assert recordings(bags, [stored[1], link], ('weak_1', 'weak_2', 'weak_2', 'weak_0')) == [
        stored[1], link, stored[2]]
    with pytest.raises(StoreError, match='there is no bag x in .*weak_0, weak_1, '):
        recordings(bags, [stored[1]], ('x',))
    with pytest.raises(StoreError, match='no bags in .*; hand some over'):
        recordings(BagStore(tmp_path, ROBOT, check=None), (), ())


def test_a_model_is_made_kept_and_used(nerd_ros, root, models, monkeypatch):
    monkeypatch.setenv('COLUMNS', '80')
    result = nerd_ros('finetune', '--store', root, '--time-limit', 15, '--seed', 1,
                      '--namespace', 'nobody')
    assert result.returncode == 0, result.stderr
    version = models.active
    stored = models.stored(version)
    assert version != 'shipped' and stored.card.base == 'shipped' and stored.card.seed == 1
    assert [len(stored.card.bags[part]) for part in ('train', 'validation', 'test')] == [3, 1, 1]
    assert stored.card.better and stored.card.error['after'] < stored.card.error['before']
    lines = result.stdout.splitlines()
    assert any(line.split() == ['before', 'fine-tuned', 'analytic', 'solver', 'hold', 'last',
                                'state'] for line in lines)
    assert f'report: {stored.path}/report.html' in lines
    assert f'model {version} of {ROBOT} is in use from now on' in lines
    assert {file.name for file in stored.path.iterdir()} == {
        'model.safetensors', 'model.yaml', 'outcome.json', 'report.html'}
    assert leftovers(models) == []


def test_stopped_by_the_user_it_leaves_nothing(root, tmp_path):
    output = tmp_path / 'runs' / 'tuned'
    output.parent.mkdir()
    process = subprocess.Popen(command('--store', root, '--output', output, '--json'),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if read_line(line).phase == 'training':
            break
    assert list(output.parent.iterdir())
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=30)[1]
    assert process.returncode == 130 and errors == 'stopped; nothing is kept\n'
    assert not list(output.parent.iterdir())


def test_the_process_is_killed(root, models):
    """Which is told, and what it leaves is gone with the next one; it has the lowest priority."""
    versions, heard = models.versions(), []

    def kill(progress):
        heard.append(progress)
        if progress.phase == 'training':
            pid = job._process.pid
            assert os.getpriority(os.PRIO_PROCESS, pid) == 19
            assert leftovers(models)
            os.kill(pid, signal.SIGKILL)
    job = FineTuningJob([f'--store={root}'])
    with pytest.raises(JobError, match='ended with: SIGKILL'):
        job.run(kill)
    assert [progress.phase for progress in heard][:2] == ['reading', 'reading']
    assert models.versions() == versions and len(leftovers(models)) == 1
    models.remove_abandoned()
    assert leftovers(models) == []


def test_cancelled_at_any_time(root, models):
    versions = models.versions()
    job = FineTuningJob([f'--store={root}'])
    job.cancel()
    with pytest.raises(InterruptedError):
        job.run(print)
    for delay in (0.05, 1.0, 3.0):
        job = FineTuningJob([f'--store={root}'])
        thread = Thread(target=lambda: (time.sleep(delay), job.cancel()))
        thread.start()
        begin = time.monotonic()
        with pytest.raises(InterruptedError):
            job.run(print)
        thread.join()
        assert time.monotonic() - begin < delay + GRACE + 2.0
    assert models.versions() == versions and leftovers(models) == []


@pytest.mark.parametrize('words, message', [
    (('--bag', 'gone'), 'there is no bag gone in'),
    (('--base', 'gone'), 'gone is not a folder, nor a model of double_pendulum in the store'),
    (('--robot', 'nobody'), 'no nobody.yaml among the robots'),
    (('--output', '/proc/x'), '/proc: nothing can be written there'),
    (('--output', '/etc'), '/etc is there already'),
    (('--time-limit', '-1'), 'a time limit of -1 s leaves no time'),
])
def test_errors_are_one_sentence(nerd_ros, root, models, words, message):
    result = nerd_ros('finetune', '--store', root, *words)
    assert result.returncode == 1
    line, = filter(None, result.stderr.splitlines())
    assert line.startswith('nerd-ros: ') and message in line
    assert leftovers(models) == []


def test_errors_of_the_process_are_told(root):
    with pytest.raises(JobError) as refusal:
        FineTuningJob([f'--store={root}', '--bag=gone']).run(print)
    assert str(refusal.value).startswith('there is no bag gone in')
