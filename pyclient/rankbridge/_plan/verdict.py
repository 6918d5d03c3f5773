"""What is wrong with a gang, and how it is read from the wire."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from google.protobuf.json_format import MessageToDict

from rankbridge._plan.record import StackFrame, frame_from_wire
from rankbridge._plan.wire import fields_of, short_name
from rankbridge.v1 import debug_service_pb2

Evidence: TypeAlias = debug_service_pb2.GetEvidenceResponse
"""What a rank says of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A rank that others have to blame.

    Attributes:
        rank: Rank in the gang.
        confidence: How sure that is: 0 to 1.
        condition: What it does: "asleep", "spinning", "blocked_read", "lock", "gil_held", "stopped", "dead", "exited",
            "teardown", "waiting_for_child", "starved", "in_collective", "idle", "silent", "held", "unknown".
        why: The same in words.
        pid: Its process id, on its host. 0: not known.
        host: Its host. Empty: not known.
        stack: Where the thread that runs the user's code is, the innermost call first.
    """

    rank: int
    confidence: float
    condition: str
    why: str
    pid: int
    host: str
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSide:
    """Ranks that asked for the same.

    Attributes:
        ranks: Ranks in the gang.
        what: What they asked for.
        sites: The lines of code that did.
    """

    ranks: tuple[int, ...]
    what: str
    sites: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictWait:
    """A rank that waits.

    Attributes:
        rank: Rank in the gang.
        call: The call that it is in: "all_reduce world".
        waits_for: Ranks for which it waits.
        waited: For how long, in seconds. None: not known.
        site: The line of code that made the call. Empty: not known.
    """

    rank: int
    call: str
    waits_for: tuple[int, ...]
    waited: float | None
    site: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict on a gang. As text it is a page for people.

    Attributes:
        kind: What is wrong: "healthy", "never_called", "mismatch_kind", "mismatch_shape", "mismatch_dtype",
            "mismatch_op", "mismatch_root", "mismatch_terms", "membership", "order", "order_inversion",
            "p2p_unmatched", "rendezvous", "slow", "network", "unknown".
        summary: The verdict in one sentence, which names ranks, call and reason.
        confidence: How sure it is: 0 to 1.
        culprits: The ranks that are to blame. Empty: nobody is, or it is not known who.
        call: The call that it is about. Empty: none.
        sides: What ranks asked for, if they differ.
        waits: What each waiting rank waits for, those first that have waited longest.
        cycle: Ranks that wait for each other in a circle, each for the next, the last for the first.
        advice: What to do next. Empty: nothing is known.
        evidence: What was seen.
        notes: What was not seen, and what would show it.
        world_size: Ranks in the gang.
    """

    kind: str
    summary: str
    confidence: float
    culprits: tuple[Culprit, ...]
    call: str
    sides: tuple[VerdictSide, ...]
    waits: tuple[VerdictWait, ...]
    cycle: tuple[int, ...]
    advice: str
    evidence: tuple[str, ...]
    notes: tuple[str, ...]
    world_size: int
    page: str = field(repr=False)

    @property
    def is_healthy(self) -> bool:
        """Whether nobody waits for long, and nothing has failed."""
        return self.kind == "healthy"

    def __str__(self) -> str:
        return self.page


def verdict_from_wire(verdict: debug_service_pb2.Verdict) -> Verdict:
    """Reads a verdict."""
    return Verdict(
        **fields_of(Verdict, verdict),
        kind=short_name(debug_service_pb2.VerdictKind.items(), verdict.kind),
        culprits=tuple(
            Culprit(
                **fields_of(Culprit, it),
                condition=short_name(debug_service_pb2.Condition.items(), it.condition),
                stack=tuple(map(frame_from_wire, it.stack)),
            )
            for it in verdict.culprits
        ),
        sides=tuple(VerdictSide(**fields_of(VerdictSide, it)) for it in verdict.sides),
        waits=tuple(
            VerdictWait(
                **fields_of(VerdictWait, it),
                waited=it.waited_us / 1e6 if it.HasField("waited_us") else None,
            )
            for it in verdict.waits
        ),
    )


def bundle(evidence: Iterable[Evidence]) -> str:
    """Writes what ranks have said of themselves as one text."""
    content = {
        "format": "rankbridge gang evidence 1",
        "at": time.time(),
        "evidence": [MessageToDict(it) for it in evidence],
    }
    return json.dumps(content, separators=(",", ":"))
