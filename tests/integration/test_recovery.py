"""A rank is lost, and the gang is whole again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, Ref

SIZE = 3


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningGang]:
    with up(tmp_path, SIZE) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, session=False) as it:
        yield it


def pid_of(gang: Gang, rank: int) -> int:
    return gang[rank].status().pid


def works(gang: Gang) -> bool:
    refs = gang.put([np.full(5, rank, np.int64) for rank in range(len(gang))])
    results = gang.get(gang.all_reduce(refs))
    gang.release(refs)
    expected = sum(range(len(gang)))
    return all(isinstance(it, np.ndarray) and it.tolist() == [expected] * 5 for it in results)


def lose(gang: Gang, lost: int, how: signal.Signals) -> None:
    """Every pending call of every survivor fails, and names the rank."""
    survivors = [rank for rank in range(len(gang)) if rank != lost]
    pending = [gang[rank].start("barrier", timeout=60) for rank in survivors]
    until(lambda: all(gang[rank].status().pending_operations == 1 for rank in survivors))
    os.kill(pid_of(gang, lost), how)
    for it in pending:
        with pytest.raises(rankbridge.PeerLostError) as error:
            it.result()
        assert [detail.rank for detail in error.value.ranks] == [lost]


def kept(gang: Gang, refs: list[Ref], lost: int) -> bool:
    survivors = [rank for rank in range(len(gang)) if rank != lost]
    fetched = {rank: gang[rank].get(refs[rank]) for rank in survivors}
    return all(isinstance(it, np.ndarray) and it.tolist() == [rank] for rank, it in fetched.items())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("lost", [0, 2])
def test_a_lost_rank_is_replaced_and_the_gang_is_whole_again(
    gang: Gang, lost: int, how: signal.Signals
) -> None:
    before = pid_of(gang, lost)
    gang.new_group("tail", [2, 0])
    refs = gang.put([np.array([rank], np.int32) for rank in range(SIZE)])
    lose(gang, lost, how)
    survivor = (lost + 1) % SIZE
    with pytest.raises(rankbridge.StaleGenerationError):
        gang[survivor].barrier()
    assert gang.form(via_rank=survivor).generation == 2
    assert pid_of(gang, lost) != before
    assert works(gang)
    assert kept(gang, refs, lost)
    gang.barrier(group="tail")
    with pytest.raises(rankbridge.RefError):
        gang[lost].get(refs[lost])


def test_ranks_are_lost_again_and_again(gang: Gang) -> None:
    for generation in range(2, 8):
        lost = generation % SIZE
        lose(gang, lost, signal.SIGKILL)
        assert gang.form(via_rank=(lost + 1) % SIZE).generation == generation
        assert works(gang)


def test_two_ranks_may_be_lost_at_once(gang: Gang) -> None:
    for rank in (1, 2):
        os.kill(pid_of(gang, rank), signal.SIGKILL)
    assert gang.form(via_rank=0).generation == 2
    assert works(gang)


def test_a_group_whose_every_member_is_replaced_is_made_again_and_one_that_was_ended_is_not(
    gang: Gang,
) -> None:
    gang.new_group("alone", [1])
    gang.destroy_group(gang.new_group("ended", [2, 1]))
    lose(gang, 1, signal.SIGKILL)
    gang.form(via_rank=0)
    assert [group.name for group in gang.groups()] == ["alone", "world"]
    gang.barrier(group="alone")


def test_a_forming_that_fails_leaves_no_generation_anywhere_and_can_be_tried_again(
    gang: Gang, tmp_path: Path
) -> None:
    with rankbridge.connect([*gang.targets, f"unix:{tmp_path}/nobody"], session=False) as too_many:
        with pytest.raises(rankbridge.FormingFailedError) as error:
            too_many.form(timeout=3)
        assert "describe failed at 1 of 4 ranks" in str(error.value)
    assert works(gang)
    assert gang.form().generation == 2
    assert works(gang)


def test_a_gang_can_be_made_larger_and_smaller(gang: Gang, running: RunningGang, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    with up(tmp_path / "more", 2) as more:
        targets = [*running.targets, *more.targets]
        with rankbridge.connect(targets, session=False) as larger:
            larger.form()
            assert works(larger)
            assert [status.world_size for status in larger.status()] == [5] * 5
        gang.form()
        assert works(gang)
    assert works(gang)


def test_a_wanted_group_is_formed_with_the_generation(gang: Gang) -> None:
    gang.form(groups=[("pair", [2, 1])])
    assert [group.ranks for group in gang.groups() if group.name == "pair"] == [(2, 1)]
    gang.barrier(group="pair")


def test_pending_calls_leave_questions_answered(gang: Gang) -> None:
    waiting = [gang[0].start("barrier", timeout=30) for _ in range(512)]
    until(lambda: gang[0].status().pending_operations == 512)
    for it in waiting:
        it.cancel()
    until(lambda: gang[0].status().pending_operations == 0)
    gang.barrier()
