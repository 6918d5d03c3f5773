"""Faults whose call, or process, may end at any moment meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

from rankbridge import UnknownOperationError
from rankbridge.harness.faults import Injector


class Rank:
    """Says in turn whether it knows the call that it is to withdraw, and each only when the step has ended."""

    def __init__(self, *known: bool) -> None:
        self.known = list(known)
        self.injector: Any = None
        self.asked = threading.Event()

    def cancel(self, operation_id: str) -> bool:
        """As a rank does."""
        is_known = self.known.pop(0)
        self.asked.set()
        assert self.injector._over.wait(60)
        if not is_known:
            raise UnknownOperationError(f"no operation {operation_id!r}")
        return False


def ended_while_asked(*known: bool) -> tuple[list[str], list[bool]]:
    """What the fault could not do in a step that ends while the rank is asked; and answers that were not asked for."""
    rank = Rank(*known)
    gang: Any = SimpleNamespace(pids={0: 1}, client={0: rank})
    rank.injector = Injector(gang, [{"cancel": [0]}], random.Random(0), "it")
    rank.injector.begin()
    assert rank.asked.wait(60)
    return rank.injector.end(), rank.known


def test_a_call_that_comes_and_ends_between_two_questions_is_known() -> None:
    assert ended_while_asked(False, True) == ([], [])


def test_a_call_that_never_comes_cannot_be_withdrawn() -> None:
    (failure,), rest = ended_while_asked(False, False, True)
    assert failure.startswith("the fault cannot be had: UNKNOWN_OPERATION: no operation 'it'")
    assert rest == [True]


def test_a_stopped_process_that_was_ended_meanwhile_need_not_go_on_and_no_other_may_have_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    gang: Any = SimpleNamespace(pids={0: process.pid})

    def failures(word: str) -> list[str]:
        injector = Injector(gang, [{word: [0]}], random.Random(0))
        injector.begin()
        return injector.done(60)

    assert failures("cont") == []
    assert failures("stop") == failures("kill") == ["the fault cannot be had: [Errno 3] No such process"]
