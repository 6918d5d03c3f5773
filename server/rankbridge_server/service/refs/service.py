"""RefService."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import grpc

from rankbridge.v1 import ref_pb2, ref_service_pb2 as pb

from ...core.errors import BridgeError, invalid
from ...core.guests import home_of
from ..answering import answers, packed_error
from ..wire import wire
from .chunks import encoded_chunks
from .shared_memory import SharedMemoryServicer

MAX_PAGE = 1000


class RefServicer(SharedMemoryServicer):
    """Refs and sessions of one rank."""

    @answers(pb.OpenSessionResponse, "open_session")
    def OpenSession(self, request: pb.OpenSessionRequest) -> str:
        """Opens a session."""
        return self._rank.open_session(request.session_id, request.lease_ms / 1000)

    @answers(pb.CloseSessionResponse, "close_session")
    def CloseSession(self, request: pb.CloseSessionRequest) -> int:
        """Closes a session."""
        return self._rank.close_session(request.session_id)

    @answers(pb.RenewSessionResponse, "renew_session")
    def RenewSession(self, request: pb.RenewSessionRequest) -> int:
        """Renews a session's lease."""
        return round(self._refs.renew_session(request.session_id) * 1000)

    @answers(pb.CreateTensorResponse, "create")
    def CreateTensor(self, request: pb.CreateTensorRequest) -> ref_pb2.Ref:
        """Creates a tensor from a description."""
        spec = wire.tensor_spec(request.tensor, self._tensors.device)
        with self._refs.reserved(request.session_id, spec) as slot:
            return wire.pack_ref(slot.fill(self._tensors.create(spec, wire.init(request))))

    @answers(pb.PutTensorResponse, "put")
    def PutTensor(self, request_iterator: Iterator[pb.PutTensorRequest | memoryview]) -> ref_pb2.Ref:
        """Receives a tensor."""
        first = next(request_iterator, None)
        if not isinstance(first, pb.PutTensorRequest) or first.WhichOneof("part") != "header":
            raise invalid(
                "a put begins with its header", expected="header", got="chunk" if first else "nothing"
            )
        spec = wire.tensor_spec(first.header.tensor, self._tensors.device)
        # What is declared and does not come takes nothing from others.
        with self._refs.reserved(first.header.session_id, spec, nbytes=0) as slot:
            tensor = self._tensors.empty(spec)
            memory, at = self._tensors.write(tensor), 0
            for part in request_iterator:
                chunk = _chunk(part)
                if at + len(chunk) > spec.nbytes:
                    raise _wrong_length(spec.nbytes, f"{at + len(chunk)} bytes or more")
                slot.grow(len(chunk))
                memory[at : at + len(chunk)] = chunk
                at += len(chunk)
            if at != spec.nbytes:
                raise _wrong_length(spec.nbytes, f"{at} bytes")
            self._tensors.written(tensor)
            return wire.pack_ref(slot.fill(tensor))

    def GetTensor(  # type: ignore[override]
        self, request: pb.GetTensorRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.GetTensorResponse | bytes]:
        """Sends a tensor; chunks are encoded already."""
        with ExitStack() as reading:
            try:
                cell = self._refs.find(request.session_id, request.ref_id)
                if home_of(request.session_id):
                    # A tensor that is released while it is read stays as long as that takes.
                    reading.enter_context(self._refs.reserved(request.session_id, cell.ref.spec))
            except BridgeError as error:
                yield pb.GetTensorResponse(error=packed_error(self._rank, "get", error))
                return
            yield pb.GetTensorResponse(tensor=wire.pack_tensor_spec(cell.ref.spec))
            yield from encoded_chunks(self._tensors.read(cell.tensor))

    @answers(pb.DescribeRefResponse, "describe")
    def DescribeRef(self, request: pb.DescribeRefRequest) -> ref_pb2.Ref:
        """Describes a ref."""
        return wire.pack_ref(self._refs.find(request.session_id, request.ref_id).ref)

    @answers(pb.SummarizeRefResponse, "summarize")
    def SummarizeRef(self, request: pb.SummarizeRefRequest) -> pb.TensorSummary:
        """Summarizes a tensor."""
        cell = self._refs.find(request.session_id, request.ref_id)
        found = self._tensors.summary(cell.tensor)
        return pb.TensorSummary(
            tensor=wire.pack_tensor_spec(cell.ref.spec),
            norm=found.norm,
            min=found.least,
            max=found.most,
            mean=found.mean,
            nans=found.nans,
            infs=found.infs,
            hash=found.digest,
        )

    @answers(pb.ListRefsResponse, "list")
    def ListRefs(self, request: pb.ListRefsRequest) -> pb.RefPage:
        """Lists a session's refs."""
        if request.page_size > MAX_PAGE:
            raise invalid(
                "page_size is too large", expected=f"at most {MAX_PAGE}", got=str(request.page_size)
            )
        size = request.page_size or MAX_PAGE
        refs = self._refs.page(request.session_id, request.page_token, size + 1)
        more = refs[size - 1].id if len(refs) > size else ""
        return pb.RefPage(refs=[wire.pack_ref(ref) for ref in refs[:size]], next_page_token=more)

    @answers(pb.ReleaseRefsResponse, "release")
    def ReleaseRefs(self, request: pb.ReleaseRefsRequest) -> int:
        """Releases refs."""
        return self._refs.release(request.session_id, request.ref_ids)


def _chunk(part: pb.PutTensorRequest | memoryview) -> memoryview:
    if isinstance(part, memoryview):
        return part
    if part.WhichOneof("part") != "chunk":
        raise invalid(
            "a put has one header and then chunks", expected="chunk", got=str(part.WhichOneof("part"))
        )
    return memoryview(part.chunk)


def _wrong_length(expected: int, got: str) -> Exception:
    return invalid("the chunks do not add up to the tensor's size", expected=f"{expected} bytes", got=got)
