# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The example of the library and the code in its documentation run and do what they say."""

from pathlib import Path
import re
import runpy
import sys

import pytest
import torch

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / 'docs' / 'library.md').read_text()
SNIPPETS = re.findall(r'```python\n(.*?)```', DOCUMENT, re.DOTALL)


def run_snippet(start: str) -> dict:
    """Run the code of the documentation that contains a text; returns its variables."""
    code, = (snippet for snippet in SNIPPETS if start in snippet)
    variables = {}
    exec(compile(code, 'docs/library.md', 'exec'), variables)
    return variables


@pytest.mark.parametrize('solver', ['neural', 'mujoco'])
def test_many_worlds(solver, monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', ['many_worlds.py', solver])
    variables = runpy.run_path(str(ROOT / 'examples' / 'many_worlds.py'))
    simulation, tensors = variables['simulation'], variables['tensors']
    assert f'{solver} after 0.50 s in 64 worlds' in capsys.readouterr().out
    assert tensors.joint_q.shape == tensors.effort.shape == (64, 2)
    assert tensors.body_q.shape == (64, len(simulation.body_names), 7)
    assert tensors.joint_q.isfinite().all() and (tensors.joint_q.std(0) > 0.05).all()
    # They are the simulation itself, not a copy of it.
    simulation.reset()
    assert (tensors.joint_q == 0.0).all() and (tensors.effort == 0.0).all()
    tensors.effort[3] = torch.tensor([1000.0, -1.0])
    simulation.step()
    assert simulation.applied_effort[3] == pytest.approx([6.0, -1.0])
    assert tensors.joint_qd[3, 0] > 0.1 and abs(tensors.joint_qd[4, 0]) < 1e-3
    assert tensors.joint_qd.numpy() == pytest.approx(simulation.joint_qd)


def test_documented_worlds():
    variables = run_snippet('Simulation(')
    assert variables['tensors'].joint_q.std() > 0.05


def test_documented_newton_loop():
    variables = run_snippet('SolverNeRD(model')
    assert (variables['joint_q'].std(0) > 0.05).all()


def test_documented_gradients():
    variables = run_snippet('backward()')
    assert variables['miss'].sqrt() < 0.1   # 0.55 at first
