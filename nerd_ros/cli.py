# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The command `nerd-ros`; what a command needs is imported when it runs, to answer at once."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
import json
import os
from pathlib import Path
import shlex
import shutil
import subprocess
import sys
from tempfile import TemporaryFile
from typing import Annotated, Optional

import typer

from nerd_ros.arguments import ArgumentError, NAMESPACE, read_arguments, PARAMETERS
from nerd_ros.resources import resource_path

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help='Learn the dynamics of a robot from its URDF, and simulate it.')

data_app = typer.Typer(no_args_is_help=True, help='Look into trajectory files.')
app.add_typer(data_app, name='data')

bag_app = typer.Typer(no_args_is_help=True, help='Recordings of the real robot.')
app.add_typer(bag_app, name='bag')

models_app = typer.Typer(help='Models that came of recordings: which there are, which is in use.')
app.add_typer(models_app, name='models')

Robot = Annotated[str, typer.Option(help='Robot of the package, or path of a RobotSpec (YAML).')]
Seed = Annotated[int, typer.Option(help='Seed of all that is random.')]
Model = Annotated[Optional[Path], typer.Option(
    help='Folder of the model; by default the one that ships for the robot.')]
Store = Annotated[str, typer.Option(
    help='Folder of the store; by default that of the user, as of the simulator.')]
Namespace = Annotated[str, typer.Option(help='Namespace of the simulator.')]
Version = Annotated[str, typer.Argument(
    help='Version of a model, or `shipped` for the one of the package.')]
States = Annotated[str, typer.Option(
    help='JointState topics of the states in a bag, joined by commas; by default found.')]
Commands = Annotated[str, typer.Option(
    help='Topic of the commanded efforts in a bag; by default found.')]
Base = Annotated[str, typer.Option(
    help='Topic of the pose of a floating base in a bag, for TFMessage TOPIC:FRAME; by default '
    'found.')]


@app.command()
def init(
        urdf: Annotated[Path, typer.Argument(help='URDF or xacro of the robot.')],
        output: Annotated[Optional[Path], typer.Option(
            help='Robot file to write; by default <name of the URDF>.yaml, here.')] = None,
        floating: Annotated[Optional[bool], typer.Option(
            '--floating/--fixed',
            help='Whether the base moves freely; by default a guess.')] = None,
        dt: Annotated[float, typer.Option(help='Time of one step of the model, in s.')] = 0.005,
        force: Annotated[bool, typer.Option(
            '--force', help='Overwrite a file that exists.')] = False):
    """Write the robot file (RobotSpec) of a URDF, with a comment on every choice."""
    from nerd_ros.learning.new_robot.robot_file import write_robot_file
    _check_folder((output or Path()).parent)
    path = write_robot_file(urdf, output, floating, dt, force)
    print(f'{path} is written; look through it, then: nerd-ros generate --robot {path}')


@app.command()
def generate(
        robot: Robot = 'double_pendulum',
        output: Annotated[Optional[Path], typer.Option(
            help='Trajectory file; by default data/<robot>.h5.')] = None,
        count: Annotated[int, typer.Option(help='Number of trajectories.')] = 60_000,
        seed: Seed = 0,
        processes: Annotated[int, typer.Option(
            help='Processes that roll out side by side.')] = os.cpu_count()):
    """Roll out the teacher from random states under random efforts; goes on where it stopped."""
    from nerd_ros.learning.data.generate import generate as run
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    spec = RobotSpec.load(robot)
    path = output or Path('data', f'{spec.name}.h5')
    _check_folder(path.parent)
    try:
        run(spec, path, count, seed, processes, command=_command())
    except KeyboardInterrupt:
        print(f'stopped; the same command goes on with {path}')
        raise typer.Exit(130) from None
    print(f'{count} trajectories in {path}')


@data_app.command('show')
def show_data(
        file: Annotated[Path, typer.Argument(help='Trajectory file of `generate`.')],
        output: Annotated[Path, typer.Option(help='Folder of the picture.')] = Path('runs')):
    """Print and draw what a trajectory file covers, input by input."""
    from nerd_ros.learning.data.coverage_report import show
    _check_folder(output)
    show(file, output)


@app.command()
def train(
        robot: Robot = 'double_pendulum',
        data: Annotated[Optional[Path], typer.Option(
            help='Trajectory file of `generate`; by default data/<robot>.h5.')] = None,
        output: Annotated[Optional[Path], typer.Option(
            help='Folder of model and training state; by default runs/<robot>.')] = None,
        steps: Annotated[int, typer.Option(help='Batches to train for.')] = 30_000,
        batch: Annotated[int, typer.Option(help='Trajectories of a batch.')] = 16,
        width: Annotated[int, typer.Option(help='Width of the network.')] = 96,
        start: Annotated[Optional[Path], typer.Option(
            help='Folder of a model to refine, at a lower learning rate; then it learns '
                 'the speeds of rest as well.')] = None,
        device: Annotated[str, typer.Option(help='What to train on, cpu or cuda.')] = 'cpu',
        seed: Seed = 0):
    """
    Train a model on trajectories; goes on where it stopped.

    `torchrun --nproc-per-node 2 -m nerd_ros.cli train ...` trains it with two processes, each of
    which takes its share of every batch; with --device cuda each has a GPU of its own.
    `tensorboard --logdir runs` shows how it goes.
    """
    from nerd_ros.learning.training.train import train as run
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    spec = RobotSpec.load(robot)
    folder = output or Path('runs', spec.name)
    _check_folder(folder)
    try:
        run(spec, data or Path('data', f'{spec.name}.h5'), folder, steps=steps, batch=batch,
            width=width, start=start, device=device, seed=seed, command=_command())
    except KeyboardInterrupt:
        print(f'stopped; the same command goes on with {folder}')
        raise typer.Exit(130) from None
    if os.environ.get('RANK', '0') == '0':   # of torchrun, which starts several
        print(f'the best model is in {folder}')


@app.command()
def evaluate(
        robot: Robot = 'double_pendulum',
        model: Model = None,
        bag: Annotated[Optional[list[Path]], typer.Option(
            help='Recording of the real robot to compare with, instead of the teacher; may be '
            'given more than once.')] = None,
        effort: Annotated[str, typer.Option(
            help='With --bag: the effort to apply, commanded or measured.')] = 'commanded',
        states: States = '',
        commands: Commands = '',
        base: Base = '',
        count: Annotated[int, typer.Option(
            help='Rollouts in each condition; the published tables have 2048.')] = 256,
        seed: Seed = 1,
        output: Annotated[Path, typer.Option(help='Folder of the picture.')] = Path('runs'),
        write_card: Annotated[bool, typer.Option(
            '--write-card', help='Write the figures into the card of --model.')] = False,
        view: Annotated[bool, typer.Option(
            '--view', help='Measure nothing: play model and teacher side by side in the browser.'
        )] = False):
    """Compare a model with its teacher, or with recordings of the real robot."""
    if view:
        from nerd_ros.learning.evaluation.side_by_side import side_by_side
        player = side_by_side(robot, model, seed)
        print(f'Model and teacher can be seen at {player.url}; stop with Ctrl-C', flush=True)
        player.play()
        return
    _check_folder(output)
    if bag:
        from nerd_ros.learning.bags.evaluate_bag import evaluate_bag
        from nerd_ros.learning.bags.bag_topics import Topics
        evaluate_bag(robot, bag, model, effort=effort, topics=Topics(states, commands, base),
                     output=output)
    else:
        from nerd_ros.learning.evaluation.evaluate import evaluate as run
        run(robot, model, count=count, seed=seed, output=output, write_card=write_card)


@app.command()
def finetune(
        paths: Annotated[Optional[list[Path]], typer.Argument(
            metavar='[BAG]...', show_default=False,
            help='Recordings to learn from; by default all that were uploaded.')] = None,
        robot: Robot = 'double_pendulum',
        bag: Annotated[Optional[list[str]], typer.Option(
            help='Name of an uploaded recording to learn from; may be given more than once.'
        )] = None,
        base: Annotated[str, typer.Option(
            help='Model to start from: a version or a folder; by default the one in use.')] = '',
        effort: Annotated[str, typer.Option(
            help='The effort that drives the model, commanded or measured.')] = 'commanded',
        time_limit: Annotated[float, typer.Option(help='Time of the training, in s.')] = 240.0,
        seed: Seed = 0,
        world: Annotated[str, typer.Option(
            help='World of the package, or SDF file, that the robot was recorded in.')] = 'empty',
        states: States = '',
        commands: Commands = '',
        base_topic: Base = '',
        base_link: Annotated[str, typer.Option(
            help='Link of a floating base whose pose is in the bag; by default the root.')] = '',
        output: Annotated[Optional[Path], typer.Option(
            help='New folder for the model, instead of the store.')] = None,
        store: Store = '',
        activate: Annotated[bool, typer.Option(
            '--activate/--no-activate', help='Use the model from now on if it is better.')] = True,
        namespace: Namespace = '',
        as_json: Annotated[bool, typer.Option(
            '--json', help='Print progress and result as lines of JSON, and tell no simulator.'
        )] = False,
        until_input_ends: Annotated[bool, typer.Option(hidden=True)] = False):
    """Let a model learn from recordings of the real robot, and say whether it is better."""
    if until_input_ends:   # of the simulator that started this
        from nerd_ros.learning.helper_process import end_with_input
        end_with_input()
    from nerd_ros.learning.finetuning.command import finetune_and_keep, recordings
    from nerd_ros.learning.finetuning.progress import line_of
    from nerd_ros.learning.finetuning.terminal import progress_bar, show_result
    from nerd_ros.learning.bags.bag_topics import Topics
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    _check_namespace(namespace)
    if output is not None:
        _check_folder(output.absolute().parent)
    spec, models = RobotSpec.load(robot), _model_store(robot, store)
    bags = recordings(_bag_store(robot, store), paths or (), bag or ())

    def tell(told):
        print(line_of(told), flush=True)
    with nullcontext(tell) if as_json else progress_bar() as report:
        try:
            kept = finetune_and_keep(
                spec, bags, models, output, base=base, activate=activate, report=report,
                topics=Topics(states, commands, base_topic), base_link=base_link, world=world,
                effort=effort, time_limit=time_limit, seed=seed, command=_command())
        except KeyboardInterrupt:
            print('stopped; nothing is kept', file=sys.stderr)
            raise typer.Exit(130) from None
    if as_json:
        tell(kept)
        return
    show_result(kept)
    if kept.activated:
        _tell_simulator(spec.name, kept.version, namespace)


@bag_app.command()
def upload(
        bag: Annotated[Path, typer.Argument(help='Folder or file of the recording.')],
        name: Annotated[Optional[str], typer.Option(
            help='Name to keep it under; by default that of the folder or file.')] = None,
        namespace: Namespace = '',
        by_path: Annotated[Optional[bool], typer.Option(
            '--copy/--chunks', show_default='copy where the simulator sees the path',
            help='Let the simulator copy it, or send it to another machine.')] = None):
    """Hand a recording to the running simulator; goes on where it stopped."""
    _needs_ros('nerd-ros bag upload')
    from nerd_ros.nodes.upload_client import upload as run
    _check_namespace(namespace)
    try:
        print(run(bag, name, namespace, by_path))
    except KeyboardInterrupt:
        print('stopped; the same command goes on where it stopped')
        raise typer.Exit(130) from None


@bag_app.command('info')
def show_bag(
        bags: Annotated[list[Path], typer.Argument(
            metavar='BAG...', help='Recordings: folders of rosbag2, or .mcap, .db3, .bag files.')],
        robot: Robot = 'double_pendulum',
        states: States = '',
        commands: Commands = '',
        base: Base = '',
        output: Annotated[Path, typer.Option(help='Folder of the pictures.')] = Path('runs'),
        as_json: Annotated[bool, typer.Option(
            '--json', help='Print a line of JSON for each and draw nothing.')] = False):
    """Print and draw what is usable of recordings for a robot, what was dropped and why."""
    from nerd_ros.learning.bags.bag_info import bag_info
    from nerd_ros.learning.bags.bag_topics import Topics
    if not as_json:
        _check_folder(output)
    failed = bag_info(robot, bags, Topics(states, commands, base),
                      output=None if as_json else output, as_json=as_json)
    if failed:
        raise typer.Exit(1)


@bag_app.command('list')
def list_bags(robot: Robot = 'double_pendulum', store: Store = ''):
    """List the recordings that were handed to the simulator."""
    from nerd_ros.learning.store.bags_report import bags_table
    from rich import print as show
    bags = _bag_store(robot, store)
    show(bags_table(bags.robot, bags.bags()))


@bag_app.command('remove')
def remove_bag(
        name: Annotated[str, typer.Argument(help='Name of the bag in the store.')],
        robot: Robot = 'double_pendulum', store: Store = ''):
    """Remove a recording from the store of the simulator."""
    _bag_store(robot, store).remove(name)
    print(f'bag {name} is removed')


@models_app.callback(invoke_without_command=True)
def models(context: typer.Context, robot: Robot = 'double_pendulum', store: Store = ''):
    """List the models of a robot, where no command is given."""
    if context.invoked_subcommand is None:
        list_models(robot, store)
    elif context.args or (robot, store) != ('double_pendulum', ''):
        raise ArgumentError(f'give options behind the command: nerd-ros models '
                            f'{context.invoked_subcommand} --help')


@models_app.command('list')
def list_models(robot: Robot = 'double_pendulum', store: Store = ''):
    """List the models of a robot, what they came of and how well they did."""
    from nerd_ros.learning.store.models_report import models_table
    from rich import print as show
    models = _model_store(robot, store)
    show(models_table(models.robot, models.versions()))


@models_app.command()
def compare(
        versions: Annotated[list[str], typer.Argument(metavar='VERSION...')],
        robot: Robot = 'double_pendulum', store: Store = ''):
    """Show models side by side, with their errors on the recordings that tested them."""
    from nerd_ros.learning.store.models_report import comparison_table
    from rich import print as show
    models = _model_store(robot, store)
    show(comparison_table([models.stored(version) for version in versions]))


@models_app.command()
def activate(version: Version, robot: Robot = 'double_pendulum', store: Store = '',
             namespace: Namespace = ''):
    """Use a model from now on, in the simulator that runs as well."""
    _check_namespace(namespace)
    models = _model_store(robot, store)
    models.activate(version)
    _tell_simulator(models.robot, version, namespace)


@models_app.command('roll-back')
def roll_back(robot: Robot = 'double_pendulum', store: Store = '', namespace: Namespace = ''):
    """Use the model again that was in use before."""
    _check_namespace(namespace)
    models = _model_store(robot, store)
    _tell_simulator(models.robot, models.roll_back(), namespace)


@models_app.command('remove')
def remove_model(version: Version, robot: Robot = 'double_pendulum', store: Store = ''):
    """Remove a model that is not in use."""
    _model_store(robot, store).remove(version)
    print(f'model {version} is removed')


@app.command()
def sim(arguments: Annotated[Optional[list[str]], typer.Argument(
        metavar='[NAME:=VALUE]...', show_default=False,
        help='robot, world, solver, model, namespace, gui, rviz, headless: as of sim.launch.py, '
        'but with gui:=true by default.')] = None):
    """Simulate, as a ROS 2 node where there is ROS 2; stop with Ctrl-C."""
    values = read_arguments(arguments or (), gui='true')
    if find_spec('rclpy') is None:
        from nerd_ros.nodes.without_ros import simulate
        raise typer.Exit(simulate(
            *(values[name] for name in PARAMETERS[:-1]), gui=values['gui'] == 'true'))
    with _rviz(values['namespace']) if values['rviz'] == 'true' else nullcontext():
        from nerd_ros.nodes.sim_node import main as run
        raise typer.Exit(run(['nerd-ros', *node_arguments(values)]))


def node_arguments(values: dict[str, str]) -> list[str]:
    """Return the command line of sim_node for the arguments of a simulation."""
    words = ['--ros-args']
    for name in PARAMETERS:
        # Quoted, since ROS reads values as YAML; gui is the one that is no text.
        text = values[name] if name == 'gui' else json.dumps(values[name])
        words += ['-p', f'{name}:={text}']
    if values['namespace']:
        words += ['-r', f'__ns:=/{values["namespace"].strip("/")}']
    return words


def main() -> None:
    """Run the command line; errors of the user's are one sentence."""
    try:
        app()
    except ValueError as error:
        sys.exit(f'nerd-ros: {error}')
    except OSError as error:
        sys.exit(f'nerd-ros: {error.filename}: {error.strerror}.' if error.filename
                 else f'nerd-ros: {error}')


def _check_folder(folder: Path) -> None:
    """Refuse, before the work, a folder that no result can be written into; leaves none behind."""
    missing = [place for place in (folder, *folder.parents) if not os.path.exists(place)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except FileExistsError:
        raise ArgumentError(f'{folder} is a file where --output needs a folder; choose another '
                            'place.') from None
    except OSError as error:
        raise ArgumentError(f'{folder}: nothing can be written there: {error.strerror}; choose '
                            'another place.') from None
    finally:
        with suppress(OSError):
            for place in missing:
                place.rmdir()


@contextmanager
def _rviz(namespace: str) -> Iterator[None]:
    """Show RViz beside what is done within."""
    if shutil.which('rviz2') is None:
        raise ArgumentError('rviz:=true needs RViz, which comes with a ROS 2 desktop; '
                            'gui:=true shows the scene in a browser.')
    rviz = subprocess.Popen([
        'rviz2', '-d', resource_path('config', 'rviz', 'nerd_ros.rviz'),
        '--ros-args', '-p', 'use_sim_time:=true',
        *(['-r', f'__ns:=/{namespace.strip("/")}'] if namespace else [])])
    try:
        yield
    finally:
        rviz.terminate()


def _model_store(robot: str, store: str):
    from nerd_ros.learning.store.model_store import ModelStore
    from nerd_ros.learning.store.store_files import store_root
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    return ModelStore(store_root(store), RobotSpec.load(robot).name)


def _bag_store(robot: str, store: str):
    """Return a store to look into, which takes no bags."""
    from nerd_ros.learning.store.bag_store import BagStore
    from nerd_ros.learning.store.store_files import store_root
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    return BagStore(store_root(store), RobotSpec.load(robot).name, check=None)


def _tell_simulator(robot: str, version: str, namespace: str) -> None:
    """Say that a model is in use now, and swap that of the simulator that runs."""
    print(f'model {version} of {robot} is in use from now on', flush=True)
    if find_spec('rclpy') is not None:
        from nerd_ros.nodes.model_client import swap_model
        print(swap_model(robot, version, namespace))


def _check_namespace(namespace: str) -> None:
    if not NAMESPACE.fullmatch(namespace):
        raise ArgumentError(f'--namespace {namespace} is not possible; a namespace is made of '
                            'letters, digits and underscores, in parts that begin with no digit '
                            'and are joined by /.')


def _needs_ros(command: str) -> None:
    if find_spec('rclpy') is None:
        raise ArgumentError(f'{command} needs ROS 2, and there is none here; README.md says for '
                            'which machines there are wheels of it.')


def _command() -> str:
    """Return the command line as typed, for the card of what it makes."""
    return shlex.join(['nerd-ros', *sys.argv[1:]])


if __name__ == '__main__':
    main()
