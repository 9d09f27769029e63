# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The service `upload_bag`: recordings of the real robot arrive in the store."""

from queue import Empty, SimpleQueue
from threading import Thread

from nerd_ros_interfaces.srv import UploadBag
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future

from nerd_ros.learning.store.bag_check import BagCheck, BagSummary
from nerd_ros.learning.store.bag_store import BagStore, MEGABYTE, Receipt
from nerd_ros.learning.store.incoming_bag import Piece
from nerd_ros.learning.store.store_files import store_root, StoreError
from nerd_ros.nodes.parameters import SimParameters

# Between two looks for uploads that were given up [s].
STALE_PERIOD = 3600.0


class UploadServer:
    """
    Serves `upload_bag` on `node` for the robot of that name.

    Files are written, hashed and checked by a thread of its own, one request after the other, so
    that neither commands nor the simulation wait; `parameters` give the robot to check with, the
    store and its limits, which count from the next request on when they are changed.
    """

    def __init__(self, node, robot_name: str, parameters: SimParameters):
        self._node, self._parameters = node, parameters
        self._check = BagCheck(parameters.robot)
        self._store = BagStore(store_root(parameters.store), robot_name, self._check)
        self._requests: SimpleQueue = SimpleQueue()
        self._closed = False
        # Or a request that waits would hold back all other callbacks.
        node.create_service(UploadBag, 'upload_bag', self._upload,
                            callback_group=ReentrantCallbackGroup())
        Thread(target=self._work, name='uploads', daemon=True).start()

    def close(self) -> None:
        """End the check of a bag; an upload can be gone on with after the next start."""
        self._closed = True
        self._check.stop()

    async def _upload(self, request, response):
        future = Future()
        self._requests.put((request, response, future))
        return await future

    def _work(self) -> None:
        """Answer requests, in the thread for them."""
        self._remove_stale()
        while True:
            try:
                request, response, future = self._requests.get(timeout=STALE_PERIOD)
            except Empty:
                self._remove_stale()
                continue
            answer = self._answer(request, response)
            if self._closed:
                return
            future.set_result(answer)
            executor = self._node.executor
            if executor is not None:
                executor.wake()  # which would look at the future with the next event otherwise

    def _answer(self, request, response):
        store, parameters = self._store, self._parameters
        store.max_bag_size = parameters.max_bag_size * MEGABYTE
        store.min_free_space = parameters.min_free_space * MEGABYTE
        try:
            receipt = _receive(store, request)
            response.success, response.received = True, receipt.received
            response.message = f'{receipt.received} bytes are here'
            if receipt.summary is not None:
                response.duration = receipt.summary.duration
                response.message = told = summary_text(request.name, receipt.summary)
                self._node.get_logger().info(told.partition('\n')[0])
        except StoreError as error:
            response.success, response.received = False, error.received
            response.message = str(error)
        except Exception as error:  # whatever it is, a client without a response waits for ever
            response.success, response.message = False, _told(error)
            if not self._closed:
                self._node.get_logger().error(f'upload_bag: {response.message}')
        return response

    def _remove_stale(self) -> None:
        try:
            for name in self._store.remove_stale():
                self._node.get_logger().info(
                    f'the upload of bag {name}, not gone on with for a day, is removed')
        except OSError as error:
            self._node.get_logger().warning(f'uploads that were given up stay: {_told(error)}')


def summary_text(name: str, summary: BagSummary) -> str:
    """Return what was found in a bag, a line each."""
    return '\n  '.join([f'bag {name}: {summary.duration:.2f} s of usable motion', *summary.notes])


def _receive(store: BagStore, request) -> Receipt:
    if request.path:
        return store.add(request.name, request.path, request.size)
    if not request.file:
        return store.announce(request.name, bytes(request.data).decode('utf-8', 'replace'),
                              request.size)
    piece = Piece(request.file, request.size, request.sha256.lower(), request.offset,
                  memoryview(request.data))
    return store.receive(request.name, piece, request.last)


def _told(error: Exception) -> str:
    """Return what is known of an error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f'{error.filename}: {error.strerror}' if error.filename else error.strerror
    return ' '.join(str(error).split()) or type(error).__name__
