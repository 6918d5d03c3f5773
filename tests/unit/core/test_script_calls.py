"""Calls of the user's own code in a record."""

from __future__ import annotations

from collections.abc import Callable

from rankbridge_server.core.caller import Caller
from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase
from rankbridge_server.core.record.memory import SPARE
from rankbridge_server.core.record.record import Record
from rankbridge_server.core.record.script_calls import ScriptCall, ScriptCalls

CONTRACT = "all_reduce dtype=float32 shape=[4] op=sum"


def calls_in(record: Record) -> ScriptCalls:
    return ScriptCalls(record, lambda: (1, 2))


def begun(calls: ScriptCalls, number: int = 7, look: Callable[[], None] = lambda: None) -> ScriptCall:
    return calls.begin("all_reduce", "tp", f"5 {number}", number, CONTRACT, "/train.py:8", look)


def test_a_call_is_pending_until_it_is_over_and_kept_then() -> None:
    record = Record(4)
    calls = calls_in(record)
    call = begun(calls)
    (pending,), (written,) = calls.under_way(), record.unended()
    assert pending == written
    assert (pending.caller, pending.number, pending.contract, pending.site, pending.phase) == (
        Caller.SCRIPT,
        7,
        CONTRACT,
        "/train.py:8",
        Phase.DATA,
    )
    assert pending.place == (1, "tp", "all_reduce", "5 7", 2)
    assert (pending.done, pending.announced, pending.sequence) == (0.0, 0.0, -1)
    calls.end(call, None)
    calls.end(call, None)
    (kept,) = record.entries()
    assert kept == pending._replace(done=kept.done)
    assert kept.done >= kept.called > 0
    assert (calls.under_way(), record.unended(), record.ended) == ([], [], 1)


def test_a_call_that_failed_is_kept_with_its_error() -> None:
    record = Record(4)
    calls = calls_in(record)
    calls.end(begun(calls), BridgeError.of(ErrorCode.BACKEND_FAILED, "Connection closed by peer"))
    (kept,) = record.entries()
    assert (kept.code, kept.message) == (ErrorCode.BACKEND_FAILED, "Connection closed by peer")


def test_a_call_that_is_done_or_forgotten_ends_although_nobody_waits_for_it() -> None:
    record = Record(4)
    calls = calls_in(record)
    done = begun(calls, 1, lambda: calls.end(done, None))
    forgotten, waits = begun(calls, 2), begun(calls, 3)
    calls.forget(forgotten)
    assert record.entries() == []
    assert [it.number for it in calls.under_way()] == [3]
    assert {it.number for it in record.entries()} == {1, 2}
    calls.forget(waits)
    begun(calls, 4)
    assert [it.number for it in record.entries()][-1] == 3


def test_more_calls_than_there_is_room_for_lose_none_that_end() -> None:
    record = Record(2)
    calls = calls_in(record)
    many = [begun(calls, number) for number in range(SPARE + 10)]
    assert len(calls.under_way()) == len(many)
    for it in many:
        calls.end(it, None)
    assert [it.number for it in record.entries()] == [SPARE + 8, SPARE + 9]
    assert record.unended() == []
