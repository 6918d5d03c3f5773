"""What happens on real ranks, as the Python client tells it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RunningGang, up
from tests.support.processes import watched

import rankbridge
from rankbridge import Events, Gang

DEADLINE_S = 60.0
E = TypeVar("E", bound=rankbridge.Event)


@pytest.fixture(scope="module", params=["fake", "gloo"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGang]:
    """A gang of three that tells of stragglers soon, on each backend in turn."""
    options = [*PATIENT, "--straggler-after", "0.05"]
    with up(tmp_path_factory.mktemp("events"), 3, request.param, options) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, timeout=DEADLINE_S) as gang:
        yield gang


@pytest.fixture
def name() -> str:
    """An operation id that nothing else has."""
    return uuid.uuid4().hex


@contextmanager
def bounded(events: Events) -> Iterator[Events]:
    """A watch that ends in time, whether what the test waits for happens or not."""
    timer = threading.Timer(DEADLINE_S, events.close)
    timer.start()
    try:
        with events:
            yield events
    finally:
        timer.cancel()


def first(events: Events, kind: type[E], wanted: Callable[[E], bool] = lambda it: True) -> E:
    """The first event of a kind that is wanted. On a loaded machine others may straggle, too."""
    for event in events:
        if isinstance(event, kind) and wanted(event):
            return event
    raise AssertionError(f"no {kind.__name__} came")


def miss(gang: Gang, operation_id: str, rank: int = 1) -> rankbridge.PeerMissingError:
    """An operation for which one rank comes alone."""
    with pytest.raises(rankbridge.PeerMissingError) as error:
        gang[rank].barrier(operation_id=operation_id, timeout=0.5)
    return error.value


def test_how_every_rank_was_formed_is_told(gang: Gang) -> None:
    with bounded(gang.events(["formed"], after=0)) as events:
        assert sorted(events.watching) == [0, 1, 2]
        formed = [next(events) for _ in range(3)]
    assert sorted(it.rank for it in formed) == [0, 1, 2]
    for it in formed:
        assert isinstance(it, rankbridge.FormedEvent)
        assert (it.number, it.generation, it.world_size, it.missed) == (1, 1, 3, 0)
        assert [(group.name, group.ranks) for group in it.groups] == [("world", (0, 1, 2))]
        assert events.watching[it.rank].state == it


def test_a_mismatch_is_told_once_with_every_side(gang: Gang, name: str) -> None:
    with bounded(gang.events(["mismatch"])) as events:
        for operation_id in (name, f"{name}-again"):
            refs = gang.put([[1.0]] * 3)
            started = [
                gang[0].start("barrier", operation_id=operation_id),
                gang[1].start("all_reduce", refs[1], operation_id=operation_id),
                gang[2].start("barrier", operation_id=operation_id),
            ]
            assert [type(it.exception()) for it in started] == [rankbridge.MismatchError] * 3
        events_of_both = [next(events), next(events)]
    for it, operation_id in zip(events_of_both, (name, f"{name}-again"), strict=True):
        assert isinstance(it, rankbridge.MismatchEvent)
        assert isinstance(it.error, rankbridge.MismatchError)
        assert (it.rank, it.error.rank, it.error.group, it.error.operation) == (0, 0, "world", "barrier")
        assert it.error.operation_id == operation_id
        assert [(side.rank, side.state) for side in it.error.ranks] == [
            (0, "arrived"),
            (1, "disagrees"),
            (2, "arrived"),
        ]


def test_missing_peers_are_told_by_the_first_rank_though_it_is_missing_itself(gang: Gang, name: str) -> None:
    with bounded(gang.events(["peer_missing"])) as events:
        miss(gang, name)
        event = next(events)
    assert isinstance(event, rankbridge.PeerMissingEvent)
    assert isinstance(event.error, rankbridge.PeerMissingError)
    assert (event.rank, event.error.rank, event.error.operation_id) == (0, 1, name)
    assert [side.rank for side in event.error.ranks if side.state == "missing"] == [0, 2]


def test_stragglers_are_told_of_while_they_are_missing_and_once_they_have_come(gang: Gang, name: str) -> None:
    with bounded(gang.events(["straggler"])) as events:
        barriers = [gang[1].start("barrier", operation_id=name)]
        missing = first(events, rankbridge.StragglerEvent, lambda it: it.operation_id == name)
        barriers += [gang[rank].start("barrier", operation_id=name) for rank in (0, 2)]
        come = first(events, rankbridge.StragglerEvent, lambda it: it.operation_id == name)
        assert [it.exception() for it in barriers] == [None] * 3
    assert (missing.rank, missing.group, missing.operation) == (0, "world", "barrier")
    assert (missing.arrived, missing.missing) == ({1: 0.0}, (0, 2))
    assert missing.waited >= 0.05
    assert (come.missing, sorted(come.arrived), come.arrived[1]) == ((), [0, 1, 2], 0.0)
    assert come.waited == pytest.approx(max(come.arrived.values()))
    assert come.waited >= missing.waited


def test_a_group_tells_by_its_own_first_rank(gang: Gang, name: str) -> None:
    with bounded(gang.events()) as events:
        group = gang.new_group(name, [2, 1])
        pending = gang[1].start("barrier", group=group, operation_id=name)
        event = first(events, rankbridge.StragglerEvent, lambda it: it.operation_id == name)
        gang[2].barrier(group=group, operation_id=name)
        pending.result()
        gang.destroy_group(group)
    assert (event.rank, event.group, event.arrived, event.missing) == (2, name, {1: 0.0}, (2,))


def test_who_watches_again_misses_nothing(gang: Gang, name: str) -> None:
    with bounded(gang[0].events(["peer_missing"])) as events:
        miss(gang, f"{name}-0")
        next(events)
    miss(gang, f"{name}-1")
    miss(gang, f"{name}-2")
    with bounded(gang[0].events(["peer_missing"], after=events.position[0])) as events:
        both = [next(events), next(events)]
    assert [it.error.operation_id for it in both if isinstance(it, rankbridge.PeerMissingEvent)] == [
        f"{name}-1",
        f"{name}-2",
    ]
    assert [it.missed for it in both if isinstance(it, rankbridge.Event)] == [0, 0]


def test_who_watched_and_read_nothing_misses_nothing_either(gang: Gang, name: str) -> None:
    with gang.events(["peer_missing"]) as events:
        pass
    miss(gang, name)
    with bounded(gang.events(["peer_missing"], after=events.position)) as events:
        event = next(events)
    assert isinstance(event, rankbridge.PeerMissingEvent)
    assert event.error.operation_id == name


def test_a_kind_that_is_none_is_refused_before_anything_is_sent(gang: Gang) -> None:
    with pytest.raises(rankbridge.InvalidArgumentError, match="event kind"):
        gang.events(["lost"])  # type: ignore[list-item]


def test_a_watch_that_is_closed_ends_whoever_waits(gang: Gang) -> None:
    events = gang.events(["mismatch"])
    seen: list[object] = []
    reader = threading.Thread(target=lambda: seen.extend(events))
    reader.start()
    events.close()
    reader.join(DEADLINE_S)
    assert not reader.is_alive()
    assert seen == []
    assert not [it for it in threading.enumerate() if it.name == "rankbridge-events"]


def test_a_watch_ends_with_its_gang(running: RunningGang) -> None:
    with rankbridge.connect(running.description, timeout=DEADLINE_S) as gang:
        events, alone = gang.events(["mismatch"]), gang[1].events(["mismatch"])
    with bounded(events):
        ended = list(events)
    assert sorted(it.rank for it in ended if isinstance(it, rankbridge.WatchEnded)) == [0, 1, 2]
    with bounded(alone), pytest.raises(rankbridge.CallCancelledError):
        next(alone)
    with pytest.raises(rankbridge.CallCancelledError):
        gang.events()


def test_the_asyncio_front_tells_the_same(running: RunningGang, name: str) -> None:
    async def program() -> list[rankbridge.Event | rankbridge.WatchEnded]:
        gang = await rankbridge.aconnect(running.description, timeout=DEADLINE_S)
        async with gang, await gang.events(["peer_missing"]) as events:
            with pytest.raises(rankbridge.PeerMissingError):
                await gang[1].barrier(operation_id=name, timeout=0.5)
            seen = [await anext(events)]
            async with await gang[0].events(["peer_missing"], after=events.watching[0].last) as again:
                seen.append(await anext(again))
            assert again.position == {0: events.position[0]}
            waiting = asyncio.create_task(anext(events, None))
            await asyncio.sleep(0)
            await events.close()
            assert await waiting is None
            with pytest.raises(rankbridge.InvalidArgumentError):
                await gang.events(["lost"])  # type: ignore[list-item]
        return seen

    async def in_time() -> list[rankbridge.Event | rankbridge.WatchEnded]:
        async with asyncio.timeout(DEADLINE_S):
            return await program()

    seen = asyncio.run(in_time())
    assert [it.error.operation_id for it in seen if isinstance(it, rankbridge.PeerMissingEvent)] == [name] * 2
    assert [it.rank for it in seen] == [0, 0]


def test_a_lost_rank_is_named_by_every_survivor_and_its_replacement_is_watched_anew(tmp_path: Path) -> None:
    with up(tmp_path, 3) as running, rankbridge.connect(running.description, session=False) as gang:
        with bounded(gang.events()) as events:
            os.kill(running.pids[1], signal.SIGKILL)
            seen = [next(events) for _ in range(3)]
            over = {it.rank: it for it in seen if isinstance(it, rankbridge.OverEvent)}
            [ended] = [it for it in seen if isinstance(it, rankbridge.WatchEnded)]
            assert (ended.rank, type(ended.error)) == (1, rankbridge.UnavailableError)
            assert sorted(over) == [0, 2]
            for rank, it in over.items():
                assert isinstance(it.error, rankbridge.PeerLostError)
                assert (it.generation, it.error.generation, it.error.rank) == (1, 1, rank)
                assert [(side.rank, side.state) for side in it.error.ranks] == [(1, "lost")]
            assert gang.form(timeout=DEADLINE_S).generation == 2
            formed = [next(events), next(events)]
            assert sorted((it.rank, type(it)) for it in formed) == [
                (0, rankbridge.FormedEvent),
                (2, rankbridge.FormedEvent),
            ]
        with bounded(gang.events(after=events.position)) as events:
            anew = next(events)
        assert isinstance(anew, rankbridge.FormedEvent)
        assert (anew.rank, anew.number, anew.generation) == (1, 1, 2)


def test_a_gang_that_ends_in_good_order_says_so(tmp_path: Path) -> None:
    with (
        up(tmp_path, 2) as running,
        rankbridge.connect(running.description, session=False) as gang,
        watched(running.pids) as ranks,
        bounded(gang.events(["over"])) as events,
    ):
        running.process.terminate()
        ended = [it for it in events if isinstance(it, rankbridge.WatchEnded)]
        assert sorted(it.rank for it in ended) == [0, 1]
        assert ranks.alive_after(DEADLINE_S) == []


def test_a_watch_that_was_closed_has_no_more_events(running: RunningGang) -> None:
    async def program() -> list[list[rankbridge.Event | rankbridge.WatchEnded]]:
        async with await rankbridge.aconnect(running.description, timeout=DEADLINE_S) as gang:
            events = await gang.events()
            await events.close()
            async with asyncio.timeout(DEADLINE_S):
                return [[event async for event in events] for _ in range(3)]

    assert asyncio.run(program()) == [[], [], []]
    with rankbridge.connect(running.description, timeout=DEADLINE_S) as gang:
        events = gang.events()
        events.close()
        assert [list(events) for _ in range(3)] == [[], [], []]
