# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The simulation of the node, with the model that is in use; without ROS as well."""

from collections.abc import Callable

from nerd_ros.learning.store.model_store import ModelStore, SHIPPED
from nerd_ros.learning.store.store_files import store_root, StoreError
from nerd_ros.resources import find_named


def start_simulation(robot: str, world: str, solver: str, model: str, store: str,
                     warn: Callable[[str], None], **options):
    """
    Return a Simulation, its ModelStore and the name of its learned model, '' without one.

    `model` is a version of the store, a path, or '' for the version in use; where that cannot be
    used, the shipped one takes its place, and `warn` is called. `options` are those of Simulation.
    Raises ValueError, in one sentence, for a simulation that cannot be.
    """
    # Newton takes seconds to import; a wrong argument is told before.
    find_named('config/robots', robot, '.yaml')
    if world:
        find_named('worlds', world, '.sdf')
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    from nerd_ros.scene.simulation import Simulation
    spec = RobotSpec.load(robot)
    models = ModelStore(store_root(store), spec.name)

    def simulation(folder=None):
        return Simulation(spec, world or None, solver, folder, **options)
    if solver != 'neural':
        return simulation(), models, ''
    from nerd_ros.dynamics.checkpoint import CheckpointError
    wanted = model or models.active
    if wanted != SHIPPED:
        try:
            name, folder = models.find(wanted)
            return simulation(folder), models, name
        except (CheckpointError, StoreError) as error:
            if model:
                raise
            warn(f'the shipped model is used, since the one in use cannot be: {error}')
    # Where none ships, Simulation says what to do.
    return simulation(), models, SHIPPED
