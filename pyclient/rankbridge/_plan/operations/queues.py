"""Making, using and ending message queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    checked_rank,
    group_call,
    operation,
    options_of,
    plain_call,
)
from rankbridge._plan.operations.readers import nothing
from rankbridge._plan.queue import NamedQueue, QueueDescription
from rankbridge._plan.values import from_value, to_value
from rankbridge._plan.wire import fields_of
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import queue_service_pb2 as pb


@operation
def new_queue(
    scope: Scope,
    name: str,
    *,
    writer_rank_in_group: int = 0,
    reader_ranks_in_group: Iterable[int] | None = None,
    max_chunk_bytes: int | None = None,
    max_chunks: int | None = None,
    **options: Unpack[CallOptions],
) -> Call[QueueDescription]:
    """Makes a queue."""
    request = pb.NewQueueRequest(
        call=options_of(scope, scope.session_id, "new_queue", **options),
        name=name,
        writer_rank_in_group=checked_rank("writer_rank_in_group", writer_rank_in_group),
        reader_ranks_in_group=_readers(reader_ranks_in_group),
        max_chunk_bytes=_size("max_chunk_bytes", max_chunk_bytes, 64),
        max_chunks=_size("max_chunks", max_chunks, 32),
    )
    return group_call(scope, "new_queue", request, _described)


@operation
def enqueue(
    scope: Scope, queue: str | NamedQueue, value: object, **options: Unpack[CallOptions]
) -> Call[None]:
    """Writes a value."""
    name, options = _of(queue, options)
    call = options_of(scope, scope.session_id, "enqueue", **options)
    request = pb.EnqueueRequest(call=call, queue=name, value=to_value(value))
    return group_call(scope, "enqueue", request, nothing)


@operation
def dequeue(scope: Scope, queue: str | NamedQueue, **options: Unpack[CallOptions]) -> Call[Any]:
    """Reads the next value."""
    name, options = _of(queue, options)
    request = pb.DequeueRequest(call=options_of(scope, scope.session_id, "dequeue", **options), queue=name)
    return group_call(scope, "dequeue", request, from_value)


@operation
def shut_down_queue(
    scope: Scope, queue: str | NamedQueue, **options: Unpack[CallOptions]
) -> Call[QueueDescription]:
    """Ends a queue on one rank."""
    name, options = _of(queue, options)
    request = pb.ShutDownQueueRequest(
        call=options_of(scope, scope.session_id, "shut_down_queue", **options), queue=name
    )
    return group_call(scope, "shut_down_queue", request, _described)


@operation
def queues(scope: Scope) -> Call[list[QueueDescription]]:
    """Describes every queue of one rank."""
    request = pb.ListQueuesRequest()
    return plain_call(scope, "queues", request, lambda all_: [_described(it) for it in all_.queues])


def _described(queue: pb.Queue) -> QueueDescription:
    return QueueDescription(**fields_of(QueueDescription, queue))


def _of(queue: str | NamedQueue, options: CallOptions) -> tuple[str, CallOptions]:
    if isinstance(queue, str):
        return queue, options
    in_its_group: CallOptions = {"group": queue.group, **options}
    return queue.name, in_its_group


def _readers(ranks: Iterable[int] | None) -> list[int]:
    if ranks is None:
        return []
    listed = [checked_rank("a reader", rank) for rank in ranks]
    if not listed:
        # On the wire that would be all but the writer.
        raise InvalidArgumentError(
            "a queue needs a reader",
            operation="new_queue",
            expected="one reader or more, or None: all but the writer",
            got="none",
        )
    return listed


def _size(name: str, size: int | None, bits: int) -> int:
    if size is None:
        return 0
    if not 0 < size < 2**bits:
        raise InvalidArgumentError(
            f"{name} does not fit", operation="new_queue", expected=f"1 to 2**{bits} - 1", got=str(size)
        )
    return size
