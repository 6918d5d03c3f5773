"""QueueService."""

from __future__ import annotations

import grpc

from rankbridge.v1 import queue_service_pb2 as pb, queue_service_pb2_grpc as stub

from .answering import OfRank, answers
from .operations.derived import NEW_QUEUE, QUEUES
from .operations.typed import method
from .wire import wire


class QueueServicer(OfRank, stub.QueueServiceServicer):
    """Queues of one rank."""

    NewQueue = method(pb.NewQueueResponse, NEW_QUEUE)
    Enqueue = method(pb.EnqueueResponse, QUEUES["enqueue"])
    Dequeue = method(pb.DequeueResponse, QUEUES["dequeue"])

    @answers(pb.ShutDownQueueResponse, "shut_down_queue")
    def ShutDownQueue(self, request: pb.ShutDownQueueRequest) -> pb.Queue:
        """Shuts down a queue on this rank."""
        call = request.call
        return wire.pack_queue(self._rank.shut_down_queue(call.group, request.queue, call.generation))

    def ListQueues(
        self, request: pb.ListQueuesRequest, context: grpc.ServicerContext
    ) -> pb.ListQueuesResponse:
        """Lists all queues."""
        return pb.ListQueuesResponse(queues=map(wire.pack_queue, self._rank.queues()))
