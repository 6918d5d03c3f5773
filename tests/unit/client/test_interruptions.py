"""Interruptions (Ctrl-C) of blocking calls, at whatever moment they come."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.support.interrupter import Interrupter
from tests.support.proc import thread_names
from tests.support.waiting import until
from tests.unit.client.sidecars import WAIT, SidecarGang

import rankbridge
from rankbridge._transport.threads.uninterrupted import Result, Uninterrupted
from rankbridge.v1 import collective_service_pb2 as collective_pb, rank_service_pb2, value_pb2

NONE = value_pb2.Value(none=value_pb2.NoneValue())
INTERRUPTIONS = 60


@pytest.fixture
def gang(sidecars: SidecarGang) -> Iterator[rankbridge.Gang]:
    for sidecar in sidecars.sidecars:
        # Those of the sidecars wait for each other, whoever has left meanwhile.
        sidecar.answers["Barrier"] = lambda request, context: collective_pb.BarrierResponse(value=NONE)
    with rankbridge.connect(sidecars.endpoints(), timeout=20) as it:
        yield it


@pytest.mark.parametrize("kind", ["describe", "get", "put", "status", "barrier", "start"])
def test_a_gang_can_be_used_whenever_it_was_interrupted(
    gang: rankbridge.Gang, interrupter: Interrupter, kind: str
) -> None:
    ref = gang[0].put(np.zeros(4, np.float32))
    calls: dict[str, Callable[[], Any]] = {
        "describe": lambda: gang[0].describe(ref),
        "get": lambda: gang[0].get(ref),
        "put": lambda: gang[0].put(np.zeros(4, np.float32)),
        "status": gang.status,
        "barrier": gang.barrier,
        "start": lambda: gang[0].start("barrier").result(),
    }
    for _ in range(INTERRUPTIONS):
        interrupter.interrupt(calls[kind])
    calls[kind]()
    gang.barrier()


class Silent:
    """A rank that describes itself only once the test lets it."""

    def __init__(self, sidecars: SidecarGang) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        sidecars[0].answers["DescribeRank"] = self.describe

    def describe(self, request: object, context: object) -> rank_service_pb2.DescribeRankResponse:
        self.asked.set()
        assert self.may_answer.wait(WAIT)
        return rank_service_pb2.DescribeRankResponse()


@pytest.fixture
def silent(sidecars: SidecarGang) -> Iterator[Silent]:
    it = Silent(sidecars)
    yield it
    it.may_answer.set()


def test_who_is_interrupted_waits_no_longer_for_a_rank_that_does_not_answer(
    gang: rankbridge.Gang, silent: Silent
) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        assert silent.asked.wait(WAIT)
        signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            gang[0].status()
    finally:
        interrupting.join()
        signal.signal(signal.SIGINT, before)
    assert not silent.may_answer.is_set()


def test_a_gang_that_is_closed_ends_a_call_that_no_rank_answers(
    gang: rankbridge.Gang, silent: Silent
) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(gang[0].status)
        assert silent.asked.wait(WAIT)
        gang.close()
        assert isinstance(waiting.exception(WAIT), rankbridge.CallCancelledError)
    assert not silent.may_answer.is_set()


# --- the threads that make calls for the main thread -----------------------------------------------------------


def test_what_is_done_aside_gives_its_value_or_raises_its_error() -> None:
    aside = Uninterrupted()
    threads: list[int] = []

    def work() -> int:
        threads.append(threading.get_ident())
        return 7

    def fail() -> None:
        raise ValueError("a test")

    def is_idle() -> bool:
        return len(aside._idle) == 1

    # Its thread becomes idle a moment after it has given the result.
    assert aside.safely(work) == 7
    until(is_idle)
    with pytest.raises(ValueError, match="a test"):
        aside.safely(fail)
    until(is_idle)
    assert aside.safely(work) == 7
    # One thing at a time needs one thread.
    assert threads[0] == threads[1] != threading.get_ident()
    aside.close()


def test_other_threads_do_it_themselves() -> None:
    aside, found = Uninterrupted(), []
    thread = threading.Thread(target=lambda: found.append(aside.safely(threading.get_ident)))
    thread.start()
    thread.join(WAIT)
    assert found == [thread.ident]


def test_several_things_are_done_at_once_and_threads_end_when_they_are_done() -> None:
    before = set(thread_names())
    aside, go = Uninterrupted(), threading.Event()

    def work() -> int:
        assert go.wait(WAIT)
        return threading.get_native_id()

    results = [aside.begin(work) for _ in range(3)]
    assert not any(it.done() for it in results)
    with pytest.raises(TimeoutError):
        results[0].wait(0.01)
    aside.close()
    go.set()
    threads = {it.wait(WAIT) for it in results}
    assert len(threads - before) == 3
    until(lambda: not threads & set(thread_names()))


def test_an_interruption_has_it_cancelled_aside() -> None:
    aside, main = Uninterrupted(), threading.main_thread().ident
    assert main is not None
    left, cancelled_by = threading.Event(), []

    def work() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        assert left.wait(WAIT)

    def cancel() -> None:
        cancelled_by.append(threading.get_ident())
        left.set()

    with pytest.raises(KeyboardInterrupt):
        aside.safely(work, cancel)
    assert left.wait(WAIT)
    assert cancelled_by != [main]
    aside.close()


def test_a_result_can_be_asked_for_again() -> None:
    result = Result(lambda: 3)
    result._run().ring()
    assert [result.wait(0), result.wait()] == [3, 3]


def test_who_has_it_is_the_only_one() -> None:
    class Large:
        pass

    aside = Uninterrupted()
    for _ in range(50):
        kept = aside.safely(Large)
        reference = weakref.ref(kept)
        del kept
        assert reference() is None
        result = aside.begin(Large)
        reference = weakref.ref(result.wait())
        del result
        assert reference() is None
    aside.close()
