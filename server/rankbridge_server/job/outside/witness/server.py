"""A server in the place of a rank's socket for observers: passes calls on, or answers for a rank that does not run."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from rankbridge.v1 import debug_service_pb2 as pb

from ....core.errors import BridgeError
from ....doctor.evidence import Process
from ....doctor.patience import PATIENCE_S
from ....doctor.testimony import Silence
from ....service.gang_verdict import verdict_on
from ....service.records import caller_of
from ....service.wire import verdicts, wire
from ..observed_rank import ObservedRank
from .growth import growths
from .passing import Passing

_SERVICE = "/rankbridge.v1.DebugService/"
_ASK_S = 0.5
"""Within which a rank answers that runs."""
_INTERVAL_MS, _MOST_INTERVAL_MS = 200, 5_000
_THREADS = 160
_GONE_QUIET = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)

Answer = TypeVar("Answer", bound=Message)


class RankServer(grpc.GenericRpcHandler):
    """Answers at the socket of one process of a rank.

    `take_place`: the rank's own socket gets a hidden name, and this one's the name that observers know.
    """

    def __init__(self, rank: ObservedRank, folder: Path) -> None:
        self._rank = rank
        self._public = folder / f"rank-{rank.rank}"
        self._own = folder / f".r{rank.rank}"
        self._ours = folder / f".w{rank.rank}"
        self._placed: tuple[int, int] | None = None
        self._server: grpc.Server | None = None
        self._passing = Passing(f"unix:{self._own}")

    @property
    def is_needed(self) -> bool:
        """Whether the rank lives, and nobody has ended it in order."""
        return not self._rank.record.is_orderly and not self._rank.is_dead

    def take_place(self) -> None:
        """Takes the place of the rank's socket, unless it has it. Raises OSError."""
        found = _identity(self._public)
        if found is None or found == self._placed:
            return
        self._own.unlink(missing_ok=True)
        os.link(self._public, self._own)
        if self._server is not None:
            self._server.stop(0.0)
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS), handlers=[self], options=[("grpc.so_reuseport", 0)]
        )
        try:
            self._server.add_insecure_port(f"unix:{self._ours}")
        except RuntimeError as error:
            raise OSError(str(error)) from None
        os.chmod(self._ours, stat.S_IMODE(self._public.stat().st_mode))
        self._server.start()
        placed = _identity(self._ours)
        os.rename(self._ours, self._public)
        self._placed = placed

    def close(self) -> None:
        """Ends, and removes its socket."""
        if self._server is not None:
            self._server.stop(0.0)
        self._passing.close()
        for path in (self._own, self._ours, self._public):
            if path is not self._public or _identity(path) == self._placed:
                path.unlink(missing_ok=True)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        """Gives the handler of a method."""
        method = handler_call_details.method
        match method.removeprefix(_SERVICE):
            case "GetRecord":
                return _unary(self._get_record, pb.GetRecordRequest)
            case "GetStacks":
                return _unary(self._get_stacks, pb.GetStacksRequest)
            case "GetProcess":
                return _unary(self._get_process, pb.GetProcessRequest)
            case "GetEvidence":
                return _unary(self._get_evidence, pb.GetEvidenceRequest)
            case "Diagnose":
                return _unary(self._diagnose, pb.DiagnoseRequest)
            case "WatchRecord":
                return grpc.unary_stream_rpc_method_handler(
                    self._watch_record,
                    request_deserializer=pb.WatchRecordRequest.FromString,
                    response_serializer=pb.WatchRecordResponse.SerializeToString,
                )
        return self._passing.handler(method)

    def _get_record(
        self, request: pb.GetRecordRequest, context: grpc.ServicerContext
    ) -> pb.GetRecordResponse:
        return self._asked(
            "GetRecord",
            request,
            pb.GetRecordResponse,
            lambda: self._rank.get_record(request.limit, request.group, caller_of(request)),
        )

    def _get_stacks(
        self, request: pb.GetStacksRequest, context: grpc.ServicerContext
    ) -> pb.GetStacksResponse:
        return self._asked("GetStacks", request, pb.GetStacksResponse, self._rank.get_stacks)

    def _get_process(
        self, request: pb.GetProcessRequest, context: grpc.ServicerContext
    ) -> pb.GetProcessResponse:
        return self._asked(
            "GetProcess",
            request,
            pb.GetProcessResponse,
            lambda: pb.GetProcessResponse(process=self._rank.get_process()),
        )

    def _get_evidence(
        self, request: pb.GetEvidenceRequest, context: grpc.ServicerContext
    ) -> pb.GetEvidenceResponse:
        interval = min(request.interval_ms or _INTERVAL_MS, _MOST_INTERVAL_MS) / 1000
        return self._asked(
            "GetEvidence",
            request,
            pb.GetEvidenceResponse,
            lambda: self._rank.get_evidence(interval),
            _ASK_S + interval,
        )

    def _diagnose(self, request: pb.DiagnoseRequest, context: grpc.ServicerContext) -> pb.DiagnoseResponse:
        def judged() -> pb.DiagnoseResponse:
            try:
                found = verdict_on(
                    request.evidence,
                    lambda ranks, *_: [Silence(rank=it, process=Process(state="?")) for it in ranks],
                    at=time.time(),
                    patience_s=request.patience_ms / 1000 or PATIENCE_S,
                )
            except BridgeError as error:
                return pb.DiagnoseResponse(error=wire.pack_error(error.failure))
            return pb.DiagnoseResponse(verdict=verdicts.pack_verdict(found))

        return self._asked("Diagnose", request, pb.DiagnoseResponse, judged, 2 * _ASK_S)

    def _watch_record(
        self, request: pb.WatchRecordRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchRecordResponse]:
        yield from growths(self._rank, request, context)

    def _asked(
        self,
        method: str,
        request: Message,
        answer: type[Answer],
        outside: Callable[[], Answer],
        timeout_s: float = _ASK_S,
    ) -> Answer:
        """What the rank answers; if it does not run, what is seen from outside."""
        if not self._rank.is_silent:
            try:
                said = self._passing.ask(_SERVICE + method, request.SerializeToString(), timeout_s)
                return answer.FromString(said)
            except grpc.RpcError as error:
                if error.code() not in _GONE_QUIET:
                    raise
        return outside()


def _identity(path: Path) -> tuple[int, int] | None:
    """Names a socket for certain, as long as it is there. None: there is none."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _unary(
    answer: Callable[[Any, grpc.ServicerContext], Message], request: type[Message]
) -> grpc.RpcMethodHandler[Any, Any]:
    return grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=request.FromString,
        response_serializer=lambda it: it.SerializeToString(),
    )
