"""Gang calls through the Python client, on real ranks."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.processes import stop
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, GangError

SIZE = 4


@pytest.fixture(scope="module")
def gang(gloo4: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(gloo4.description, calls="gang") as it:
        yield it


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Gang]:
    """Ranks that a test may kill. A stopped one is not lost before the test's next call has come to the others."""
    options = ["--heartbeat-misses", "20"]
    with (
        up(tmp_path, 3, options=options) as running,
        rankbridge.connect(running.description, calls="gang") as it,
    ):
        yield it


def ones(gang: Gang) -> list[rankbridge.Ref]:
    return gang.put([np.ones(2, np.float32) for _ in range(len(gang))])


def totals(gang: Gang, refs: list[rankbridge.Ref]) -> list[list[float]]:
    return [list(map(float, it)) for it in gang.get(refs) if isinstance(it, np.ndarray)]


def codes(error: GangError) -> list[tuple[str, bool]]:
    return [(it.error.code.name, it.error.indefinite) for it in error.outcomes if it.error is not None]


def test_calls_of_the_gang_and_of_ranks_mix(gang: Gang) -> None:
    refs = ones(gang)
    for _ in range(10):
        assert totals(gang, gang.all_reduce(refs)) == [[4.0, 4.0]] * SIZE
        assert totals(gang, gang.all_reduce(refs, calls="ranks")) == [[4.0, 4.0]] * SIZE
        gang.barrier()
        gang.barrier(calls="ranks")
        gang.ping()


def test_two_controllers_at_once_never_mismatch(gang: Gang, gloo4: RunningGang) -> None:
    with rankbridge.connect(gloo4.description, calls="gang") as other, ThreadPoolExecutor(4) as threads:

        def work(mine: Gang) -> list[list[float]]:
            refs = ones(mine)
            return [total for _ in range(25) for total in totals(mine, mine.all_reduce(refs))]

        done = [threads.submit(work, it) for it in (gang, other, gang, other)]
        assert [it.result(60) for it in done] == [[[4.0, 4.0]] * SIZE * 25] * 4


def test_what_one_rank_refuses_fails_on_all_at_once(gang: Gang) -> None:
    refs = ones(gang)
    gang[2].release(refs[2])
    with pytest.raises(rankbridge.RefError) as raised:
        gang.all_reduce(refs, timeout=60)
    assert isinstance(raised.value, GangError)
    assert [code for code, _ in codes(raised.value)] == ["RELEASED_REF"] * SIZE
    assert not raised.value.indefinite
    gang.barrier()


def test_large_outcomes_are_fetched_from_their_ranks(gang: Gang) -> None:
    value = {"bytes": bytes(20_000)}
    assert gang.broadcast_object(value) == [value] * SIZE
    assert gang.all_gather_object([rank * value["bytes"][:3000] for rank in range(SIZE)])[3][3] == bytes(9000)


def test_what_is_too_large_to_be_passed_on_goes_to_each_rank(gang: Gang) -> None:
    value = bytes(200_000)
    assert gang.broadcast_object(value) == [value] * SIZE


def test_a_group_of_some_ranks(gang: Gang) -> None:
    group = gang.new_group("gang-calls", [3, 1])
    refs = [gang[rank].put(np.full(1, rank, np.float32)) for rank in group.ranks]
    assert totals(gang, gang.all_reduce(refs, group=group)) == [[4.0], [4.0]]
    gang.ping(group="gang-calls")
    gang.destroy_group(group)
    with pytest.raises(rankbridge.UnknownGroupError):
        gang.barrier(group=group)


def test_a_repeated_call_has_the_first_ones_refs(gang: Gang) -> None:
    refs = ones(gang)
    first = gang.all_reduce(refs, operation_id="gang-call-twice")
    assert gang.all_reduce(refs, operation_id="gang-call-twice") == first
    assert gang.all_reduce(refs, operation_id="gang-call-twice", calls="ranks") == first


def test_submitted_operations_and_coalesced_ones(gang: Gang) -> None:
    refs = ones(gang)
    assert totals(gang, gang.submit("all_reduce", refs).result() or []) == [[4.0, 4.0]] * SIZE
    (sums, no_result) = gang.coalesce([("all_reduce", refs), ("barrier",)])
    assert totals(gang, sums) == [[4.0, 4.0]] * SIZE
    assert no_result is None


def test_asyncio_has_gang_calls_too(gloo4: RunningGang) -> None:
    async def work() -> Any:
        async with rankbridge.aconnect(gloo4.description, calls="gang") as it:
            await it.ping()
            refs = await it.put([np.ones(1, np.float32) for _ in range(SIZE)])
            several = await asyncio.gather(*(it.all_reduce(refs) for _ in range(8)))
            with pytest.raises(rankbridge.MismatchError):
                await it.all_reduce([*refs[:3], await it[3].put(np.ones(2, np.float32))])
            await it.barrier(calls="ranks")
            return [[np.asarray(value).tolist() for value in await it.get(refs)] for refs in several]

    assert asyncio.run(work()) == [[[4.0]] * SIZE] * 8


def test_a_way_to_call_that_is_none_is_refused(gloo4: RunningGang, gang: Gang) -> None:
    with pytest.raises(rankbridge.InvalidArgumentError, match="no way"):
        rankbridge.connect(gloo4.description, calls="both")  # type: ignore[arg-type]
    with pytest.raises(rankbridge.InvalidArgumentError, match="one rank"):
        gang[0].barrier(calls="gang")


@pytest.mark.sampled
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_rank_that_is_lost_meanwhile_fails_the_call_and_the_gang_is_whole_again(
    mortal: Gang, lost: int, how: signal.Signals
) -> None:
    pid = mortal[lost].status().pid
    refs = ones(mortal)
    # Connected: what cannot even be sent is definite.
    mortal.barrier()
    survivors = [rank for rank in range(3) if rank != lost]
    with ThreadPoolExecutor(1) as threads:
        # Stopped first, so that its part never comes.
        stop(pid)
        calling = threads.submit(mortal.all_reduce, refs, timeout=60)
        if how is signal.SIGKILL:
            if lost:
                until(lambda: all(mortal[rank].status().pending_operations for rank in survivors))
            os.kill(pid, signal.SIGKILL)
        error = calling.exception(60)
    assert isinstance(error, GangError), error
    assert len(error.outcomes) == 3
    told = {outcome.error.code.name for outcome in error.outcomes if outcome.error is not None}
    assert told <= ({"PEER_LOST"} if lost else {"UNAVAILABLE", "PEER_LOST", "DEADLINE_EXCEEDED"})
    assert error.indefinite
    assert mortal.form(via_rank=survivors[0]).generation == 2
    mortal.barrier()
    mortal.ping()
