"""Tensors by shared memory: the part of RefService for callers on the rank's host."""

from __future__ import annotations

import grpc

from rankbridge.v1 import ref_service_pb2 as pb, ref_service_pb2_grpc as stub, tensor_pb2

from ...core.rank import Rank
from ...core.refs.tensors import TensorSpec
from ...core.shared_memory.copying import copy
from ...core.shared_memory.segments import Use
from ..answering import OfRank, answered, answers
from ..wire import wire


class SharedMemoryServicer(OfRank, stub.RefServiceServicer):
    """Segments of one rank, and tensors that come and go in them."""

    def __init__(self, rank: Rank) -> None:
        super().__init__(rank)
        self._refs = rank.refs
        self._tensors = rank.backend.tensors
        self._segments = rank.segments

    def OpenSharedMemory(
        self, request: pb.OpenSharedMemoryRequest, context: grpc.ServicerContext
    ) -> pb.OpenSharedMemoryResponse:
        """Opens a segment."""
        return answered(
            self._rank,
            "open_shared_memory",
            lambda: pb.OpenSharedMemoryResponse(memory=self._open(request, context)),
            lambda error: pb.OpenSharedMemoryResponse(error=error),
        )

    @answers(pb.CloseSharedMemoryResponse, "close_shared_memory")
    def CloseSharedMemory(self, request: pb.CloseSharedMemoryRequest) -> int:
        """Closes segments."""
        return self._segments.close(request.session_id, request.memory_ids)

    @answers(pb.PutSharedTensorResponse, "put")
    def PutSharedTensor(self, request: pb.PutSharedTensorRequest) -> pb.SharedPut:
        """Makes a tensor from the bytes in a segment."""
        spec = wire.tensor_spec(request.tensor, self._tensors.device)
        with (
            self._refs.reserved(request.session_id, spec) as slot,
            self._segments.using(request.memory_session_id, request.memory_id, spec.nbytes) as use,
        ):
            tensor = self._adopted(spec, use)
            adopted = tensor is not None
            if tensor is None:
                tensor = self._tensors.empty(spec)
                copy(self._tensors.write(tensor), use.memory)
            self._tensors.written(tensor)
            ref = slot.fill(tensor)
            if adopted:
                use.keep()
            return pb.SharedPut(ref=wire.pack_ref(ref), adopted=adopted)

    @answers(pb.GetSharedTensorResponse, "get")
    def GetSharedTensor(self, request: pb.GetSharedTensorRequest) -> tensor_pb2.TensorSpec:
        """Writes a tensor's elements into a segment."""
        cell = self._refs.find(request.session_id, request.ref_id)
        spec = cell.ref.spec
        with self._segments.using(request.memory_session_id, request.memory_id, spec.nbytes) as use:
            copy(use.memory, self._tensors.read(cell.tensor))
        return wire.pack_tensor_spec(spec)

    def _open(self, request: pb.OpenSharedMemoryRequest, context: grpc.ServicerContext) -> pb.SharedMemory:
        segment = self._segments.open(request.session_id, request.bytes)
        if not context.is_active():
            # The caller has gone and will not close it.
            self._segments.close(request.session_id, [segment.id])
        return pb.SharedMemory(
            id=segment.id, path=str(segment.file.path), bytes=segment.nbytes, nonce=segment.file.nonce
        )

    def _adopted(self, spec: TensorSpec, use: Use) -> object | None:
        if not use.may_lend or not spec.nbytes:
            return None
        return self._tensors.adopted(spec, use.lend())
