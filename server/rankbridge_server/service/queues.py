"""QueueService."""

from __future__ import annotations

from typing import Any

import grpc

from rankbridge.v1 import queue_service_pb2 as pb
from rankbridge.v1 import queue_service_pb2_grpc as stub

from ..core.operations import table as core
from ..core.queues.view import QueueView
from ..core.rank import Rank
from .operations import typed
from .operations.wire_operation import WireOperation
from .running import answered, run
from .wire import values

NEW_QUEUE: WireOperation[pb.NewQueueRequest, core.NewQueue] = WireOperation(
    core.NEW_QUEUE,
    lambda r: core.NewQueue(
        r.name, r.writer_rank_in_group, tuple(r.reader_ranks_in_group), r.max_chunk_bytes, r.max_chunks
    ),
)

QUEUES: dict[str, WireOperation[Any, Any]] = {
    "enqueue": WireOperation(core.ENQUEUE, lambda r: core.Enqueue(r.queue, values.packed(r.value))),
    "dequeue": WireOperation(core.DEQUEUE, lambda r: core.Dequeue(r.queue)),
}
"""By their field in the `Operation` message."""


class QueueServicer(stub.QueueServiceServicer):
    """Queues of one rank."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._enqueue: Any = typed.method(rank, pb, "enqueue", QUEUES["enqueue"])
        self._dequeue: Any = typed.method(rank, pb, "dequeue", QUEUES["dequeue"])

    def NewQueue(self, request: pb.NewQueueRequest, context: grpc.ServicerContext) -> pb.NewQueueResponse:
        """Make a queue, together with the other members."""
        return answered(
            self._rank,
            "new_queue",
            lambda: pb.NewQueueResponse(queue=self._new(request, context)),
            lambda error: pb.NewQueueResponse(error=error),
        )

    def Enqueue(self, request: pb.EnqueueRequest, context: grpc.ServicerContext) -> pb.EnqueueResponse:
        """Write a value."""
        response: pb.EnqueueResponse = self._enqueue(self, request, context)
        return response

    def Dequeue(self, request: pb.DequeueRequest, context: grpc.ServicerContext) -> pb.DequeueResponse:
        """Read a value."""
        response: pb.DequeueResponse = self._dequeue(self, request, context)
        return response

    def ShutDownQueue(
        self, request: pb.ShutDownQueueRequest, context: grpc.ServicerContext
    ) -> pb.ShutDownQueueResponse:
        """End a queue on this rank."""
        call = request.call
        return answered(
            self._rank,
            "shut_down_queue",
            lambda: pb.ShutDownQueueResponse(
                queue=_packed(self._rank.shut_down_queue(call.group, request.queue, call.generation))
            ),
            lambda error: pb.ShutDownQueueResponse(error=error),
        )

    def ListQueues(
        self, request: pb.ListQueuesRequest, context: grpc.ServicerContext
    ) -> pb.ListQueuesResponse:
        """Tell of all queues."""
        return pb.ListQueuesResponse(queues=map(_packed, self._rank.queues()))

    def _new(self, request: pb.NewQueueRequest, context: grpc.ServicerContext) -> pb.Queue:
        outcome = run(self._rank, NEW_QUEUE, request, context)
        if not isinstance(outcome, QueueView):
            raise TypeError(f"new_queue gives a queue, not {outcome!r}")
        return _packed(outcome)


def _packed(it: QueueView) -> pb.Queue:
    return pb.Queue(
        name=it.name,
        group=it.group,
        writer_rank_in_group=it.writer,
        reader_ranks_in_group=it.readers,
        shared_memory_ranks_in_group=it.shared_memory,
        max_chunk_bytes=it.max_chunk_bytes,
        max_chunks=it.max_chunks,
    )
