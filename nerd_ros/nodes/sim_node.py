# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The simulator node `/nerd_sim`: wiring only.

The simulation runs in a thread of its own, callbacks in another, and the main thread waits for
signals. Everything that touches the simulation runs in its thread, between two steps.
"""

from dataclasses import asdict
import gc
import logging
import os
import signal
import sys
import threading
from typing import Callable

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import SetBool, Trigger

from nerd_ros.learning.store.model_store import ModelStore
from nerd_ros.nodes.commands import CommandSubscriptions, EffortCommands, WARNING_PERIOD
from nerd_ros.nodes.diagnostics import DiagnosticsPublisher
from nerd_ros.nodes.logs import RosLogHandler
from nerd_ros.nodes.loop import SimulationLoop
from nerd_ros.nodes.parameters import declare_parameters, SimParameters
from nerd_ros.nodes.published_state import PublishedState, RATES
from nerd_ros.nodes.running_model import RunningModel
from nerd_ros.nodes.start import start_simulation

# How long a thread may keep Python from the others: a step must not wait for a callback [s].
SWITCH_INTERVAL = 2e-4


class SimNode:
    """
    One simulation behind the topics and services of `node`.

    Services: `~/reset` (std_srvs/Trigger) puts robot and obstacles back to their start and
    forgets commands, so that the robot is without effort until the next one, while `/clock` goes
    on; `~/pause` (std_srvs/SetBool) holds steps and `/clock` back. When the guard resets the
    simulation, commands stay in effect: nobody asked for it. Raises ValueError, in one sentence,
    for a simulation that cannot be.
    """

    def __init__(self, node, parameters: SimParameters):
        self.node, self.parameters = node, parameters
        self.failed = False
        self.simulation, store, model = start_simulation(
            parameters.robot, parameters.world, parameters.solver, parameters.model,
            parameters.store, node.get_logger().warning,
            # A single robot steps faster here, and publishers keep views of its state.
            device='cpu', guard=parameters.guard)
        simulation = self.simulation
        self._facts = self._describe(model)
        self._dt_ns = simulation.dt * 1e9
        self._scores: list[float] = []  # of the steps since the last diagnostics
        self.commands = EffortCommands(
            simulation.dof_names, simulation.layout.effort_limits,
            parameters.command_timeout, parameters.timeout_reaction)
        self.loop = SimulationLoop(
            self._step, simulation.dt, parameters.real_time_factor, parameters.start_paused,
            on_failure=self._report_failure)
        self._finished = threading.Event()
        self._published = PublishedState(node, simulation, parameters)
        self._diagnostics = DiagnosticsPublisher(node, simulation, self.loop, self._facts)
        self._subscriptions = CommandSubscriptions(node, self.commands)
        node.create_service(Trigger, '~/reset', self._reset)
        node.create_service(SetBool, '~/pause', self._pause)
        self._learning = self._learning_servers(store)
        node.add_post_set_parameters_callback(self._apply_parameters)
        RunningModel(node, simulation, self.loop, store, self._tell_model)
        # Wall time: diagnostics go on while the simulation is paused.
        node.create_timer(1.0, self._each_second, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._viewer = None
        if parameters.gui:
            from nerd_ros.scene.viewer import ViewerProcess
            self._viewer = ViewerProcess(simulation, port=parameters.gui_port)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._callbacks = threading.Thread(target=self._spin, name='callbacks', daemon=True)

    def start(self) -> None:
        """Start the view, the callbacks and the simulation."""
        if self._viewer is not None:
            self._viewer.start()
        sys.setswitchinterval(SWITCH_INTERVAL)
        # What exists by now stays: collections need not look at it again and again.
        gc.collect()
        gc.freeze()
        self._callbacks.start()
        self.loop.start()

    def wait(self) -> None:
        """Return when the simulation has failed; a signal ends it by KeyboardInterrupt."""
        self._finished.wait()

    def close(self) -> None:
        """Stop the simulation, the view and the callbacks, within a second if all hang."""
        self._finished.set()
        self.loop.stop(timeout=0.3)
        for server in self._learning:
            server.close()
        if self._viewer is not None:
            self._viewer.stop()
        self._executor.shutdown(timeout_sec=0.1)
        if self._callbacks.is_alive():
            self._callbacks.join(0.1)

    def _describe(self, model: str) -> dict[str, str]:
        """Return what is simulated, for the diagnostics."""
        facts = {name: value for name, value in asdict(self.parameters).items()
                 if name in ('robot', 'solver', 'guard')}
        facts['world'] = self.parameters.world or self.simulation.spec.world
        return {**facts, 'model': model} if model else facts

    def _tell_model(self, model: str) -> None:
        self._facts['model'] = model

    def _learning_servers(self, models: ModelStore) -> list:
        try:
            from nerd_ros.nodes.fine_tuning import FineTuningServer
            from nerd_ros.nodes.upload import UploadServer
        except ModuleNotFoundError as error:
            self.node.get_logger().warning(
                'bags cannot be uploaded, nor learned from by fine_tune: '
                f'{error.name.partition(".")[0]} is not installed; `make setup` builds it, in a '
                'workspace `colcon build --base-paths src '
                'src/nerd_ros/interfaces/nerd_ros_interfaces`')
            return []
        return [UploadServer(self.node, self.simulation.spec.name, self.parameters),
                FineTuningServer(self.node, self.parameters, models)]

    def _step(self) -> None:
        """
        Publish the state whose time has come, then latch commands and step to the next.

        So topics are as even as the deadlines, however long a step takes. In the simulation's
        thread.
        """
        simulation, guard_events = self.simulation, self.simulation.guard_events
        self._published.publish(self._time_ns)
        if self._viewer is not None:
            self._viewer.publish()
        if self.commands.latch(simulation.time):
            simulation.set_effort(self.commands.effort)
        simulation.step()
        if simulation.guard_events > guard_events:
            self._go_on_after_guard()
        self._scores.append(simulation.score)

    @property
    def _time_ns(self) -> int:
        return round(self.simulation.steps * self._dt_ns)

    def _go_on_after_guard(self) -> None:
        """Tell of it, and command again, since a reset of the guard's drops the effort."""
        self.simulation.set_effort(self.commands.effort)
        self.node.get_logger().warning(
            f'guard: {self.simulation.last_guard_message}; reaction {self.parameters.guard} '
            f'({self.simulation.guard_events} times so far)',
            throttle_duration_sec=WARNING_PERIOD)

    def _reset(self, request, response):
        def reset():
            self.commands.clear()
            self.simulation.reset()
        return respond(response, lambda: self.loop.call(reset),
                       'the simulation is back at its start')

    def _pause(self, request, response):
        return respond(response, lambda: self.loop.pause(request.data),
                       'paused' if request.data else 'running')

    def _apply_parameters(self, changed) -> None:
        """Put parameters that were set at run time to use."""
        for parameter in changed:
            if not hasattr(self.parameters, parameter.name):
                continue
            setattr(self.parameters, parameter.name, parameter.value)
            if parameter.name in RATES:
                self._published.set_rate(parameter.name, parameter.value)
        self.loop.real_time_factor = self.parameters.real_time_factor
        self.commands.set_timeout(
            self.parameters.command_timeout, self.parameters.timeout_reaction)

    def _each_second(self) -> None:
        scores, self._scores = self._scores, []
        self._diagnostics.publish(self._time_ns, scores, self._subscriptions.refused)
        self._published.warn_of_others()

    def _report_failure(self) -> None:
        self.failed = True
        self.node.get_logger().fatal(f'the simulation stopped: {self.loop.failure!r}')
        self._finished.set()

    def _spin(self) -> None:
        """Run callbacks until `close`; an error in one must not end them all."""
        while not self._finished.is_set():
            try:
                self._executor.spin()
            except Exception as error:
                if not self._finished.is_set():
                    self.node.get_logger().error(f'a callback failed: {error!r}',
                                                 throttle_duration_sec=5.0)


def respond(response, action: Callable[[], None], done: str):
    """Do `action` and return the response of a service: `done`, or why it could not be done."""
    try:
        action()
        response.success, response.message = True, done
    except Exception as error:  # whatever it is, a client without a response waits for ever
        response.success = False
        response.message = f'not done: {str(error) or type(error).__name__}'
    return response


def main(args=None) -> int:
    """Run the node until SIGINT or SIGTERM; returns the exit code."""
    # Until it runs there is nothing to end in order, and an exception would be lost where an
    # import catches all of them, as those of trimesh do.
    _on_signals(lambda *_: os._exit(0))
    simulator = None
    try:
        try:
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
            node = rclpy.create_node('nerd_sim')
        except RuntimeError as error:  # of rcl: arguments or a parameter file it cannot read
            print(f'nerd_sim: {error}', file=sys.stderr)
            return 1
        logging.getLogger('nerd_ros').addHandler(RosLogHandler(node.get_logger()))
        simulator = _create(node)
        if simulator is None:
            return 1
        # An exception of the main thread from here on, so that threads and the view end in order.
        _on_signals(signal.default_int_handler)
        simulator.start()
        simulator.wait()
        return int(simulator.failed)
    except KeyboardInterrupt:
        return 0
    finally:
        # From here on it ends anyway; a second Ctrl-C would only leave a traceback.
        _on_signals(signal.SIG_IGN)
        if simulator is not None:
            simulator.close()
        rclpy.try_shutdown()


def _on_signals(handler) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _create(node) -> SimNode | None:
    """Return the simulator, or None after a line that says why there cannot be one."""
    try:
        parameters = declare_parameters(node)
        _refuse_sim_time(node)
        simulator = SimNode(node, parameters)
    except ValueError as error:
        node.get_logger().fatal(str(error))
        return None
    node.get_logger().info(_greeting(simulator))
    return simulator


def _refuse_sim_time(node) -> None:
    """Switch use_sim_time off: the node is the source of simulated time, not a follower."""
    if node.get_parameter('use_sim_time').value:
        node.get_logger().warning('use_sim_time is set to false here: this node publishes /clock; '
                                  'set it to true for all other nodes')
        node.set_parameters([Parameter('use_sim_time', value=False)])


def _greeting(simulator: SimNode) -> str:
    parameters, simulation = simulator.parameters, simulator.simulation
    speed = (f'real-time factor {parameters.real_time_factor:g}'
             if parameters.real_time_factor else 'as fast as it can')
    return (f'robot {parameters.robot}, world {parameters.world or simulation.spec.world}, '
            f'solver {parameters.solver}, {1 / simulation.dt:.0f} Hz, {speed}')


if __name__ == '__main__':
    sys.exit(main())
