"""Runs a case on a gang, and notes which errors each rank got, and when."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.score.faulty import TENSORS
from tests.score.labelled import LONG_MS, Labelled

from rankbridge import RankBridgeError
from rankbridge.harness.calls import PATIENCE_S, Called
from rankbridge.harness.gangs import RunningGang
from rankbridge.harness.session import FORM_TIMEOUT_S, Session, opened

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
        calls = _ended(case.step, session)
        found: dict[int, list[RankBridgeError]] = defaultdict(list)
        for it in calls:
            if it.rank in case.victims:
                continue
            outcome.seconds = max(outcome.seconds, it.took)
            outcome.hung |= it.took > it.timeout * _in_order(it, calls) + PATIENCE_S / 2
            if it.outcome is not None and it.outcome.error is not None:
                found[it.rank].append(it.outcome.error)
        outcome.errors = dict(found)
        if case.victims:
            session.form(FORM_TIMEOUT_S)
            session.tensors.lost(next(iter(case.victims)))
            session.make({"x": TENSORS["x"]})
        after = _ended({**_AFTERWARDS, "group": case.group}, session)
        outcome.afterwards = sum(it.outcome is not None and it.outcome.error is not None for it in after)
    return outcome


def _ended(step: dict[str, object], session: Session) -> list[Called]:
    happened, _ = session.end(session.begin(step))
    return list(happened.calls)


def _in_order(call: Called, calls: list[Called]) -> int:
    """How many calls of a rank may have taken their whole timeout, one after another, when this one ends."""
    own = [it for it in calls if it.rank == call.rank]
    return own.index(call) + 1
