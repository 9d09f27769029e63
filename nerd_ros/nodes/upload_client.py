# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Hands a recording to the running simulator: `nerd-ros bag upload`."""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
import re
from threading import Event

from tqdm import tqdm

from nerd_ros.learning.store.store_files import (
    BagFile, blocks, check_name, digest, find_bag_files)
from nerd_ros.nodes.client_node import client_node

# Until the service is found, at first and after the simulator has ended [s].
DISCOVERY_TIMEOUT = 10.0
# A request without an answer for so long is sent again, and again after twice that: the simulator
# may have been restarted. It makes no difference if both arrive [s].
RETRY_PERIOD = 20.0


class UploadFailed(ValueError):
    """The simulator refused the bag, or there is none; the message is one sentence."""


def upload(bag: Path, name: str | None = None, namespace: str = '',
           by_path: bool | None = None, progress: bool = True) -> str:
    """
    Upload `bag` (folder or file) as `name`, by default its own; returns what was found in it.

    By path where the simulator in `namespace` sees that path, else in chunks; `by_path` says which
    of the two. Another call of the same kind goes on with what was stopped. Raises UploadFailed,
    and StoreError for what is no bag.
    """
    files = find_bag_files(bag)
    name = name or default_name(bag)
    check_name(name)
    with _connection(namespace) as call:
        size = sum(file.size for file in files)
        if by_path is not False:
            answer = call(name=name, path=str(bag.absolute()), size=size)
            if answer.success:
                return answer.message
            # Otherwise it sees another bag there, or none: it runs on another machine.
            if by_path or answer.received == size:
                raise UploadFailed(answer.message)
        return _send(call, files, name, size, progress)


def default_name(bag: Path) -> str:
    """Return the name of the file or folder, as far as it can be one of the store."""
    path = bag.resolve()
    name = path.name if path.is_dir() else path.name.partition('.')[0]
    return re.sub(r'[^A-Za-z0-9_-]+', '_', name, flags=re.ASCII)[:64] or 'bag'


def _send(call, files: list[BagFile], name: str, size: int, progress: bool) -> str:
    """Send the files in chunks, from where the simulator has them on."""
    with _bar(f'{name}: reading', size, progress) as bar:
        digests = [digest(_counted(blocks(file), bar)) for file in files]
    listing = ''.join(f'{sha}  {file.name}\n' for sha, file in zip(digests, files))
    answer = _accepted(call(name=name, size=size, data=array('B', listing.encode())))
    if answer.duration:  # the simulator has this bag already
        return answer.message
    with _bar(f'{name}: sending', size, progress) as bar:
        for file, sha in zip(files, digests):
            last = file is files[-1]
            piece = {'name': name, 'file': file.name, 'size': file.size, 'sha256': sha}
            answer = _accepted(call(**piece, last=last))
            offset = answer.received
            bar.update(offset)
            for block in blocks(file, offset):
                offset += len(block)
                answer = _accepted(call(**piece, offset=offset - len(block),
                                        data=array('B', block),
                                        last=last and offset == file.size))
                bar.update(len(block))
    return answer.message


def _bar(title: str, size: int, progress: bool) -> tqdm:
    return tqdm(total=size, unit='B', unit_scale=True, disable=not progress, desc=title)


def _counted(content: Iterable[bytes], bar: tqdm) -> Iterator[bytes]:
    for block in content:
        bar.update(len(block))
        yield block


def _accepted(answer):
    if not answer.success:
        raise UploadFailed(answer.message)
    return answer


@contextmanager
def _connection(namespace: str):
    """Provide a function that calls the service with the fields of a request."""
    try:
        from nerd_ros_interfaces.srv import UploadBag
    except ModuleNotFoundError:
        raise UploadFailed('nerd_ros_interfaces is not installed; `make setup` builds it.'
                           ) from None
    with client_node('nerd_upload', namespace) as node:
        client = node.create_client(UploadBag, 'upload_bag')
        yield lambda **fields: _call(client, UploadBag.Request(**fields))


def _call(client, request):
    """Return the answer to a request, however long it takes, or raise UploadFailed."""
    period = RETRY_PERIOD
    while True:
        if not client.wait_for_service(DISCOVERY_TIMEOUT):
            raise UploadFailed(
                f'no simulator offers {client.service_name}; start one with `make sim` or '
                '`ros2 launch nerd_ros sim.launch.py`, with the same ROS_DOMAIN_ID (the same '
                'command goes on with what was sent).')
        answered = Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        if answered.wait(period):
            return future.result()
        client.remove_pending_request(future)
        period *= 2
