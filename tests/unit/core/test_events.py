"""The log of what happened, and those who read it."""

from __future__ import annotations

import threading

import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import until

from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure
from rankbridge_server.core.events import MAX_WATCHES, EventLog, Formed, Kind, Watch, WatchedEvent
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.rank import State

FORMED = Formed(2, ())
OVER = Failure(code=ErrorCode.PEER_LOST, message="rank 1 is lost")
PATIENCE_S = 30


def add(log: EventLog, *kinds: Kind) -> None:
    for kind in kinds:
        log.add(kind, 0, 1, FORMED if kind is Kind.FORMED else OVER)


def numbers(watch: Watch, count: int) -> list[tuple[int, int]]:
    """Number and missed of the next events, which are there."""
    seen = [watch.next() for _ in range(count)]
    return [(it.event.number, it.missed) for it in seen if it is not None]


def test_a_watcher_sees_what_happens_from_then_on() -> None:
    log = EventLog()
    add(log, Kind.FORMED)
    watch = log.watch()
    add(log, Kind.MISMATCH, Kind.OVER)
    assert watch.last == 1
    assert watch.state is not None
    assert (watch.state.kind, watch.state.number) == (Kind.FORMED, 1)
    assert numbers(watch, 2) == [(2, 0), (3, 0)]


def test_events_tell_when_and_where_they_happened() -> None:
    log = EventLog()
    log.add(Kind.OVER, 3, 7, OVER)
    log.add(Kind.OVER, 3, 8, OVER)
    watch = log.watch(after=0)
    one, other = watch.next(), watch.next()
    assert one is not None
    assert other is not None
    assert (one.event.rank, one.event.generation, one.event.detail) == (3, 7, OVER)
    assert 1_500_000_000_000_000 < one.event.time_us <= other.event.time_us


def test_a_watcher_that_comes_back_misses_nothing_that_is_kept() -> None:
    log = EventLog()
    add(log, *[Kind.MISMATCH] * 5)
    assert numbers(log.watch(after=2, log=log.id), 3) == [(3, 0), (4, 0), (5, 0)]


def test_what_is_not_kept_is_counted() -> None:
    log = EventLog(kept=3)
    add(log, *[Kind.MISMATCH] * 10)
    assert numbers(log.watch(after=2), 3) == [(8, 5), (9, 0), (10, 0)]
    assert numbers(log.watch(after=0), 3) == [(8, 7), (9, 0), (10, 0)]


def test_a_slow_watcher_is_told_how_many_it_missed() -> None:
    log = EventLog(kept=2)
    watch = log.watch()
    add(log, Kind.MISMATCH)
    assert numbers(watch, 1) == [(1, 0)]
    add(log, *[Kind.MISMATCH] * 5)
    assert numbers(watch, 2) == [(5, 3), (6, 0)]


def test_only_the_kinds_that_were_asked_for_come_and_the_missed_are_not_forgotten() -> None:
    log = EventLog(kept=2)
    watch = log.watch([Kind.OVER])
    add(log, Kind.OVER, Kind.OVER, Kind.MISMATCH, Kind.OVER, Kind.MISMATCH)
    assert numbers(watch, 1) == [(4, 3)]


@pytest.mark.parametrize("after", [3, 2])
def test_a_place_in_another_log_stands_for_everything(after: int) -> None:
    log = EventLog()
    add(log, Kind.FORMED, Kind.OVER)
    other = log.id - 1 or 5
    assert numbers(log.watch(after=after, log=other if after == 2 else 0), 2) == [(1, 0), (2, 0)]


def test_the_newest_state_is_told_also_when_it_is_not_kept_any_more() -> None:
    log = EventLog(kept=1)
    assert log.watch().state is None
    add(log, Kind.FORMED, Kind.MISMATCH)
    state = log.watch().state
    assert state is not None
    assert state.kind is Kind.FORMED


def test_a_watcher_waits_for_the_next_event() -> None:
    log = EventLog()
    watch, seen = log.watch(), list[WatchedEvent | None]()
    reader = threading.Thread(target=lambda: seen.append(watch.next()))
    reader.start()
    add(log, Kind.OVER)
    reader.join(PATIENCE_S)
    assert [it and it.event.kind for it in seen] == [Kind.OVER]


@pytest.mark.parametrize("end", ["watch", "log"])
def test_whoever_waits_is_woken_by_the_end(end: str) -> None:
    log = EventLog()
    watch, seen = log.watch(), list[WatchedEvent | None]()
    reader = threading.Thread(target=lambda: seen.append(watch.next()))
    reader.start()
    if end == "watch":
        watch.close()
    else:
        log.close()
    reader.join(PATIENCE_S)
    assert seen == [None]


def test_what_happened_before_the_end_is_still_seen() -> None:
    log = EventLog()
    watch = log.watch()
    add(log, Kind.OVER)
    log.close()
    assert numbers(watch, 1) == [(1, 0)]
    assert watch.next() is None


def test_there_is_room_for_so_many_watchers_and_again_when_one_ends() -> None:
    log = EventLog()
    watches = [log.watch() for _ in range(MAX_WATCHES)]
    with pytest.raises(BridgeError) as error:
        log.watch()
    assert error.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
    watches[0].close()
    watches[0].close()
    log.watch()
    with pytest.raises(BridgeError):
        log.watch()


def test_logs_are_told_apart() -> None:
    assert len({EventLog().id for _ in range(100)} - {0}) == 100


def test_a_gang_tells_how_its_generations_begin_and_end() -> None:
    gang = LocalGang(2)
    watch = gang.ranks[1].events.watch(after=0)
    gang.form()
    gang.ranks[0].abort(2, "enough")
    until(lambda: gang.ranks[1].describe().state is State.OVER)
    gang.ranks[1].close("the rank stops")
    seen = []
    while (it := watch.next()) is not None:
        seen.append(it.event)
    assert [(it.kind, it.generation, it.rank) for it in seen] == [
        (Kind.FORMED, 1, 1),
        (Kind.OVER, 1, 1),
        (Kind.FORMED, 2, 1),
        (Kind.OVER, 2, 1),
    ]
    formed, over = seen[0].detail, seen[3].detail
    assert isinstance(formed, Formed)
    assert (formed.world_size, [group.name for group in formed.groups]) == (2, ["world"])
    assert isinstance(over, Failure)
    assert over.code is ErrorCode.ABORTED
    assert "enough" in over.message
    assert over.place is not None
    assert (over.place.rank, over.place.generation) == (1, 2)


def test_only_the_first_rank_of_a_group_tells_of_its_admissions() -> None:
    gang = LocalGang(2)
    watches = [rank.events.watch([Kind.PEER_MISSING]) for rank in gang.ranks]
    gang.missed(barrier, [None, Barrier()], operation_id="alone", timeout=1.0)
    for rank in gang.ranks:
        rank.close("the test is over")
    seen = watches[0].next()
    assert seen is not None
    failure = seen.event.detail
    assert isinstance(failure, Failure)
    assert failure.place is not None
    assert (failure.place.rank, failure.place.operation, failure.place.operation_id) == (
        1,
        "barrier",
        "alone",
    )
    assert [(it.rank, it.state.name) for it in failure.ranks] == [(0, "MISSING"), (1, "ARRIVED")]
    assert [watch.next() for watch in watches] == [None, None]
