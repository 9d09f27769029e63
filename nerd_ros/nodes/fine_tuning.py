# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The action `fine_tune`: a better model from uploaded bags, while the simulation goes on."""

from pathlib import Path
from threading import Thread

from nerd_ros_interfaces.action import FineTune
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.parameter import Parameter
from rclpy.task import Future

from nerd_ros.learning.finetuning.job import FineTuningJob
from nerd_ros.learning.finetuning.progress import Kept, Progress
from nerd_ros.learning.store.model_store import ModelStore
from nerd_ros.learning.store.store_files import check_name
from nerd_ros.nodes.parameters import SimParameters


class FineTuningServer:
    """
    Serves `fine_tune` on `node`, one goal at a time, others are rejected meanwhile.

    The work is done by a process of its own, and a thread waits for it, so that neither commands
    nor the simulation do. `parameters` give the robot, `models` is its store. A model to be used
    from now on becomes the parameter `model` of the node.
    """

    def __init__(self, node, parameters: SimParameters, models: ModelStore):
        self._node, self._models = node, models
        self._robot, self._root = parameters.robot, models.folder.parents[1]
        self._job: FineTuningJob | None = None
        self._closed = False
        self._server = ActionServer(
            node, FineTune, 'fine_tune', self._execute, goal_callback=self._consider,
            handle_accepted_callback=self._accept, cancel_callback=self._cancel,
            callback_group=ReentrantCallbackGroup())
        Thread(target=self._remove_abandoned, name='fine-tuning', daemon=True).start()

    def close(self) -> None:
        """End the work, which leaves nothing."""
        self._closed = True
        if self._job is not None:
            self._job.cancel()

    def _consider(self, goal) -> GoalResponse:
        if self._job is None:
            return GoalResponse.ACCEPT
        self._node.get_logger().warning(
            'a goal of fine_tune is rejected: another one is being worked on; cancel that one, or '
            'wait for it')
        return GoalResponse.REJECT

    def _accept(self, goal_handle) -> None:
        self._job = FineTuningJob(_arguments(goal_handle.request, self._robot, self._root))
        goal_handle.execute()

    def _cancel(self, goal_handle) -> CancelResponse:
        if self._job is not None:
            self._job.cancel()
        return CancelResponse.ACCEPT

    async def _execute(self, goal_handle):
        finished = Future()
        Thread(target=self._work, args=(goal_handle, finished), name='fine-tuning',
               daemon=True).start()
        came_out = await finished
        self._job = None
        result = FineTune.Result()
        if isinstance(came_out, Kept):
            self._fill(result, came_out)
            goal_handle.succeed()
        elif goal_handle.is_cancel_requested:
            result.message = 'cancelled; nothing is kept'
            goal_handle.canceled()
        else:
            result.message = str(came_out) or type(came_out).__name__
            goal_handle.abort()
        self._node.get_logger().info(f'fine_tune: {result.message}')
        return result

    def _work(self, goal_handle, finished: Future) -> None:
        """Wait for the job, in a thread of its own, and let `finished` have what came out."""
        def tell(progress: Progress) -> None:
            if not self._closed:
                goal_handle.publish_feedback(FineTune.Feedback(
                    phase=progress.phase, progress=progress.fraction,
                    remaining=progress.remaining, loss=progress.loss, error=progress.error))
        try:
            _check(goal_handle.request)
            came_out = self._job.run(tell)
        except Exception as error:   # whatever it is, a client without a result waits for ever
            came_out = error
        self._remove_abandoned()
        if self._closed:
            return
        finished.set_result(came_out)
        executor = self._node.executor
        if executor is not None:
            executor.wake()   # which would look at the future with the next event otherwise

    def _fill(self, result, kept: Kept) -> None:
        """Set the fields of a result, and go on with the new model if it is in use."""
        outcome = kept.outcome
        result.success = True
        result.message = f'{outcome.reason}; model {kept.version} '
        if kept.activated:
            answer, = self._node.set_parameters([Parameter('model', value=kept.version)])
            result.message += 'is in use from now on'
            if not answer.successful:
                result.message += f', though not by this simulation: {answer.reason}'
        else:
            result.message += 'is kept, but not in use'
        result.model, result.report, result.activated = kept.version, kept.report, kept.activated
        for name in ('before', 'after', 'analytic', 'hold'):
            setattr(result, f'error_{name}', getattr(outcome, f'error_{name}'))

    def _remove_abandoned(self) -> None:
        try:
            self._models.remove_abandoned()
        except OSError as error:
            self._node.get_logger().warning(f'what was left of a fine-tuning stays: {error}')


def _check(goal) -> None:
    """Raise StoreError for names that cannot be in the store."""
    for name in goal.bags:
        check_name(name)
    if goal.base_model:
        check_name(goal.base_model, 'model')


def _arguments(goal, robot: str, root: Path) -> list[str]:
    """Return the goal as options of `nerd-ros finetune`."""
    options = [f'--robot={robot}', f'--store={root}', f'--base={goal.base_model}',
               f'--seed={goal.seed}', '--activate' if goal.activate else '--no-activate',
               *(f'--bag={name}' for name in goal.bags)]
    return options + ([f'--time-limit={goal.time_limit}'] if goal.time_limit else [])
