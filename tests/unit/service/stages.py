"""A gang on the fake backend with a real server for each rank, and streams of its ranks: by gRPC, and without."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

import grpc
from tests.support.local_gang import LocalGang

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collectives,
    error_pb2,
    gang_service_pb2 as pb,
    gang_service_pb2_grpc,
    operation_service_pb2 as operations,
)
from rankbridge_server.core.errors import Phase
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.service.server import Server
from rankbridge_server.service.streams.local_streams import SUFFIX

SIZE = 3
PATIENCE_S = 60.0
BARRIER_PART = operations.Operation(barrier=collectives.BarrierRequest())


class Stage:
    """A gang, and a server and a channel for each rank. `way`: by which streams go."""

    def __init__(self, directory: Path, way: type[Way]) -> None:
        self.way = way
        self.opened: list[Way] = []
        self.gang = LocalGang(SIZE)
        self.servers = [
            Server(rank, [f"unix:{directory}/{place}"], 64) for place, rank in enumerate(self.gang.ranks)
        ]
        for server in self.servers:
            server.start()
        self.channels = [grpc.insecure_channel(server.endpoints[0]) for server in self.servers]

    def streams(self, at: int = 0) -> int:
        return len(self.servers[at]._gang.streams)

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        for rank, server in zip(self.gang.ranks, self.servers, strict=True):
            rank.close("the test is over")
            server.stop(0.5)
        for way in self.opened:
            way.hang_up()


class Way(Protocol):
    """How a stream goes."""

    def __init__(self, stage: Stage, at: int) -> None: ...

    def send(self, request: pb.ExecuteRequest) -> None: ...

    def end(self) -> None:
        """Of requests."""

    def hang_up(self) -> None: ...

    def answers(self) -> Iterator[pb.ExecuteResponse]:
        """Until the stream has ended, well."""


class ByGrpc:
    """An RPC."""

    def __init__(self, stage: Stage, at: int) -> None:
        self._requests: SimpleQueue[pb.ExecuteRequest | None] = SimpleQueue()
        stub = gang_service_pb2_grpc.GangServiceStub(stage.channels[at])
        self._rpc: Any = stub.Execute(iter(self._requests.get, None), timeout=PATIENCE_S)

    def send(self, request: pb.ExecuteRequest) -> None:
        self._requests.put(request)

    def end(self) -> None:
        self._requests.put(None)

    def hang_up(self) -> None:
        self._rpc.cancel()

    def answers(self) -> Iterator[pb.ExecuteResponse]:
        yield from self._rpc
        assert self._rpc.code() is grpc.StatusCode.OK


class Locally:
    """A connection."""

    def __init__(self, stage: Stage, at: int) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.settimeout(PATIENCE_S)
        self._sock.connect(stage.servers[at].endpoints[0].removeprefix("unix:") + SUFFIX)
        self._incoming = self._sock.makefile("rb")

    def send(self, request: pb.ExecuteRequest) -> None:
        body = request.SerializeToString()
        # One that has ended takes nothing more, as a test may want to see.
        with suppress(BrokenPipeError):
            self._sock.sendall(len(body).to_bytes(4, "big") + body)

    def end(self) -> None:
        self._sock.shutdown(socket.SHUT_WR)

    def hang_up(self) -> None:
        self._incoming.close()
        self._sock.close()

    def answers(self) -> Iterator[pb.ExecuteResponse]:
        while length := int.from_bytes(self._whole(4), "big"):
            yield pb.ExecuteResponse.FromString(self._whole(length))
        assert self._incoming.read() == b""
        self.hang_up()

    def _whole(self, length: int) -> bytes:
        data = self._incoming.read(length)
        assert len(data) == length, "it broke off"
        return data


class Stream:
    """A stream of gang calls to one rank."""

    def __init__(self, stage: Stage, at: int = 0) -> None:
        self._way = stage.way(stage, at)
        stage.opened.append(self._way)
        self._answers = self._way.answers()

    def call(
        self, parts: Sequence[operations.Operation] = (BARRIER_PART,), *, number: int = 0, **call: Any
    ) -> None:
        message = call_pb2.Call(**{"timeout_ms": 60_000, **call})
        request = pb.CallRequest(call=message, operations=parts)
        self._way.send(pb.ExecuteRequest(call=request, number=number))

    def part(self, part: operations.Operation, *, number: int = 0) -> None:
        self._way.send(pb.ExecuteRequest(part=part, number=number))

    def withdraw(self, operation_id: str) -> None:
        self._way.send(pb.ExecuteRequest(withdraw=operation_id))

    def say_nothing(self) -> None:
        self._way.send(pb.ExecuteRequest())

    def end(self) -> None:
        self._way.end()

    def hang_up(self) -> None:
        self._way.hang_up()

    def answer(self) -> pb.ExecuteResponse:
        return next(self._answers)

    def result(self) -> tuple[str, list[str]]:
        """Id and every member's outcome of the next answer: "value", or the error's code."""
        response = self.answer()
        assert response.WhichOneof("outcome") == "outcomes", response.error
        each = [it.result for it in response.outcomes.members]
        assert len(each) == SIZE
        return response.outcomes.operation_id, [
            name_of(it.error) if it.WhichOneof("outcome") == "error" else "value" for it in each
        ]

    def rest(self) -> list[pb.ExecuteResponse]:
        """Every answer until the stream has ended, well."""
        return list(self._answers)


def name_of(error: error_pb2.Error) -> str:
    return error_pb2.ErrorCode.Name(error.code).removeprefix("ERROR_CODE_")


class Held:
    """A rank whose lane does nothing else while the block runs, or until it is let go."""

    def __init__(self, gang: LocalGang, rank: int) -> None:
        generation = gang.ranks[rank]._generation
        group = generation.get("world") if generation else None
        assert group is not None
        assert group.membership is not None
        self._go = threading.Event()
        group.membership.lane.add(self._hold)

    def _hold(self) -> None:
        self._go.wait(PATIENCE_S)

    def let_go(self) -> None:
        self._go.set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.let_go()


def sequences(stage: Stage) -> list[int]:
    return [rank.group("world").sequence for rank in stage.gang.ranks]


def is_healthy(stage: Stage) -> bool:
    return stage.gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def all_begun(stage: Stage, count: int) -> bool:
    """Whether so many gang calls are led, the leader waits for the others in the first, and rank 1 has its part of it.

    A member has its part before the leader begins with its own: an end of the generation in between is another error.
    """
    led = list(stage.gang.ranks[0].gang_calls._led.values())
    own = led[0].own if led else None
    return len(led) == count and own is not None and own.phase is Phase.ADMISSION and pending(stage, 1) == 1


def pending(stage: Stage, rank: int) -> int:
    return stage.gang.ranks[rank].describe().pending
