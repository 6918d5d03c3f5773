"""Operations of QueueService."""

from __future__ import annotations

from typing import Any

from rankbridge.v1 import queue_service_pb2 as pb

from ...core.operations import table as core
from ..wire import values, wire
from .wire_operation import WireOperation

NEW_QUEUE: WireOperation[pb.NewQueueRequest, core.NewQueue] = WireOperation(
    core.NEW_QUEUE,
    lambda r: core.NewQueue(
        r.name, r.writer_rank_in_group, tuple(r.reader_ranks_in_group), r.max_chunk_bytes, r.max_chunks
    ),
    wire.pack_queue,
)

QUEUES: dict[str, WireOperation[Any, Any]] = {
    "enqueue": WireOperation(core.ENQUEUE, lambda r: core.Enqueue(r.queue, values.packed(r.value))),
    "dequeue": WireOperation(core.DEQUEUE, lambda r: core.Dequeue(r.queue)),
}
"""By their field in the `Operation` message."""
