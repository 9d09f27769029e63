# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A model comes back as it was saved, and whatever cannot be loaded says why."""

from dataclasses import replace

from dynamics.conftest import random_inputs
import pytest
from safetensors.torch import load_file, save_file
import torch
import yaml

from nerd_ros.dynamics.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from nerd_ros.dynamics.layout import RobotLayout


@pytest.fixture
def folder(model, tmp_path):
    """Return the folder of a saved model."""
    save_checkpoint(tmp_path / 'saved', model, {'command': 'nerd-ros train', 'seed': 3})
    return tmp_path / 'saved'


def test_a_loaded_model_predicts_the_same(model, folder):
    loaded = load_checkpoint(folder, model.layout)
    inputs = random_inputs(model.layout, 3)
    for mine, theirs in zip(model.step(model.start(3), *inputs),
                            loaded.step(loaded.start(3), *inputs)):
        assert torch.equal(mine, theirs)
    assert loaded.card == {'command': 'nerd-ros train', 'seed': 3}


def test_a_layout_survives_the_card(layout):
    assert RobotLayout.from_dict(yaml.safe_load(yaml.safe_dump(layout.to_dict()))) == layout


def test_another_robot_is_refused_with_what_differs(model, folder):
    joint = replace(model.layout.joints[0], effort_limit=9.0)
    other = replace(model.layout, dt=0.02, joints=(joint, *model.layout.joints[1:]))
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(folder, other)
    text = str(error.value)
    assert f'dt: {model.layout.dt} against 0.02' in text
    assert f'joint {joint.name}, effort_limit' in text


def test_another_kinematic_tree_is_refused(model, folder):
    with pytest.raises(CheckpointError, match='kinematic tree'):
        load_checkpoint(folder, replace(model.layout, fingerprint='c' * 64))


def spoil_card(change):
    def spoil(folder):
        card = yaml.safe_load((folder / 'model.yaml').read_text())
        change(card)
        (folder / 'model.yaml').write_text(yaml.safe_dump(card))
    return spoil


def change_field(data, field, value):
    *path, last = (int(part) if part.isdigit() else part for part in field.split('.'))
    for part in path:
        data = data[part]
    data[last] = value


def spoil_weights(change):
    def spoil(folder):
        weights = load_file(folder / 'model.safetensors')
        change(weights)
        save_file(weights, folder / 'model.safetensors')
    return spoil


SPOILED = {
    'no card': (lambda f: (f / 'model.yaml').unlink(), 'model.yaml: no such file'),
    'no weights': (lambda f: (f / 'model.safetensors').unlink(), 'safetensors: no such file'),
    'not YAML': (lambda f: (f / 'model.yaml').write_text('a: [b'), 'not a YAML file.*copy, or tr'),
    'binary card': (lambda f: (f / 'model.yaml').write_bytes(b'\xff\xfe\x00'), 'not a YAML file'),
    'not a card': (lambda f: (f / 'model.yaml').write_text('- 1'),
                   'not a model card: it has no format_version; take it from a copy, or train'),
    'cut weights': (lambda f: (f / 'model.safetensors').write_bytes(
        (f / 'model.safetensors').read_bytes()[:-100]), 'not a safetensors file'),
    'pickle': (lambda f: torch.save({'a': torch.ones(2)}, f / 'model.safetensors'),
               'not a safetensors file'),
    'future version': (spoil_card(lambda c: c.update(format_version=99)), 'format_version 99.*up'),
    'no layout': (spoil_card(lambda c: c.pop('layout')), 'it has no layout; take it from a'),
    'no network': (spoil_card(lambda c: c.pop('network')), 'it has no network'),
    'no dt': (spoil_card(lambda c: c['layout'].pop('dt')), 'layout has no dt'),
    'network no mapping': (spoil_card(lambda c: c.update(network=[1])), r'network: .*got \[1\]'),
    'no heads': (spoil_card(lambda c: c['network'].update(heads=0)), 'network: heads 0'),
    'negative width': (spoil_card(lambda c: c['network'].update(width=-96)), 'width -96'),
    'huge width': (spoil_card(lambda c: c['network'].update(width=10**9)), 'width 1000000000'),
    'no spans': (spoil_card(lambda c: c['network'].update(spans=[0, 0, 0])), 'network: spans'),
    'unknown size': (spoil_card(lambda c: c['network'].update(depth=3)), 'network.depth: '),
    'unknown field': (spoil_card(lambda c: c['layout']['joints'][0].update(color=3)),
                      'layout.joints.0.color: '),
    'fingerprint': (spoil_card(lambda c: c['layout'].update(fingerprint=1)),
                    'layout.fingerprint: .*got 1'),
    **{f'{field} {value}': (
        spoil_card(lambda c, field=field, value=value: change_field(c['layout'], field, value)),
        f'layout.{field}: .*, got {value!r}; take it from a copy')
       for field in ('dt', 'contact_threshold', 'joints.1.effort_limit', 'slots.0.radius',
                     'slots.0.ring') for value in (-1, float('nan'), 2e6)},
    'limit NaN': (spoil_card(lambda c: change_field(c['layout'], 'joints.1.upper', float('nan'))),
                  'layout.joints.1.upper: .*got nan'),
    'limits swapped': (spoil_card(lambda c: change_field(c['layout'], 'joints.1.upper', -7)),
                       'layout.joints.1: upper -7 is below lower -1'),
    'no name': (spoil_card(lambda c: c['layout'].update(robot='')), "layout.robot: .*got ''"),
    'number as name': (spoil_card(lambda c: c['layout'].update(robot=7)), 'layout.robot: .*got 7'),
    'no list': (spoil_card(lambda c: c['layout'].update(joints=8.0)),
                'layout.joints: Input should be a list, got 8.0'),
    'joint type': (spoil_card(lambda c: c['layout']['joints'][1].update(type='rope')),
                   "layout.joints.1.type: .*got 'rope'"),
    'slot radius': (spoil_card(lambda c: c['layout']['slots'][0].update(radius='big')),
                    "layout.slots.0.radius: .*got 'big'"),
    'slot point': (spoil_card(lambda c: c['layout']['slots'][2].update(point=[0, 'x', 0])),
                   "layout.slots.2.point.1: .*got 'x'"),
    'short slot point': (spoil_card(lambda c: c['layout']['slots'][0].update(point=[0, 0])),
                         'layout.slots.0.point has no item 2'),
    'odd width': (spoil_card(lambda c: c['network'].update(width=31)), 'width 31'),
    'other width': (spoil_card(lambda c: c['network'].update(width=64)),
                    r'do not belong to model.yaml .* has the shape \[32, .*, not \[64, .*copy'),
    'missing tensor': (spoil_weights(lambda w: w.pop('token_mean')),
                       'do not belong to model.yaml beside them: token_mean is missing; take'),
    'unknown tensor': (spoil_weights(lambda w: w.update(extra=w['token_mean'].clone())),
                       'extra is no part of this model'),
    'NaN': (spoil_weights(lambda w: w['token_mean'].fill_(float('nan'))),
            'token_mean holds a value that is not finite.*take it from a copy, or train'),
    'huge normaliser': (spoil_weights(lambda w: w['token_mean'].fill_(1e30)),
                        'token_mean .* beyond 1e'),
    'huge weight': (spoil_weights(lambda w: w['network.embed.weight'].mul_(1e30)),
                    'network.embed.weight .* beyond 1e'),
    'no scale': (spoil_weights(lambda w: w['token_std'].zero_()), 'token_std .* not above 0'),
}


@pytest.mark.parametrize('case', SPOILED)
def test_a_spoiled_model_gives_one_clear_error(folder, case):
    spoil, message = SPOILED[case]
    spoil(folder)
    with pytest.raises(CheckpointError, match=message) as error:
        load_checkpoint(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize('name', ['model.yaml', 'missing', 'a\0b', 'x' * 5000],
                         ids=['file', 'missing', 'null byte', 'long'])
def test_what_is_no_folder_is_refused(folder, name):
    with pytest.raises(CheckpointError, match='is not a folder') as error:
        load_checkpoint(folder / name)
    assert str(error.value).isprintable() and len(str(error.value)) < 1200
