"""Sidecars for tests of the client: real gRPC servers in this process, with values in memory.

They follow the proto where a client can tell, and nothing more. Collectives really wait for every rank of the
gang, so a client that does not call all at once does not get past them.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import numpy as np

from rankbridge.v1 import (
    collective_service_pb2 as collective_pb,
    collective_service_pb2_grpc,
    error_pb2,
    gang_service_pb2,
    gang_service_pb2_grpc,
    group_service_pb2,
    group_service_pb2_grpc,
    operation_service_pb2 as operation_pb,
    operation_service_pb2_grpc,
    rank_service_pb2,
    rank_service_pb2_grpc,
    ref_pb2,
    ref_service_pb2 as ref_pb,
    ref_service_pb2_grpc,
    value_pb2,
)

WAIT = 20.0
"""Longest time that anything in these tests waits for something else, in seconds."""


@dataclass
class Held:
    """A tensor that a rank holds: its ref, and its bytes."""

    ref: ref_pb2.Ref
    data: bytes


@dataclass
class Sidecar:
    """What one rank knows, what it was asked, and what it shall answer instead.

    Attributes:
        rank: Rank in the gang.
        requests: Every request so far, by method, in order.
        answers: By method: what to call instead of the method itself, with request and context.
        sessions: Open sessions.
        held: Refs by id.
        groups: Groups by name.
        ids: Numbers that no ref has yet.
        services: What serves it.
    """

    rank: int
    gang: SidecarGang
    requests: dict[str, list[Any]] = field(default_factory=dict)
    answers: dict[str, Callable[[Any, grpc.ServicerContext], Any]] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=lambda: {""})
    held: dict[str, Held] = field(default_factory=dict)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=itertools.count)
    services: list[Any] = field(default_factory=list)

    def part(self, operation: Any, context: grpc.ServicerContext) -> gang_service_pb2.ExecuteResponse:
        """Does an operation as its own RPC does it."""
        kind = operation.WhichOneof("kind")
        method = "".join(word.capitalize() for word in kind.split("_"))
        (service,) = [it for it in self.services if hasattr(type(it), method)]
        response = getattr(service, method)(getattr(operation, kind), context)
        result = operation_pb.OperationResult.FromString(response.SerializeToString())
        return gang_service_pb2.ExecuteResponse(result=result)

    def asked(self, method: str, request: Any) -> None:
        """Notes a request."""
        self.requests.setdefault(method, []).append(request)

    def hold(self, session_id: str, spec: Any, data: bytes) -> ref_pb2.Ref:
        """Keeps a tensor."""
        ref = ref_pb2.Ref(
            id=f"{self.rank}.{next(self.ids)}", rank=self.rank, session_id=session_id, tensor=spec
        )
        ref.tensor.device = "cpu"
        self.held[ref.id] = Held(ref, data)
        return ref

    def error(self, code: str, message: str, **more: Any) -> error_pb2.Error:
        """Makes an error of this rank."""
        number = error_pb2.ErrorCode.Value(f"ERROR_CODE_{code}")
        return error_pb2.Error(code=number, message=message, rank=self.rank, **more)


class SidecarGang:
    """Sidecars of a gang, each served at a unix socket (`unix`) and on loopback (`tcp`)."""

    def __init__(self, size: int, directory: Path) -> None:
        """Starts them; end them with `stop`."""
        self.size = size
        self._meeting = threading.Barrier(size)
        self._brought: list[Any] = [None] * size
        self.sidecars = [Sidecar(rank, self) for rank in range(size)]
        for sidecar in self.sidecars:
            sidecar.groups["world"] = tuple(range(size))
        self.servers: list[grpc.Server] = []
        self.tcp: list[str] = []
        self.unix = [f"unix:{directory / f'rank-{rank}'}" for rank in range(size)]
        for sidecar, unix in zip(self.sidecars, self.unix, strict=True):
            server, port = serve(sidecar, unix)
            self.servers.append(server)
            self.tcp.append(f"127.0.0.1:{port}")

    def __getitem__(self, rank: int) -> Sidecar:
        """Gives one sidecar."""
        return self.sidecars[rank]

    def endpoints(self) -> dict[str, Any]:
        """Gives what an endpoints file says."""
        ranks = [
            {"rank": rank, "pid": 1, "endpoints": [self.unix[rank], self.tcp[rank]]}
            for rank in range(self.size)
        ]
        return {"gang": "test", "size": self.size, "backend": "fake", "generation": 1, "ranks": ranks}

    def exchange(self, rank: int, brought: Any) -> list[Any]:
        """Waits for all ranks, and gives what each brought."""
        self._brought[rank] = brought
        self._meeting.wait(WAIT)
        everything = list(self._brought)
        self._meeting.wait(WAIT)
        return everything

    def stop(self) -> None:
        """Ends every server at once."""
        for stopped in [server.stop(None) for server in self.servers]:
            stopped.wait(WAIT)


class _Answering:
    """Notes each request, and lets a test answer it."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.me = sidecar

    def __getattribute__(self, name: str) -> Any:
        method = object.__getattribute__(self, name)
        if not name[0].isupper():
            return method
        me: Sidecar = object.__getattribute__(self, "me")

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            me.asked(name, request)
            return me.answers.get(name, method)(request, context)

        return answer


class _Collectives(_Answering, collective_service_pb2_grpc.CollectiveServiceServicer):
    def Barrier(self, request: Any, context: Any) -> Any:
        if request.call.group not in self.me.groups:
            error = self.me.error("UNKNOWN_GROUP", "no such group", group=request.call.group)
            return collective_pb.BarrierResponse(error=error)
        self.me.gang.exchange(self.me.rank, None)
        return collective_pb.BarrierResponse(value=_NONE)

    def Broadcast(self, request: Any, context: Any) -> Any:
        held = self._all(request)[request.src_rank_in_group]
        return collective_pb.BroadcastResponse(value=self._keep(request, held.ref.tensor, held.data))

    def AllReduce(self, request: Any, context: Any) -> Any:
        every = self._all(request)
        total = sum(np.frombuffer(held.data, "<f4") for held in every)
        value = self._keep(request, every[0].ref.tensor, np.asarray(total, "<f4").tobytes())
        return collective_pb.AllReduceResponse(value=value)

    def Reduce(self, request: Any, context: Any) -> Any:
        total = self.AllReduce(request, context).value
        here = self.me.rank == request.dst_rank_in_group
        return collective_pb.ReduceResponse(value=total if here else _NONE)

    def ReduceScatter(self, request: Any, context: Any) -> Any:
        every = self._all(request)
        total = sum(np.frombuffer(held.data, "<f4") for held in every)
        return collective_pb.ReduceScatterResponse(
            value=self._part(request, Held(every[0].ref, np.asarray(total, "<f4").tobytes()))
        )

    def Scatter(self, request: Any, context: Any) -> Any:
        whole = self._all(request)[request.src_rank_in_group]
        return collective_pb.ScatterResponse(value=self._part(request, whole))

    def AllToAll(self, request: Any, context: Any) -> Any:
        every = self._all(request)
        size = len(every[0].data) // self.me.gang.size
        parts = [held.data[self.me.rank * size :][:size] for held in every]
        value = self._keep(request, every[0].ref.tensor, b"".join(parts))
        return collective_pb.AllToAllResponse(value=value)

    def Gather(self, request: Any, context: Any) -> Any:
        every = self._all(request)
        here = self.me.rank == request.dst_rank_in_group
        return collective_pb.GatherResponse(value=self._joined(request, every) if here else _NONE)

    def AllGather(self, request: Any, context: Any) -> Any:
        return collective_pb.AllGatherResponse(value=self._joined(request, self._all(request)))

    def Scan(self, request: Any, context: Any) -> Any:
        every = self._all(request)
        so_far = sum(np.frombuffer(held.data, "<f4") for held in every[: self.me.rank + 1])
        value = self._keep(request, every[0].ref.tensor, np.asarray(so_far, "<f4").tobytes())
        return collective_pb.ScanResponse(value=value)

    def _all(self, request: Any) -> list[Held]:
        return self.me.gang.exchange(self.me.rank, self.me.held[request.ref_id])

    def _joined(self, request: Any, every: list[Held]) -> value_pb2.Value:
        spec = type(every[0].ref.tensor)()
        spec.CopyFrom(every[0].ref.tensor)
        spec.shape[0] *= len(every)
        return self._keep(request, spec, b"".join(held.data for held in every))

    def _part(self, request: Any, whole: Held) -> value_pb2.Value:
        spec = type(whole.ref.tensor)()
        spec.CopyFrom(whole.ref.tensor)
        spec.shape[0] //= self.me.gang.size
        size = len(whole.data) // self.me.gang.size
        return self._keep(request, spec, whole.data[self.me.rank * size :][:size])

    def _keep(self, request: Any, spec: Any, data: bytes) -> value_pb2.Value:
        return value_pb2.Value(ref=self.me.hold(request.call.session_id, spec, data))


class _Refs(_Answering, ref_service_pb2_grpc.RefServiceServicer):
    def OpenSession(self, request: Any, context: Any) -> Any:
        self.me.sessions.add(request.session_id)
        return ref_pb.OpenSessionResponse(session_id=request.session_id)

    def RenewSession(self, request: Any, context: Any) -> Any:
        return ref_pb.RenewSessionResponse(lease_ms=0)

    def CloseSession(self, request: Any, context: Any) -> Any:
        self.me.sessions.discard(request.session_id)
        gone = [ref_id for ref_id, held in self.me.held.items() if held.ref.session_id == request.session_id]
        for ref_id in gone:
            del self.me.held[ref_id]
        return ref_pb.CloseSessionResponse(released=len(gone))

    def CreateTensor(self, request: Any, context: Any) -> Any:
        return ref_pb.CreateTensorResponse(ref=self.me.hold(request.session_id, request.tensor, b""))

    def PutTensor(self, request: Iterator[Any], context: Any) -> Any:
        header = next(request).header
        data = b"".join(message.chunk for message in request)
        return ref_pb.PutTensorResponse(ref=self.me.hold(header.session_id, header.tensor, data))

    def GetTensor(self, request: Any, context: Any) -> Iterator[Any]:
        held = self.me.held.get(request.ref_id)
        if held is None:
            yield ref_pb.GetTensorResponse(error=self.me.error("UNKNOWN_REF", "no such ref", operation="get"))
            return
        yield ref_pb.GetTensorResponse(tensor=held.ref.tensor)
        for start in range(0, len(held.data), 1 << 20):
            yield ref_pb.GetTensorResponse(chunk=held.data[start : start + (1 << 20)])

    def DescribeRef(self, request: Any, context: Any) -> Any:
        return ref_pb.DescribeRefResponse(ref=self.me.held[request.ref_id].ref)

    def ListRefs(self, request: Any, context: Any) -> Any:
        refs = [held.ref for held in self.me.held.values() if held.ref.session_id == request.session_id]
        start = [ref.id for ref in refs].index(request.page_token) + 1 if request.page_token else 0
        page = refs[start : start + 2]
        token = page[-1].id if start + 2 < len(refs) else ""
        return ref_pb.ListRefsResponse(page=ref_pb.RefPage(refs=page, next_page_token=token))

    def ReleaseRefs(self, request: Any, context: Any) -> Any:
        for ref_id in request.ref_ids:
            del self.me.held[ref_id]
        return ref_pb.ReleaseRefsResponse(released=len(request.ref_ids))

    def OpenSharedMemory(self, request: Any, context: Any) -> Any:
        """It shares none."""
        refused = self.me.error("UNSUPPORTED_OPERATION", "shares no memory")
        return ref_pb.OpenSharedMemoryResponse(error=refused)

    def CloseSharedMemory(self, request: Any, context: Any) -> Any:
        """It has none."""
        return ref_pb.CloseSharedMemoryResponse(closed=0)

    def PutSharedTensor(self, request: Any, context: Any) -> Any:
        """It has none."""
        refused = self.me.error("UNKNOWN_SHARED_MEMORY", "no shared memory")
        return ref_pb.PutSharedTensorResponse(error=refused)

    def GetSharedTensor(self, request: Any, context: Any) -> Any:
        """It has none."""
        refused = self.me.error("UNKNOWN_SHARED_MEMORY", "no shared memory")
        return ref_pb.GetSharedTensorResponse(error=refused)


class _Groups(_Answering, group_service_pb2_grpc.GroupServiceServicer):
    def NewGroup(self, request: Any, context: Any) -> Any:
        self.me.gang.exchange(self.me.rank, None)
        self.me.groups[request.name] = tuple(request.ranks)
        return group_service_pb2.NewGroupResponse(group=self._group(request.name))

    def DescribeGroup(self, request: Any, context: Any) -> Any:
        if request.name not in self.me.groups:
            error = self.me.error("UNKNOWN_GROUP", "no such group", group=request.name)
            return group_service_pb2.DescribeGroupResponse(error=error)
        return group_service_pb2.DescribeGroupResponse(group=self._group(request.name))

    def ListGroups(self, request: Any, context: Any) -> Any:
        return group_service_pb2.ListGroupsResponse(groups=[self._group(name) for name in self.me.groups])

    def DestroyGroup(self, request: Any, context: Any) -> Any:
        group = self._group(request.call.group)
        del self.me.groups[request.call.group]
        return group_service_pb2.DestroyGroupResponse(group=group)

    def _group(self, name: str) -> group_service_pb2.Group:
        ranks = self.me.groups[name]
        place = ranks.index(self.me.rank) if self.me.rank in ranks else None
        return group_service_pb2.Group(
            name=name, ranks=ranks, rank_in_group=place, backend="fake", generation=1
        )


class _Ranks(_Answering, rank_service_pb2_grpc.RankServiceServicer):
    def DescribeRank(self, request: Any, context: Any) -> Any:
        return rank_service_pb2.DescribeRankResponse(
            rank=self.me.rank,
            world_size=self.me.gang.size,
            generation=1,
            generation_state=rank_service_pb2.GENERATION_STATE_OVER,
            generation_error=self.me.error("PEER_LOST", "rank 9 is gone"),
            sessions=[
                rank_service_pb2.SessionUsage(session_id=session) for session in sorted(self.me.sessions)
            ],
        )

    def PrepareGeneration(self, request: Any, context: Any) -> Any:
        raise AssertionError("forming is asked of GangService")

    def CommitGeneration(self, request: Any, context: Any) -> Any:
        raise AssertionError("forming is asked of GangService")

    def AbortGeneration(self, request: Any, context: Any) -> Any:
        raise AssertionError("forming is asked of GangService")

    def WatchEvents(self, request: Any, context: Any) -> Any:
        raise AssertionError("nobody watches these")


class _Operations(_Answering, operation_service_pb2_grpc.OperationServiceServicer):
    def Run(self, request: Any, context: Any) -> Any:
        result = self.me.part(request.operation, context).result
        return operation_pb.RunResponse.FromString(result.SerializeToString())

    def Submit(self, request: Any, context: Any) -> Any:
        kind = request.operation.WhichOneof("kind")
        operation_id = getattr(request.operation, kind).call.operation_id
        return operation_pb.SubmitResponse(operation_id=operation_id)

    def Poll(self, request: Any, context: Any) -> Any:
        raise AssertionError("a test answers this")

    def Await(self, request: Any, context: Any) -> Any:
        raise AssertionError("a test answers this")

    def Cancel(self, request: Any, context: Any) -> Any:
        return operation_pb.CancelResponse(cancelled=True)

    def Coalesce(self, request: Any, context: Any) -> Any:
        raise AssertionError("a test answers this")

    def RunProgram(self, request: Any, context: Any) -> Any:
        raise AssertionError("a test answers this")


def executed(response: Any, number: int = 0) -> gang_service_pb2.ExecuteResponse:
    """Gives what a stream answers to the request of that number, which is written alike."""
    answer = gang_service_pb2.ExecuteResponse.FromString(response.SerializeToString())
    answer.number = number
    return answer


class _Gangs(_Answering, gang_service_pb2_grpc.GangServiceServicer):
    def Call(self, request: Any, context: Any) -> Any:
        return self._on_members(request, context)

    def _on_members(self, request: Any, context: Any) -> Any:
        ranks = self.me.groups.get(request.call.group or "world")
        if ranks is None:
            error = self.me.error("UNKNOWN_GROUP", "no such group", group=request.call.group)
            return gang_service_pb2.CallResponse(error=error)
        for operation in request.operations:
            getattr(operation, operation.WhichOneof("kind")).call.CopyFrom(request.call)
        operations = list(request.operations) * (len(ranks) if len(request.operations) == 1 else 1)
        with ThreadPoolExecutor(len(ranks)) as threads:
            parts = [
                threads.submit(self.me.gang[rank].part, operation, context)
                for rank, operation in zip(ranks, operations, strict=True)
            ]
        members = [
            gang_service_pb2.MemberOutcome(rank=rank, result=part.result().result)
            for rank, part in zip(ranks, parts, strict=True)
        ]
        outcomes = gang_service_pb2.MemberOutcomes(operation_id=request.call.operation_id, members=members)
        return gang_service_pb2.CallResponse(outcomes=outcomes)

    def Execute(self, request_iterator: Any, context: Any) -> Any:
        """Answers each request as soon as it is done."""
        ready: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._read, args=(request_iterator, context, ready), daemon=True).start()
        while (response := ready.get()) is not None:
            yield response

    def _read(self, requests: Any, context: Any, ready: SimpleQueue[Any]) -> None:
        with ThreadPoolExecutor(32) as threads, contextlib.suppress(grpc.RpcError):
            for each in requests:
                if each.HasField("call"):
                    self.me.asked("Call", each.call)
                    answer = self.me.answers.get("Call", self._on_members)
                    threads.submit(self._answer, ready, each.number, answer, each.call, context)
                elif each.HasField("part"):
                    threads.submit(self._answer, ready, each.number, self.me.part, each.part, context)
        ready.put(None)

    def _answer(
        self,
        ready: SimpleQueue[Any],
        number: int,
        answer: Callable[[Any, Any], Any],
        asked: Any,
        context: Any,
    ) -> None:
        try:
            ready.put(executed(answer(asked, context), number))
        except Exception:
            # As an RPC of its own, the stream fails.
            ready.put(None)
            raise

    def Form(self, request: Any, context: Any) -> Any:
        formed = gang_service_pb2.Formed(generation=2, world_size=len(request.endpoints), took_us=12_500)
        return gang_service_pb2.FormResponse(formed=formed)


_NONE = value_pb2.Value(none=value_pb2.NoneValue())


def serve(
    sidecar: Sidecar, unix: str, credentials: grpc.ServerCredentials | None = None
) -> tuple[grpc.Server, int]:
    """Starts a sidecar's server, and gives it and its port on loopback."""
    server = grpc.server(ThreadPoolExecutor(32))
    # Not every RPC is there.
    kinds: list[type[Any]] = [_Collectives, _Refs, _Groups, _Ranks, _Gangs, _Operations]
    sidecar.services = [it(sidecar) for it in kinds]
    collectives, refs, groups, ranks, gangs, operations = sidecar.services
    collective_service_pb2_grpc.add_CollectiveServiceServicer_to_server(collectives, server)
    ref_service_pb2_grpc.add_RefServiceServicer_to_server(refs, server)
    group_service_pb2_grpc.add_GroupServiceServicer_to_server(groups, server)
    rank_service_pb2_grpc.add_RankServiceServicer_to_server(ranks, server)
    gang_service_pb2_grpc.add_GangServiceServicer_to_server(gangs, server)
    operation_service_pb2_grpc.add_OperationServiceServicer_to_server(operations, server)
    if credentials is None:
        server.add_insecure_port(unix)
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    return server, port
