"""Threads that do not interrupt others."""

from __future__ import annotations

import os
import threading
from datetime import timedelta

import pytest
from tests.support.proc import thread_names
from tests.support.waiting import until

from rankbridge_server.backends.gloo.raw import make_group, make_store
from rankbridge_server.backends.gloo.yielding import yielding


def threads(name: str) -> set[int]:
    """Those of this process that call themselves so."""
    return {thread for thread, it in thread_names().items() if it == name}


def policy_of_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0)))
    thread.start()
    thread.join()
    return found[0]


def test_threads_that_are_begun_meanwhile_let_others_finish() -> None:
    with yielding():
        assert policy_of_a_new_thread() == os.SCHED_BATCH
    assert policy_of_a_new_thread() == os.SCHED_OTHER
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_who_was_told_otherwise_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_IDLE)
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: pytest.fail("not to be called"))
    with yielding():
        pass


def test_where_it_may_not_be_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with yielding():
        assert policy_of_a_new_thread() == os.SCHED_OTHER


def test_only_the_loop_of_gloo_lets_others_finish() -> None:
    store = make_store(timedelta(seconds=10))
    loops, runs = threads("gloo_tcp_loop"), threads("pt_gloo_runloop")
    group = make_group(store, 0, 1, "127.0.0.1", 2, timedelta(seconds=10))
    # A thread is there before it has given itself its name.
    until(lambda: len(threads("gloo_tcp_loop") - loops) == 1)
    until(lambda: len(threads("pt_gloo_runloop") - runs) == 2)
    assert {os.sched_getscheduler(it) for it in threads("gloo_tcp_loop") - loops} == {os.SCHED_BATCH}
    assert {os.sched_getscheduler(it) for it in threads("pt_gloo_runloop") - runs} == {os.SCHED_OTHER}
    del group
