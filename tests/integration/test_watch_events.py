"""RankService.WatchEvents, as any gRPC client sees it: sidecars of this process, over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import PATIENCE_S, until

from rankbridge.v1 import error_pb2, event_pb2, rank_service_pb2, rank_service_pb2_grpc
from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.core.errors import ErrorCode, Failure
from rankbridge_server.core.events import KEPT, MAX_WATCHES, Kind
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.rank import Identity, Rank
from rankbridge_server.links.pairs import PairLinkMaker
from rankbridge_server.service.server import Server

DEADLINE_S = 60.0
LONG = Failure(code=ErrorCode.MISMATCH, message="x" * 5000)


class Sidecar:
    """One rank, its server and a client of it."""

    def __init__(self, rank: Rank, directory: Path) -> None:
        self.rank = rank
        self.server = Server(rank, [f"unix:{directory}/rank"], max_pending=8)
        self.server.start()
        self.channel = grpc.insecure_channel(self.server.endpoints[0])
        self.stub = rank_service_pb2_grpc.RankServiceStub(self.channel)

    def watch(self, **request: Any) -> Any:
        return self.stub.WatchEvents(
            rank_service_pb2.WatchEventsRequest(**request), timeout=DEADLINE_S, wait_for_ready=True
        )

    def add(self, count: int, failure: Failure = LONG) -> None:
        for _ in range(count):
            self.rank.events.add(Kind.MISMATCH, 0, 1, failure)

    @property
    def watches(self) -> int:
        return self.rank.events.watches

    def close(self) -> None:
        self.channel.close()
        self.rank.close("the test is over")
        self.server.stop(0)


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    """The first rank of a gang of two that is formed."""
    it = Sidecar(LocalGang(2).ranks[0], tmp_path)
    yield it
    it.close()


def test_a_watcher_is_told_at_once_how_the_rank_is(sidecar: Sidecar) -> None:
    watching = next(sidecar.watch()).watching
    assert (watching.rank, watching.last) == (0, 1)
    assert watching.log == sidecar.rank.events.id
    assert watching.state.number == 1
    assert watching.state.generation == 1
    assert watching.state.formed.world_size == 2
    assert [(it.name, list(it.ranks)) for it in watching.state.formed.groups] == [("world", [0, 1])]


def test_a_rank_that_was_never_formed_has_no_state(tmp_path: Path) -> None:
    rank = Rank(Identity(3, 4, local_rank=0), FakeBackend(FakeHub()), PairLinkMaker(), limits=Limits())
    it = Sidecar(rank, tmp_path)
    watching = next(it.watch()).watching
    assert (watching.rank, watching.last, watching.HasField("state")) == (3, 0, False)
    it.close()


def test_the_end_of_a_generation_is_told_and_then_the_stream_ends_with_the_rank(sidecar: Sidecar) -> None:
    stream = sidecar.watch()
    next(stream)
    sidecar.rank.close("the rank stops")
    [response] = stream
    assert response.event.over.code == error_pb2.ERROR_CODE_ABORTED
    assert "the rank stops" in response.event.over.message
    assert stream.code() is grpc.StatusCode.OK


def test_a_server_stops_with_watchers_that_never_read(sidecar: Sidecar) -> None:
    streams = [sidecar.watch() for _ in range(5)]
    for stream in streams:
        next(stream)
    # Not the rank: its end alone would end the streams.
    stopping = threading.Thread(target=sidecar.server.stop, args=(0.1,))
    stopping.start()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    until(lambda: sidecar.watches == 0)
    with pytest.raises(grpc.RpcError):
        next(streams[0])


def test_watchers_that_come_back_miss_nothing_that_is_kept(sidecar: Sidecar) -> None:
    sidecar.add(3)
    stream = sidecar.watch(after=2, log=sidecar.rank.events.id)
    next(stream)
    assert [(it.event.number, it.missed) for it in (next(stream), next(stream))] == [(3, 0), (4, 0)]
    sidecar.add(KEPT)
    other = sidecar.watch(after=2, log=sidecar.rank.events.id)
    next(other)
    first = next(other)
    assert (first.event.number, first.missed) == (5, 2)


def test_a_watcher_of_another_process_begins_with_everything(sidecar: Sidecar) -> None:
    stream = sidecar.watch(after=1, log=sidecar.rank.events.id ^ 1)
    next(stream)
    assert next(stream).event.number == 1


def test_only_the_kinds_that_were_asked_for_come(sidecar: Sidecar) -> None:
    stream = sidecar.watch(kinds=[event_pb2.EVENT_KIND_OVER], after=0)
    next(stream)
    sidecar.add(2)
    sidecar.rank.abort(1, "enough")
    assert next(stream).event.WhichOneof("kind") == "over"


@pytest.mark.parametrize("kind", [0, 99])
def test_a_kind_that_is_none_is_refused(sidecar: Sidecar, kind: int) -> None:
    [response] = sidecar.watch(kinds=[kind])
    assert response.error.code == error_pb2.ERROR_CODE_INVALID_ARGUMENT
    assert str(kind) in response.error.message
    assert sidecar.watches == 0


def test_a_slow_watcher_holds_up_nobody_and_is_told_what_it_missed(sidecar: Sidecar) -> None:
    stream = sidecar.watch()
    next(stream)
    # 50 MB, which no window holds.
    sidecar.add(10_000)
    assert len(sidecar.rank.events) == KEPT
    read = missed = number = 0
    while number < 10_001:
        response = next(stream)
        read, missed, number = read + 1, missed + response.missed, response.event.number
    assert missed > 0
    assert read + missed == 10_000


def test_too_many_watchers_are_refused_and_others_are_answered(sidecar: Sidecar) -> None:
    streams = [sidecar.watch() for _ in range(MAX_WATCHES)]
    for stream in streams:
        next(stream)
    [refused] = sidecar.watch()
    assert refused.error.code == error_pb2.ERROR_CODE_RESOURCE_EXHAUSTED
    request = rank_service_pb2.DescribeRankRequest()
    assert sidecar.stub.DescribeRank(request, timeout=DEADLINE_S).generation == 1
    streams[0].cancel()
    until(lambda: sidecar.watches == MAX_WATCHES - 1)
    assert next(sidecar.watch()).HasField("watching")


def test_watchers_that_are_cancelled_leave_no_threads(sidecar: Sidecar) -> None:
    for _ in range(4):
        streams = [sidecar.watch() for _ in range(50)]
        for stream in streams:
            next(stream)
        for stream in streams:
            stream.cancel()
        until(lambda: sidecar.watches == 0)
    # Threads are used again: 200 watchers have not made so many.
    assert sum(thread.name.startswith("rpc") for thread in threading.enumerate()) <= 110


def test_a_watcher_that_cancels_while_it_does_not_read_ends(sidecar: Sidecar) -> None:
    stream = sidecar.watch()
    next(stream)
    sidecar.add(10_000)
    stream.cancel()
    until(lambda: sidecar.watches == 0)
