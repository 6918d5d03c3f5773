"""How groups on MPI are formed, fail, and are over. Each rank is a process; tests leave the job as they found it."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.support.mpi_job import PATIENCE_S, MpiJob, MpiMembers, mpi_job

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MpiJob]:
    with mpi_job(4, tmp_path_factory.mktemp("job")) as it:
        yield it


def works(group: MpiMembers) -> bool:
    ones = torch.ones(5)
    sums = group.call("all_reduce", [(ones, ReduceOp.SUM, PATIENCE_S)] * len(group))
    return all(it.equal(ones * len(group)) for it in sums)


def failure(future: Future[Any]) -> Failure:
    with pytest.raises(BridgeError) as error:
        future.result(PATIENCE_S)
    assert error.value.failure.code is ErrorCode.BACKEND_FAILED
    return error.value.failure


def test_members_have_the_order_of_the_group(job: MpiJob) -> None:
    group = job.group("order", [2, 0, 3])
    gathered = group.call("all_gather", [(torch.tensor([at]), 0, [1, 1, 1], PATIENCE_S) for at in range(3)])
    assert [it.tolist() for it in gathered] == [[0, 1, 2]] * 3
    group.close()


@pytest.mark.parametrize("seed", range(5))
def test_many_groups_are_formed_at_once_in_any_order(job: MpiJob, seed: int) -> None:
    chance = random.Random(seed)
    groups = {f"g{at}": chance.sample(range(4), chance.randint(1, 4)) for at in range(12)}
    addresses = {name: job.join(name, places) for name, places in groups.items()}
    members = [(name, place) for name, places in groups.items() for place in places]
    chance.shuffle(members)
    connecting = [job.connect(name, place, addresses[name]) for name, place in members]
    for it in connecting:
        it.result(PATIENCE_S)
    formed = [MpiMembers([job.ranks[at] for at in places], name) for name, places in groups.items()]
    ones = torch.ones(10_000)
    everywhere = [
        (group, group.start("all_reduce", [(ones, ReduceOp.SUM, PATIENCE_S)] * len(group)))
        for group in chance.sample(formed, len(formed))
    ]
    for group, sums in everywhere:
        assert all(it.result(PATIENCE_S).equal(ones * len(group)) for it in sums)
        group.close()


def test_a_member_that_does_not_connect_fails_the_others_in_time_and_harms_no_later_group(
    job: MpiJob,
) -> None:
    addresses = job.join("early", [0, 1, 2])
    for it in [job.connect("early", place, addresses, 0.3) for place in (0, 2)]:
        assert "not all 3 members came in time" in failure(it).message
    late = job.connect("early", 1, addresses, 0.3)
    assert "in time" in failure(late).message
    group = job.group("early", [0, 1, 2])
    assert works(group)
    group.close()


def test_a_member_that_does_not_enter_fails_the_others_at_their_deadline(job: MpiJob) -> None:
    group = job.group("lonely", [0, 1, 2, 3])
    big = torch.ones(300_000)
    entered = [
        rank.start("lonely", "all_reduce", big, ReduceOp.SUM, 0.5)
        for rank in (group.ranks[0], group.ranks[3])
    ]
    for it in entered:
        error = failure(it)
        assert error.indefinite
        assert "no end after 0.5 s" in error.message
    group.close()


def test_closing_a_group_ends_what_waits_in_it(job: MpiJob) -> None:
    group = job.group("closing", [0, 1])
    waiting = group.ranks[0].start("closing", "barrier", 10 * PATIENCE_S)
    group.close()
    assert failure(waiting).indefinite
    assert "the group was closed" in failure(group.ranks[1].start("closing", "barrier", PATIENCE_S)).message


def test_what_comes_too_late_for_a_group_never_reaches_the_next(job: MpiJob) -> None:
    """One member sends into groups that the others have closed; each next group gets its own messages alone."""
    for turn in range(20):
        group = job.group("stale", [0, 1], turn)
        stale = group.ranks[0].start("stale", "send", torch.full((8,), -1.0), 1, 0, PATIENCE_S)
        stale.result(PATIENCE_S)
        group.close()
        group = job.group("fresh", [0, 1], turn)
        sending = group.ranks[0].start("fresh", "send", torch.full((8,), float(turn)), 1, 0, PATIENCE_S)
        got = group.ranks[1].call("kit", "receive", "fresh", (8,), torch.float32, 0, 0, PATIENCE_S)
        sending.result(PATIENCE_S)
        assert got.tolist() == [turn] * 8
        group.close()


def test_communicators_go_back_to_mpi_but_for_those_with_something_under_way(tmp_path: Path) -> None:
    with mpi_job(2, tmp_path) as own:
        for turn in range(100):
            group = own.group("world", [0, 1], turn)
            assert works(group)
            group.close()
        assert [rank.call("kit", "retired") for rank in own.ranks] == [1, 1]
        group = own.group("world", [0, 1])
        group.ranks[0].call("world", "send", torch.ones(1), 1, 0, PATIENCE_S)
        group.close()
        own.group("world", [1, 0]).close()
        own.group("world", [0, 1]).close()
        # The one with a message that nobody took, and the last.
        assert [rank.call("kit", "retired") for rank in own.ranks] == [2, 2]


def test_a_rank_of_another_job_is_refused_with_what_can_be_done(job: MpiJob) -> None:
    addresses = job.join("foreign", [0, 1])
    foreign = json.loads(addresses[1])
    foreign[0] = "another"
    error = failure(job.connect("foreign", 0, [addresses[0], json.dumps(foreign).encode()]))
    assert "cannot take in a process that was not there when the job began" in error.message
    assert error.got == "job another"


@pytest.mark.parametrize("address", [b"", b"fake:1/world#0", b"{}", b'["a", "b", "c", {}]', b"[1, 2, 3, 4]"])
def test_an_address_of_another_backend_is_refused(job: MpiJob, address: bytes) -> None:
    addresses = job.join("mixed", [0, 1])
    assert "not one of MPI" in failure(job.connect("mixed", 0, [addresses[0], address])).message


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_survivors_of_a_lost_rank_have_an_error_and_can_go_on(tmp_path: Path, how: signal.Signals) -> None:
    with mpi_job(4, tmp_path) as own:
        group = own.group("world", range(4))
        big = torch.ones(1_000_000)
        assert works(group)
        own.ranks[1].start("os", "kill", own.ranks[1].pid, how)
        survivors = [own.ranks[rank] for rank in (0, 2, 3)]
        waiting = [it.start("world", "all_reduce", big, ReduceOp.SUM, 1.0) for it in survivors]
        for it in waiting:
            assert failure(it).indefinite
        for rank in survivors:
            rank.call("world", "close")
        smaller = own.group("smaller", [3, 0, 2], 2)
        assert works(smaller)
        smaller.close()
