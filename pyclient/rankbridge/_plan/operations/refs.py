"""Tensors that stay on a rank, and the sessions that own them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from rankbridge._plan.calls import Call, Shape
from rankbridge._plan.chunks import TensorReader, put_messages
from rankbridge._plan.dtypes import dtype_of
from rankbridge._plan.inits import Init, fill
from rankbridge._plan.operations.declare import (
    Scope,
    milliseconds,
    operation,
    outcome_of,
    path_of,
    plain_call,
    timeout_of,
)
from rankbridge._plan.operations.shared_memory import shared_get, shared_put
from rankbridge._plan.ref import Ref, ref_from_wire, spec_to_wire
from rankbridge._plan.summary import Summary, summary_from_wire
from rankbridge._plan.tensor import Tensor, TensorLike, as_tensor, checked_shape
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import ref_service_pb2 as ref_pb

Form = Literal["numpy", "torch", "tensor"]
"""What a fetched tensor is handed out as."""

_BRIEF_BYTES = 64 * 1024

_HAND_OUT: dict[str, Callable[[Tensor], object]] = {
    "numpy": lambda tensor: tensor if tensor._kind.numpy is None else tensor.numpy(),
    "torch": lambda tensor: tensor.torch(),
    "tensor": lambda tensor: tensor,
}


class RefPage(NamedTuple):
    """One page of a list of refs, and the token that continues it (empty: it was the last)."""

    refs: list[Ref]
    next_page_token: str


@operation
def create(
    scope: Scope, dtype: object, shape: Iterable[int] | int, *, init: Init | None = None, device: str = ""
) -> Call[Ref]:
    """Makes a tensor on the rank from a description."""
    spec = spec_to_wire(dtype_of(dtype).name, checked_shape(shape), device)
    request = ref_pb.CreateTensorRequest(session_id=scope.session_id, tensor=spec)
    if init is not None:
        fill(request, init)
    return plain_call(scope, "create", request, ref_from_wire, brief=True)


@operation
def put(scope: Scope, value: TensorLike, *, device: str = "", timeout: float | None = None) -> Call[Ref]:
    """Brings a tensor to the rank."""
    tensor = as_tensor(value)
    spec = spec_to_wire(tensor.dtype, tensor.shape, device)
    header = ref_pb.PutTensorHeader(session_id=scope.session_id, tensor=spec)
    return Call(
        kind="put",
        path=path_of("RefService/PutTensor"),
        rank=scope.rank,
        deadline=timeout_of(scope, timeout),
        shape=Shape.UPLOAD,
        brief=tensor.nbytes <= _BRIEF_BYTES,
        messages=lambda: put_messages(header, tensor),
        read=outcome_of(ref_pb.PutTensorResponse, ref_from_wire),
        transfer=shared_put(scope, header, tensor),
    )


@operation
def get(scope: Scope, ref: Ref, *, to: Form = "numpy", timeout: float | None = None) -> Call[Any]:
    """Fetches a tensor."""
    if to not in _HAND_OUT:
        raise InvalidArgumentError(
            "no such form of a tensor", expected=f"one of {', '.join(_HAND_OUT)}", got=to
        )
    request = ref_pb.GetTensorRequest(session_id=ref.session_id, ref_id=ref.id)
    hand_out = _HAND_OUT[to]
    return Call(
        kind="get",
        path=path_of("RefService/GetTensor"),
        rank=scope.rank,
        deadline=timeout_of(scope, timeout),
        shape=Shape.DOWNLOAD,
        request=request.SerializeToString(),
        reader=lambda: TensorReader(hand_out),
        transfer=shared_get(scope, ref, hand_out),
    )


@operation
def describe(scope: Scope, ref: Ref) -> Call[Ref]:
    """Tells dtype, shape and device of one ref."""
    request = ref_pb.DescribeRefRequest(session_id=ref.session_id, ref_id=ref.id)
    return plain_call(scope, "describe", request, ref_from_wire, brief=True)


@operation
def summarize(scope: Scope, ref: Ref, *, timeout: float | None = None) -> Call[Summary]:
    """Asks what the elements of one ref are like."""
    request = ref_pb.SummarizeRefRequest(session_id=ref.session_id, ref_id=ref.id)
    return plain_call(scope, "summarize", request, summary_from_wire, timeout=timeout)


@operation
def list_refs(scope: Scope, *, page_token: str = "") -> Call[RefPage]:
    """Lists one page of the refs of a session."""

    def read(page: ref_pb.RefPage) -> RefPage:
        return RefPage(list(map(ref_from_wire, page.refs)), page.next_page_token)

    request = ref_pb.ListRefsRequest(session_id=scope.session_id, page_token=page_token)
    return plain_call(scope, "list_refs", request, read, brief=True)


@operation
def release(scope: Scope, refs: Ref | Iterable[Ref]) -> Call[int]:
    """Frees refs of one session, all or none."""
    refs = [refs] if isinstance(refs, Ref) else list(refs)
    sessions = {ref.session_id for ref in refs} or {scope.session_id}
    if len(sessions) > 1:
        raise InvalidArgumentError(
            "refs of several sessions cannot be released together", got=str(sorted(sessions))
        )
    request = ref_pb.ReleaseRefsRequest(session_id=sessions.pop(), ref_ids=[ref.id for ref in refs])
    return plain_call(scope, "release", request, int, brief=True)


@operation
def open_session(scope: Scope, session_id: str, *, lease: float | None = None) -> Call[str]:
    """Begins a session."""
    lease_ms = milliseconds(timeout_of(scope, lease)) if lease else 0
    request = ref_pb.OpenSessionRequest(session_id=session_id, lease_ms=lease_ms)
    return plain_call(scope, "open_session", request, str, brief=True)


@operation
def renew_session(scope: Scope, session_id: str, *, timeout: float | None = None) -> Call[float]:
    """Keeps a session alive for another lease."""
    request = ref_pb.RenewSessionRequest(session_id=session_id)
    return plain_call(
        scope, "renew_session", request, lambda ms: float(ms / 1000), timeout=timeout, brief=True
    )


@operation
def close_session(scope: Scope, session_id: str, *, timeout: float | None = None) -> Call[int]:
    """Ends a session and frees its refs."""
    request = ref_pb.CloseSessionRequest(session_id=session_id)
    return plain_call(scope, "close_session", request, int, timeout=timeout, brief=True)
