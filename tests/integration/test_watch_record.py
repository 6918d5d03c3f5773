"""The record of a rank as it grows."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, InvalidArgumentError, Position, RecordGrowth
from rankbridge.errors import ResourceExhaustedError
from rankbridge_server.core.record.record import MAX_WATCHES

SIZE = 4
TIMEOUT_S = 30.0


@pytest.fixture(params=["gloo4", "fake4"])
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description, timeout=TIMEOUT_S) as it:
        yield it


def test_what_ends_and_what_waits_is_told(gang: Gang) -> None:
    with gang[0].watch_record(interval=0.05) as watch:
        first = next(watch)
        assert (first.rank, first.operations, first.lost) == (0, (), 0)
        assert abs(first.time - time.time()) < TIMEOUT_S
        waiting = gang[0].start("barrier", timeout=TIMEOUT_S, operation_id="watched")
        growth = next(it for it in watch if any(each.phase == "admission" for each in it.pending))
        (it,) = growth.pending
        assert (it.operation, it.operation_id, it.done) == ("barrier", "watched", None)
        others = [gang[rank].start("barrier", timeout=TIMEOUT_S) for rank in range(1, SIZE)]
        for each in (waiting, *others):
            each.result()
        growth = next(it for it in watch if it.operations)
        assert [(it.operation, it.operation_id) for it in growth.operations] == [("barrier", "watched")]
        assert growth.pending == ()
        assert growth.ended == first.ended + 1
        assert watch.position == growth.position == Position(growth.ended, first.position.log)
    (recorded,) = gang[0].record(limit=1)
    # Each answer reads the clock anew.
    assert replace(recorded, called=0.0) == replace(growth.operations[0], called=0.0)
    assert abs(recorded.called - growth.operations[0].called) < 1.0


def test_a_watch_goes_on_where_another_has_ended(gang: Gang) -> None:
    group = gang.new_group("again", [0, 1])
    try:
        with gang[1].watch_record(group=group) as watch:
            position = next(watch).position
        gang.barrier()
        for _ in range(3):
            gang.barrier(group=group)
        with gang[1].watch_record(group=group, after=position) as watch:
            assert [it.group for it in next(watch).operations] == ["again"] * 3
        with gang[1].watch_record(group=group, after=Position(position.number, position.log + 1)) as watch:
            # From the first of the rank on, of which many may be of other groups.
            assert next(it for it in watch if it.operations).operations[-1].group == "again"
        with gang[1].watch_record(last=2) as watch:
            assert [it.group for it in next(watch).operations] == ["again"] * 2
    finally:
        gang.destroy_group(group)


def test_a_rank_that_does_nothing_says_that_it_lives(gang: Gang) -> None:
    with gang[2].watch_record(interval=0.05) as watch:
        silent = [next(watch) for _ in range(3)]
    assert [(it.operations, it.pending) for it in silent] == [((), ())] * 3
    assert 0.5 < silent[2].time - silent[1].time < TIMEOUT_S


def test_what_cannot_be_watched_is_refused(gang: Gang) -> None:
    for interval in (0.01, 11.0, -1.0):
        with pytest.raises(InvalidArgumentError):
            gang[0].watch_record(interval=interval)


def test_watches_of_a_rank_are_limited_and_given_back(fake4: RunningGang) -> None:
    with rankbridge.connect(fake4.description, timeout=TIMEOUT_S) as gang:
        watches = [gang[3].watch_record() for _ in range(MAX_WATCHES)]
        try:
            with pytest.raises(ResourceExhaustedError, match="too many watchers"):
                gang[3].watch_record()
        finally:
            for it in watches:
                it.close()
        until(lambda: _can_watch(gang))


def test_the_asyncio_client_watches_likewise(fake4: RunningGang) -> None:
    async def watched() -> list[RecordGrowth]:
        async with (
            await rankbridge.aconnect(fake4.description, timeout=TIMEOUT_S) as gang,
            await gang[0].watch_record(interval=0.05) as watch,
        ):
            found = [await anext(watch)]
            refs = await gang.put([np.ones(2, np.float32)] * SIZE)
            await gang.all_reduce(refs)
            async for growth in watch:
                found.append(growth)
                if growth.operations:
                    return found
        raise AssertionError("the watch has ended")

    growths = asyncio.run(watched())
    assert [it.contract for it in growths[-1].operations] == ["all_reduce dtype=float32 shape=[2] op=sum"]


def test_the_watch_of_a_lost_rank_ends_and_another_begins_with_its_replacement(tmp_path: Path) -> None:
    with up(tmp_path, 2) as running, rankbridge.connect(running.description, timeout=TIMEOUT_S) as gang:
        gang.barrier()
        with gang[1].watch_record(after=0) as watch:
            assert len(next(watch).operations) == 1
            os.kill(running.pids[1], signal.SIGKILL)
            with pytest.raises(rankbridge.errors.UnavailableError):
                list(watch)
        position = watch.position
        until(lambda: _answers(gang, 1))
        with gang[1].watch_record(after=position) as watch:
            growth = next(watch)
        assert position is not None
        assert growth.position.log != position.log
        assert (growth.ended, growth.lost) == (0, 0)


def _can_watch(gang: Gang) -> bool:
    try:
        gang[3].watch_record().close()
    except ResourceExhaustedError:
        return False
    return True


def _answers(gang: Gang, rank: int) -> bool:
    try:
        gang[rank].status()
    except rankbridge.RankBridgeError:
        return False
    return True
