"""Runs a case on a gang, and notes which errors each rank got, and when."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field

from tests.score.faulty import TENSORS
from tests.score.labelled import LONG_MS, Labelled
from tests.score.order import in_order

from rankbridge import RankBridgeError
from rankbridge.harness.calls import PATIENCE_S, Called
from rankbridge.harness.gangs import RunningGang
from rankbridge.harness.session import FORM_TIMEOUT_S, Going, Session, opened
from rankbridge.harness.usage import until

_AFTERWARDS = {"call": "all_reduce", "of": "x", "op": "sum"}


@dataclass
class Outcome:
    """What came of a case.

    Attributes:
        errors: By rank, those of its calls, in order; of victims none.
        seconds: From the begin to the end of the last call, but for those of victims.
        hung: Whether a call did not end by itself.
        afterwards: Errors of a call on all members that followed.
    """

    errors: dict[int, list[RankBridgeError]] = field(default_factory=dict)
    seconds: float = 0.0
    hung: bool = False
    afterwards: int = 0


def run(case: Labelled, gang: RunningGang) -> Outcome:
    """Runs it in a session of its own. Leaves the gang as it was."""
    outcome = Outcome()
    with opened(gang, LONG_MS / 1000, 0) as session:
        session.new_groups(case.groups)
        session.make(TENSORS)
        _note(outcome, case, session, _begun(case, session))
        if case.victims:
            session.form(FORM_TIMEOUT_S)
            session.tensors.lost(next(iter(case.victims)))
            session.make({"x": TENSORS["x"]})
        after = _ended({**_AFTERWARDS, "group": case.group}, session)
        outcome.afterwards = sum(it.outcome is not None and it.outcome.error is not None for it in after)
    return outcome


def _begun(case: Labelled, session: Session) -> list[Going]:
    """Begins the calls: those of the ranks that come first, and, once these wait for the others, all others."""
    going: list[Going] = []
    operation_id = uuid.uuid4().hex
    for step in in_order(case.step, case.first):
        for it in going:
            _wait_until_it_waits(it, session)
        going.append(session.begin(step, operation_id))
    return going


def _wait_until_it_waits(going: Going, session: Session) -> None:
    """Waits until the first call of each rank waits for other ranks, or has ended."""
    for rank in {it.rank for it in going.begun.calls}:
        first = next(it for it in going.begun.calls if it.rank == rank)
        assert until(lambda: _waits(first, session), LONG_MS / 1000), f"rank {rank} does not begin"  # noqa: B023


def _waits(call: Called, session: Session) -> bool:
    if call.pending is not None and not call.pending.done():
        pending = session.gang.client[call.rank].pending()
        return any(it.phase == "admission" for it in pending.operations)
    return call.pending is not None or call.outcome is not None


def _note(outcome: Outcome, case: Labelled, session: Session, parts: list[Going]) -> None:
    """Waits for the end of all calls, and notes how they have ended."""
    found: dict[int, list[RankBridgeError]] = defaultdict(list)
    for going in parts:
        later = going.begun.started - parts[0].begun.started
        calls = [it for it in session.end(going)[0].calls if it.rank not in case.victims]
        for it in calls:
            outcome.seconds = max(outcome.seconds, later + it.took)
            outcome.hung |= it.took > it.timeout * _in_order(it, calls) + PATIENCE_S / 2
            if it.outcome is not None and it.outcome.error is not None:
                found[it.rank].append(it.outcome.error)
    outcome.errors = dict(found)


def _ended(step: dict[str, object], session: Session) -> list[Called]:
    happened, _ = session.end(session.begin(step))
    return list(happened.calls)


def _in_order(call: Called, calls: list[Called]) -> int:
    """How many calls of a rank may have taken their whole timeout, one after another, when this one ends."""
    own = [it for it in calls if it.rank == call.rank]
    return own.index(call) + 1
