"""Operations of one tensor, value or queue, whose arguments are read as their descriptors say."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankbridge.v1 import (
    collective_service_pb2,
    group_service_pb2,
    object_service_pb2,
    operation_service_pb2,
    point_to_point_service_pb2,
    queue_service_pb2,
)

from ...core.groups.operations import destroy_group, new_group
from ...core.operations.agreements import ping
from ...core.operations.operation import Operation
from ...core.operations.table import OPERATIONS
from ...core.queues.operations import new_queue
from ..wire import values, wire
from .arguments import reader
from .wire_operation import WireOperation


def derived(
    operation: Operation[Any], request: type[Any], pack: Callable[[Any], Any] = values.pack_value
) -> WireOperation[Any, Any]:
    """An operation of the core with its request. `pack` as of `WireOperation`."""
    return WireOperation(operation, reader(operation.args, request.DESCRIPTOR), pack)


def _of(messages: ModuleType) -> dict[str, WireOperation[Any, Any]]:
    """The operations whose requests are in a module, by their fields in the `Operation` message."""
    kinds = operation_service_pb2.Operation.DESCRIPTOR.fields_by_name.items()
    return {
        kind: derived(OPERATIONS[kind], getattr(messages, request.name))
        for kind, request in ((kind, field.message_type) for kind, field in kinds)
        if request is not None and request.file is messages.DESCRIPTOR
    }


COLLECTIVES = _of(collective_service_pb2)
OBJECTS = _of(object_service_pb2)
POINT_TO_POINT = _of(point_to_point_service_pb2)
QUEUES = _of(queue_service_pb2)

PING = derived(ping, operation_service_pb2.PingRequest)
NEW_QUEUE = derived(new_queue, queue_service_pb2.NewQueueRequest, wire.pack_queue)
NEW_GROUP = derived(new_group, group_service_pb2.NewGroupRequest, wire.pack_group)
DESTROY_GROUP = derived(destroy_group, group_service_pb2.DestroyGroupRequest, wire.pack_group)
