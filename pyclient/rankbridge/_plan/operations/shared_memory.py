"""Puts and gets by shared memory, and the memory itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rankbridge._plan.calls import Call, Transfer
from rankbridge._plan.copying import copy
from rankbridge._plan.dtypes import dtype_from_wire
from rankbridge._plan.operations.declare import Scope, plain_call
from rankbridge._plan.ref import Ref, ref_from_wire
from rankbridge._plan.tensor import Tensor
from rankbridge.errors import ProtocolError
from rankbridge.v1 import ref_service_pb2 as ref_pb, tensor_pb2

T = TypeVar("T")


def shared_put(scope: Scope, header: ref_pb.PutTensorHeader, tensor: Tensor) -> Transfer[Ref]:
    """Brings a tensor to the rank."""

    def fill(memory: memoryview) -> None:
        copy(memory, tensor.data)

    def make(session_id: str, memory_id: str) -> Call[ref_pb.SharedPut]:
        request = ref_pb.PutSharedTensorRequest(
            session_id=header.session_id,
            tensor=header.tensor,
            memory_session_id=session_id,
            memory_id=memory_id,
        )
        return plain_call(scope, "put", request, _as_it_is)

    def answered(put: ref_pb.SharedPut) -> tuple[bool, int]:
        return put.adopted, tensor.nbytes

    def result(put: ref_pb.SharedPut, memory: memoryview | None) -> Ref:
        return ref_from_wire(put.ref)

    return Transfer(nbytes=tensor.nbytes, fill=fill, make=make, answered=answered, result=result)


def shared_get(scope: Scope, ref: Ref, hand_out: Callable[[Tensor], T]) -> Transfer[T]:
    """Fetches a tensor."""

    def make(session_id: str, memory_id: str) -> Call[tensor_pb2.TensorSpec]:
        request = ref_pb.GetSharedTensorRequest(
            session_id=ref.session_id,
            ref_id=ref.id,
            memory_session_id=session_id,
            memory_id=memory_id,
        )
        return plain_call(scope, "get", request, _as_it_is)

    def answered(spec: tensor_pb2.TensorSpec) -> tuple[bool, int]:
        if any(size < 0 for size in spec.shape):
            raise ProtocolError("a tensor has a negative size", got=str(list(spec.shape)))
        return False, math.prod(spec.shape) * dtype_from_wire(spec.dtype).itemsize

    def result(spec: tensor_pb2.TensorSpec, memory: memoryview | None) -> T:
        elements = b"" if memory is None else memory
        return hand_out(Tensor(dtype_from_wire(spec.dtype).name, tuple(spec.shape), elements))

    return Transfer(nbytes=ref.nbytes, make=make, answered=answered, result=result)


def open_memory(scope: Scope, nbytes: int) -> Call[ref_pb.SharedMemory]:
    """Opens memory of `nbytes` on a rank."""
    request = ref_pb.OpenSharedMemoryRequest(session_id=scope.session_id, bytes=nbytes)
    return plain_call(scope, "open_shared_memory", request, _as_it_is)


def close_memory(scope: Scope, memory_ids: Sequence[str]) -> Call[int]:
    """Closes memory on a rank; gives how many of the ids it knew."""
    request = ref_pb.CloseSharedMemoryRequest(session_id=scope.session_id, memory_ids=memory_ids)
    return plain_call(scope, "close_shared_memory", request, int)


def _as_it_is(value: Any) -> Any:
    return value
