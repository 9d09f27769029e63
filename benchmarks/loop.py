# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Rate, jitter and step cost of the simulator node, view and all topics on.

The node runs in this process, as `sim_node` runs it; a second process subscribes to
`joint_states`. Lateness is the time from a step's deadline to its begin, which is when the state
before it is published; interval is the time between two begins; arrival interval is the same as
seen by the subscriber, whose own delays are in it. The bounds are meant for a machine with nothing
else to do, so what other processes took in the meantime is printed. `--check` exits 1 when at
real-time factor 1 the factor is off by more than 1 %, or the 99th percentile of lateness or of the
error of the interval is 1 ms or more.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
from queue import Empty
import sys
import time

import numpy as np

FACTOR_BOUND = 0.01
JITTER_BOUND = 1e-3  # [s]


def main() -> int:
    """Measure, print, and compare with the bounds if asked to; returns the exit code."""
    arguments = parse_arguments()
    keep_to_oneself()
    print(machine())
    print(f'robot {arguments.robot}, world {arguments.world}, solver {arguments.solver}, '
          f'view {"on" if arguments.gui else "off"}, {arguments.seconds:g} s each')
    context = multiprocessing.get_context('spawn')
    queue, stop = context.Queue(), context.Event()
    listener = context.Process(target=listen, args=(queue, stop), daemon=True)
    simulator = create_simulator(**{name: getattr(arguments, name) for name in (
        'robot', 'world', 'solver', 'gui')})
    try:
        listener.start()
        queue.get(timeout=30.0)
        simulator.start()
        # The view builds its scene and the subscriber is discovered.
        time.sleep(20.0 if arguments.gui else 3.0)
        before = cpu_time_of_others()
        real_time, ok = measure_real_time(simulator, arguments.seconds)
        others = (cpu_time_of_others() - before) / arguments.seconds
        print(f'other processes took {max(0.0, others):.2f} cores')
        stop.set()
        print_rows([*real_time, arrival_row(queue.get(timeout=30.0), simulator.simulation.dt,
                                            arguments.seconds)])
        print_fastest(simulator, arguments.seconds)
    finally:
        simulator.close()
        listener.join(5.0)
    if arguments.check and not ok:
        print('missed: real-time factor within 1 % of 1, lateness and interval error below 1 ms '
              'in 99 % of steps')
        return 1
    return 0


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--robot', default='double_pendulum')
    parser.add_argument('--world', default='', help='by default the one of the robot')
    parser.add_argument('--solver', default='neural')
    parser.add_argument('--seconds', type=float, default=10.0, help='length of each measurement')
    parser.add_argument('--gui', action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument('--check', action='store_true', help='exit 1 when a bound is missed')
    return parser.parse_args()


def keep_to_oneself() -> None:
    """Let no node of this process or its children talk to those of others."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 101))


def create_simulator(**values):
    """Return the node's simulator with parameters `values`, not yet started."""
    import rclpy
    from nerd_ros.nodes.parameters import declare_parameters
    from nerd_ros.nodes.sim_node import SimNode
    rclpy.init(args=['--ros-args', *(word for name, value in values.items()
                                     for word in ('-p', f'{name}:={json.dumps(value)}'))])
    node = rclpy.create_node('nerd_sim')
    return SimNode(node, declare_parameters(node))


def speed_on_one_core(robot: str, world: str, solver: str, limits: list[float],
                      seconds: float, heard: bool) -> tuple[float, float]:
    """
    Return simulated time over CPU time, and over wall time, of a node that has one core.

    It runs without view as fast as it can, while a process on the other cores sends it random
    efforts within `limits` [N m, N] and, with `heard`, hears all that it publishes.
    """
    keep_to_oneself()
    context, cores = multiprocessing.get_context('spawn'), sorted(os.sched_getaffinity(0))
    queue, stop = context.Queue(), context.Event()
    node = context.Process(target=run_node, args=(queue, robot, world, solver, seconds))
    player = context.Process(target=play, args=(stop, limits, heard), daemon=True)
    try:
        for process, own in ((node, cores[:1]), (player, cores[1:] or cores)):
            os.sched_setaffinity(0, own)  # which a child takes over
            process.start()
        while node.is_alive():
            with contextlib.suppress(Empty):
                return queue.get(timeout=1.0)
        return queue.get(timeout=1.0)
    finally:
        os.sched_setaffinity(0, cores)
        stop.set()
        for process in (player, node):
            process.join(10.0)


def run_node(queue, robot: str, world: str, solver: str, seconds: float) -> None:
    """Run a node and tell how fast it was; the body of a process."""
    simulator = create_simulator(robot=robot, world=world, solver=solver, real_time_factor=0.0)
    simulator.start()
    time.sleep(5.0)  # until the two know of each other
    mark, cpu, begin = simulator.loop.mark(), time.process_time(), time.perf_counter()
    time.sleep(seconds)
    timing, cpu = simulator.loop.timing_since(mark), time.process_time() - cpu
    simulated = timing.real_time_factor * (time.perf_counter() - begin)
    simulator.close()
    queue.put((simulated / cpu, timing.real_time_factor))


def play(stop, limits: list[float], hear: bool) -> None:
    """Command efforts, and maybe hear all that a node publishes; the body of a process."""
    import rclpy
    from nav_msgs.msg import Odometry
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rosgraph_msgs.msg import Clock
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray
    from tf2_msgs.msg import TFMessage
    from visualization_msgs.msg import MarkerArray
    rclpy.init()
    node, rng = rclpy.create_node('player'), np.random.default_rng(0)
    # As the time source, the TF listener and others subscribe.
    clock = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    for message_type, topic, qos in ((Clock, '/clock', clock), (TFMessage, '/tf', 100),
                                     (JointState, 'joint_states', 10), (Odometry, 'odom', 10),
                                     (MarkerArray, 'obstacles', 10)) if hear else ():
        node.create_subscription(message_type, topic, lambda data: None, qos, raw=True)
    efforts = node.create_publisher(Float64MultiArray, 'effort_controller/commands', 10)
    node.create_timer(0.02, lambda: efforts.publish(Float64MultiArray(
        data=rng.uniform(-1.0, 1.0, len(limits)) * limits)))
    while not stop.is_set():
        rclpy.spin_once(node, timeout_sec=0.1)


def measure_real_time(simulator, seconds: float) -> tuple[list, bool]:
    """Rows of the table at real-time factor 1, and whether the bounds are met."""
    timing, dt = measure(simulator.loop, seconds), simulator.simulation.dt
    error = np.abs(np.diff(timing.begins) - dt)
    ok = (abs(timing.real_time_factor - 1.0) <= FACTOR_BOUND
          and np.percentile(timing.lateness, 99) < JITTER_BOUND
          and np.percentile(error, 99) < JITTER_BOUND)
    print(f'real-time factor {timing.real_time_factor:.4f} at {1 / dt:g} Hz')
    return [('lateness', timing.lateness), ('error of interval', error),
            ('cost of a step', timing.cost)], ok


def measure(loop, seconds: float):
    """Timing of all steps of the next `seconds`: slices of a length that the loop remembers."""
    from nerd_ros.nodes.loop import Timing, TIMING_STEPS
    begin = mark = loop.mark()
    parts, end = [], time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.0:
        time.sleep(min(left, loop.dt * TIMING_STEPS / 2))
        parts.append(loop.timing_since(mark))
        mark = parts[-1].mark
    joined = (np.concatenate([getattr(part, name) for part in parts])
              for name in ('lateness', 'cost', 'begins'))
    return Timing(loop.timing_since(begin).real_time_factor, *joined, mark)


def print_fastest(simulator, seconds: float) -> None:
    """Let the simulation run as fast as it can and print how fast that is."""
    simulator.loop.real_time_factor = 0.0
    time.sleep(0.5)
    mark, cpu = simulator.loop.mark(), time.process_time()
    time.sleep(seconds)
    timing, cpu = simulator.loop.timing_since(mark), time.process_time() - cpu
    print(f'as fast as it can: {timing.real_time_factor:.1f} times real time, '
          f'{cpu / seconds:.2f} cores')


def arrival_row(arrivals: np.ndarray, dt: float, seconds: float) -> tuple[str, np.ndarray]:
    """Row of the table on how evenly messages arrived in the last `seconds`."""
    recent = arrivals[arrivals > arrivals[-1] - seconds]
    return 'error of arrival interval', np.abs(np.diff(recent) - dt)


def print_rows(rows: list) -> None:
    """Print percentiles of figures in s, in ms."""
    print(f'{"[ms]":28}{"p50":>9}{"p99":>9}{"max":>9}')
    for name, seconds in rows:
        p50, p99, worst = np.percentile(seconds, (50, 99, 100)) * 1e3
        print(f'{name:28}{p50:9.3f}{p99:9.3f}{worst:9.3f}')


def listen(queue, stop) -> None:
    """Note when joint states arrive; the body of the second process."""
    import rclpy
    from sensor_msgs.msg import JointState
    rclpy.init()
    node, arrivals = rclpy.create_node('listener'), []
    node.create_subscription(
        JointState, 'joint_states', lambda message: arrivals.append(time.perf_counter()), 10)
    queue.put('ready')
    while not stop.is_set():
        rclpy.spin_once(node, timeout_sec=0.1)
    queue.put(np.array(arrivals))


def cpu_time_of_others() -> float:
    """Return the CPU time of all but this process and its children so far [s]; 0 off Linux."""
    try:
        with open('/proc/stat', encoding='utf-8') as file:
            user, nice, system = (int(v) for v in file.readline().split()[1:4])
    except OSError:
        return 0.0
    ours = sum(os.times()[:2]) * os.sysconf('SC_CLK_TCK')
    for child in multiprocessing.active_children():
        with open(f'/proc/{child.pid}/stat', encoding='utf-8') as file:
            ours += sum(int(v) for v in file.read().rsplit(')', 1)[1].split()[11:13])
    return (user + nice + system - ours) / os.sysconf('SC_CLK_TCK')


def machine() -> str:
    """Return a line on the machine and what it is doing."""
    return (f'{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before; '
            f'Python {platform.python_version()}, {platform.system()} {platform.release()}')


def processor() -> str:
    """Return the name of the processor."""
    try:
        with open('/proc/cpuinfo', encoding='utf-8') as file:
            return next(line.split(':', 1)[1].strip() for line in file if 'model name' in line)
    except (OSError, StopIteration):
        return platform.machine()


if __name__ == '__main__':
    sys.exit(main())
