# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The parameter `model` at run time: another learned model for the running simulation."""

from collections.abc import Callable

from rcl_interfaces.msg import SetParametersResult

from nerd_ros.learning.store.model_store import ModelStore


class RunningModel:
    """
    Swaps the learned model of `simulation` when the parameter `model` of `node` is set.

    A model is loaded, in the thread of the callbacks, before the value is accepted, and one that
    cannot be used refuses it; `loop` then goes on with it between two steps. An empty value is
    the version that is in use in `store` at that time. `changed` is called with its name.
    """

    def __init__(self, node, simulation, loop, store: ModelStore, changed: Callable[[str], None]):
        self._node, self._simulation, self._loop = node, simulation, loop
        self._store, self._changed = store, changed
        self._prepared = None
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._apply)

    def _check(self, parameters) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == 'model':
                try:
                    name, folder = self._store.find(parameter.value)
                    self._prepared = name, self._simulation.prepare_model(folder)
                except (ValueError, OSError) as error:
                    return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply(self, parameters) -> None:
        if all(parameter.name != 'model' for parameter in parameters):
            return
        name, prepared = self._prepared
        try:
            self._loop.call(lambda: self._simulation.set_model(prepared))
        except Exception as error:   # above all of a simulation that has stopped
            self._node.get_logger().error(f'model {name} is not used: {error!r}')
            return
        self._changed(name)
        self._node.get_logger().info(f'model {name} moves the robot from now on')
