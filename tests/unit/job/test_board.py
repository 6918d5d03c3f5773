"""What ranks write for each other in a job's store."""

from __future__ import annotations

import threading
import time

import pytest
from torch._C._distributed_c10d import HashStore

from rankbridge_server.job.board import Board, Stopped


def board(
    store: HashStore, rank: int = 0, seconds: float = 10.0, stop: threading.Event | None = None
) -> Board:
    return Board(store, "tests", rank, 2, time.monotonic() + seconds, stop or threading.Event())


def test_ranks_read_what_each_has_written() -> None:
    store = HashStore()
    board(store, 1).write_mine("it", "one")
    threading.Timer(0.05, lambda: board(store, 0).write_mine("it", "zero")).start()
    assert board(store, 1).read_all("it") == ["zero", "one"]


def test_one_rank_writes_for_all() -> None:
    store = HashStore()
    board(store).write("it", "all")
    assert board(store, 1).read("it") == "all"


def test_the_time_ends_and_says_who_is_missing() -> None:
    store = HashStore()
    board(store, 1).write_mine("it", "one")
    with pytest.raises(TimeoutError, match=r"ranks \[0\] have not attached"):
        board(store, 1, 0.05).read_all("it")
    with pytest.raises(TimeoutError, match="rank 0 has not written 'other'"):
        board(store, 1, 0.05).read("other")


def test_waiting_ends_when_it_is_stopped() -> None:
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Stopped):
        board(HashStore(), stop=stop).read_all("it")


def test_what_is_written_once_stays() -> None:
    store = HashStore()
    assert board(store, 1).write_once("it", "one") == "one"
    assert board(store, 0).write_once("it", "zero") == "one"
    assert board(store).find("it") == "one"


def test_a_number_counts_the_ranks_that_have_asked() -> None:
    store = HashStore()
    assert [board(store, rank).count("it") for rank in (1, 0)] == [1, 2]
