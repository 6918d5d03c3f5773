"""The key-value store of a generation, over real links within the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import until

from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.store import MAX_BYTES, MAX_VALUE_BYTES, GenerationStore

T = TypeVar("T")

SIZE = 3
"""Of the gang of these tests' folder."""


@pytest.fixture
def stores(gang: LocalGang) -> list[GenerationStore]:
    """That of each rank."""
    return [rank._current(0).store for rank in gang.ranks]


@pytest.fixture
def background() -> Iterator[Callable[[Callable[[], T]], Future[T]]]:
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


def test_every_rank_sees_what_any_has_set(stores: list[GenerationStore]) -> None:
    for rank, store in enumerate(stores):
        store.set(f"key/{rank}", bytes([rank, 0, 255]) + b"\n")
    for store in stores:
        assert [store.get(f"key/{rank}", 5) for rank in range(SIZE)] == [
            bytes([rank, 0, 255]) + b"\n" for rank in range(SIZE)
        ]
        assert store.count() == SIZE


@pytest.mark.parametrize("reader", range(SIZE))
def test_get_waits_until_the_key_is_there(
    stores: list[GenerationStore], background: Callable[..., Future[bytes]], reader: int
) -> None:
    waiting = background(lambda: stores[reader].get("late", 30))
    until(lambda: _waits(stores))
    assert not waiting.done()
    stores[1].set("late", b"")
    assert waiting.result(10) == b""


def test_wait_needs_all_keys(stores: list[GenerationStore], background: Callable[..., Future[None]]) -> None:
    waiting = background(lambda: stores[2].wait(["a", "b"], 30))
    until(lambda: _waits(stores))
    stores[0].set("a", b"1")
    assert not stores[1].check(["a", "b"])
    assert not waiting.done()
    stores[1].set("b", b"2")
    waiting.result(10)
    assert stores[0].check(["a", "b"])


def test_what_does_not_come_in_time_is_a_timeout_that_names_the_key(stores: list[GenerationStore]) -> None:
    for store in stores:
        with pytest.raises(TimeoutError, match="never"):
            store.get("never", 0.02)


def test_counters_lose_nothing(stores: list[GenerationStore]) -> None:
    def count(store: GenerationStore) -> list[int]:
        return [store.add("counter", 2) for _ in range(50)]

    with ThreadPoolExecutor(SIZE) as pool:
        seen = [number for each in pool.map(count, stores) for number in each]
    assert sorted(seen) == list(range(2, 2 * 50 * SIZE + 1, 2))
    assert stores[1].add("counter", -300) == 0


def test_compare_set_sets_what_is_expected_and_nothing_else(stores: list[GenerationStore]) -> None:
    assert stores[1].compare_set("key", b"other", b"new") == b"other"
    assert not stores[0].check(["key"])
    assert stores[1].compare_set("key", b"", b"first") == b"first"
    assert stores[2].compare_set("key", b"wrong", b"second") == b"first"
    assert stores[2].compare_set("key", b"first", b"second") == b"second"
    assert stores[0].get("key", 1) == b"second"


def test_a_key_is_deleted_once(stores: list[GenerationStore]) -> None:
    stores[0].set("key", b"1")
    assert stores[1].delete("key")
    assert not stores[2].delete("key")
    assert stores[0].count() == 0


def test_what_waits_gets_the_generations_error_at_once(
    gang: LocalGang, stores: list[GenerationStore], background: Callable[..., Future[bytes]]
) -> None:
    waiting = [background(lambda store=store: store.get("never", 60)) for store in stores]
    until(lambda: len(stores[0]._shelf._waiting) == SIZE if stores[0]._shelf else False)
    gang.ranks[1].abort(gang.ranks[1].describe().number, "the test says so")
    # Long before its own time is over.
    for each in waiting:
        with pytest.raises(BridgeError, match="the test says so"):
            each.result(30)
    with pytest.raises(BridgeError):
        stores[2].set("key", b"")


def test_too_large_a_value_is_refused_and_changes_nothing(stores: list[GenerationStore]) -> None:
    with pytest.raises(BridgeError, match="too large a value") as failed:
        stores[1].set("key", bytes(MAX_VALUE_BYTES + 1))
    assert failed.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
    assert stores[0].count() == 0


def test_a_full_store_is_said_to_be_full_on_every_rank(stores: list[GenerationStore]) -> None:
    for number in range(MAX_BYTES // MAX_VALUE_BYTES - 1):
        stores[0].set(str(number), bytes(MAX_VALUE_BYTES))
    for store in stores[:2]:
        with pytest.raises(BridgeError, match="no room for 'more'") as failed:
            store.set("more", bytes(MAX_VALUE_BYTES))
        assert failed.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
    assert stores[1].get("0", 30) == bytes(MAX_VALUE_BYTES)


def test_an_addition_to_what_is_no_number_is_refused_on_every_rank_and_changes_nothing(
    stores: list[GenerationStore],
) -> None:
    stores[0].set("key", b"text")
    for store in stores:
        with pytest.raises(BridgeError, match="'key' of the generation's store is no counter") as failed:
            store.add("key", 1)
        failure = failed.value.failure
        assert (failure.code, failure.got) == (ErrorCode.INVALID_ARGUMENT, "b'text'")
    assert stores[1].get("key", 30) == b"text"


def test_the_next_generation_has_an_empty_store(gang: LocalGang, stores: list[GenerationStore]) -> None:
    stores[0].set("key", b"1")
    gang.form()
    assert gang.ranks[2]._current(0).store.count() == 0


def test_many_threads_of_one_rank_get_each_its_own_answer(stores: list[GenerationStore]) -> None:
    gate = threading.Barrier(8)

    def own(number: int) -> bytes:
        gate.wait(10)
        stores[2].set(f"own/{number}", str(number).encode())
        return stores[2].get(f"own/{number}", 10)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(own, range(8))) == [str(number).encode() for number in range(8)]


def _waits(stores: list[GenerationStore]) -> bool:
    shelf = stores[0]._shelf
    return shelf is not None and bool(shelf._waiting)
