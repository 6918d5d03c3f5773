"""Answers of the driver: what came of calls, what failed, how ranks are."""

from __future__ import annotations

from typing import Any

from rankbridge import RankBridgeError
from rankbridge.harness.gangs import RunningGang
from rankbridge.harness.judging import Failure, Happened
from rankbridge.harness.wire import as_json, error_as_json

Answer = dict[str, Any]
"""`ok` or `error`, without the id."""


def status_of(gang: RunningGang) -> list[dict[str, Any]]:
    """Says how every rank is, and what it has not answered yet; of one that does not answer, why."""
    found = []
    for rank in gang.client:
        try:
            status, pending = rank.status(), rank.pending()
        except RankBridgeError as error:
            found.append({"rank": rank.rank, "state": "not reached", "error": str(error)})
            continue
        operations = [
            {
                "operation": it.operation,
                "group": it.group,
                "phase": it.phase,
                "waited_ms": round(it.waited * 1000),
            }
            for it in pending.operations
        ]
        missing = sorted({missed for it in pending.admissions for missed in it.missing})
        found.append(
            {
                "rank": rank.rank,
                "pid": status.pid,
                "generation": status.generation,
                "state": status.generation_state,
                "pending": operations,
                **({"missing": missing} if missing else {}),
            }
        )
    return found


def failed(code: str, message: str) -> Answer:
    """Gives the answer to what failed or was refused."""
    return {"error": {"code": code, "message": message}}


def text_of(error: Exception) -> str:
    """Gives what an exception says."""
    # A LookupError's text is quoted otherwise.
    return str(error.args[0]) if isinstance(error, LookupError) else str(error)


def unexpected(failures: list[Failure]) -> Answer:
    """Gives the answer to calls that did not end as the request expects."""
    answer = failed("UNEXPECTED", "; ".join(str(it).partition("\n")[0] for it in failures))
    answer["error"]["failures"] = [
        {"word": it.word, "ranks": list(it.ranks), "text": it.text} for it in failures
    ]
    return answer


def answer_of(happened: Happened, failures: list[Failure], expected: bool) -> Answer:
    """Gives what came of calls: what ranks were given, and how they failed."""
    if failures:
        return unexpected(failures)
    given: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for call in happened.calls:
        assert call.outcome is not None
        if call.outcome.error is None:
            given.setdefault(str(call.rank), []).append(as_json(call.outcome.value))
        else:
            errors.setdefault(str(call.rank), []).append(error_as_json(call.outcome.error))
    several = len(happened.calls) > len({it.rank for it in happened.calls})
    took = round(happened.took * 1000, 1)
    if not several:
        given = {rank: it[0] for rank, it in given.items()}
        errors = {rank: it[0] for rank, it in errors.items()}
    if errors and not expected:
        first = next(it.outcome.error for it in happened.calls if it.outcome and it.outcome.error)
        answer = failed(str(first.code), first.message)
        answer["error"] |= {"ranks": errors, "ok": given, "took_ms": took}
        return answer
    return {"ok": {"ranks": given, "took_ms": took, **({"errors": errors} if errors else {})}}
