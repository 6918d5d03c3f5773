"""Torch's own tools, and in whose favour their words are read.

- Whatever error a run prints counts as detected, also torch's plain timeout, which names nobody. Which rank torchrun
  has seen fail first is not read: it is torchrun's, and is the first to give up as often as the first to go wrong.
- What ranks print is taken together: what a rank says that it asks for itself is believed, of a rank that says nothing
  what others say of it. If more than half of the ranks ask for the same, the others are to blame, as the doctor has it.
  The tools leave that to the reader.
- Rank 0's list of who has not come counts as the blame. If rank 0 has no error, and all that have one had it while they
  waited for rank 0, rank 0 counts.
- Where nobody is to blame, as in a circle, who names exactly its ranks, or one side, has named the right ones.
- Of torchfrtrace's statements the first counts; a person would have to choose.
- A tool has no notion of what a rank does instead: that is not asked of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from enum import StrEnum

from tests.diagnose.faults import Program
from tests.diagnose.plan import Plan
from tests.diagnose.said import Said

from rankbridge_server.doctor.verdict import Kind

TIMEOUT_S = 4.0


class Tool(StrEnum):
    """One for each table."""

    DETAIL = "TORCH_DISTRIBUTED_DEBUG=DETAIL"
    MONITORED_BARRIER = "monitored_barrier"
    TORCHFRTRACE = "torchfrtrace"
    DOCTOR = "rankbridge doctor"
    """In the same run as torchfrtrace, under `rankbridge watch`."""


def in_favour(program: Program, plan: Plan, said: Said) -> Said:
    """The same, if ranks that nobody may blame were named for what they are: those of the circle, or of a side."""
    if said.blamed and said.blamed == program.involved(plan):
        return replace(said, blamed=frozenset(), sides=(said.blamed,))
    return said


_MISSED = re.compile(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier in \d+ ms")
_WAITED = re.compile(r"received errors while waiting for send/recv from rank 0")
_LEADER = re.compile(r"^\[rank0\]: \w*Error", re.MULTILINE)
_RUNS = re.compile(
    r"(R|but R)ank (\d+) is running collective: CollectiveFingerPrint\((?:SequenceNumber=\d+,? ?)?OpType=(\w+)"
    r"(?:, TensorShape=\[([^\]]*)\])?(?:, TensorDtypes=(\w+))?"
)
_FAILED = re.compile(r"\w*Error: |Timed out waiting|DistBackendError|exitcode +: -\d+")
_ASKED_KINDS = (Kind.MISMATCH_KIND, Kind.MISMATCH_SHAPE, Kind.MISMATCH_DTYPE)


def words_of_job(output: str, size: int) -> Said:
    """What the output of a job says, under DETAIL or with monitored_barrier."""
    asked: dict[int, tuple[str | None, ...]] = {}
    # Of itself first.
    for _, rank, kind, shape, dtype in sorted(_RUNS.findall(output), key=lambda it: it[0] != "R"):
        asked.setdefault(int(rank), (kind, shape, dtype))
    if len(set(asked.values())) > 1:
        return _disagreement(asked, size)
    missed = {int(it) for found in _MISSED.findall(output) for it in found.split(",")}
    if missed:
        return Said(Kind.NEVER_CALLED, frozenset(missed))
    if _WAITED.search(output):
        return Said(Kind.NEVER_CALLED, frozenset() if _LEADER.search(output) else frozenset({0}))
    return _failure(output)


def _failure(output: str) -> Said:
    failed = bool(_FAILED.search(output))
    return Said(Kind.UNKNOWN if failed else Kind.HEALTHY, detected=failed)


def _disagreement(asked: dict[int, tuple[str | None, ...]], size: int) -> Said:
    by_call: dict[tuple[str | None, ...], set[int]] = defaultdict(set)
    for rank, call in asked.items():
        by_call[call].add(rank)
    sides = sorted(by_call.values(), key=len)
    kind = next(it for place, it in enumerate(_ASKED_KINDS) if len({call[place] for call in by_call}) > 1)
    blamed = set().union(*sides[:-1]) if 2 * len(sides[-1]) > size else set()
    return Said(kind, frozenset(blamed), tuple(frozenset(it) for it in sides))


_STATEMENT = re.compile(
    r"Not all ranks joining collective|Collective sequence number: \d+ has errors|\nMISMATCH|Too many mismatches"
)
_MISSING = re.compile(r"missing ranks: \{([\d, ]+)\}")
_CULPRIT = re.compile(r"Culprit rank (\d+); Error type: (\w+)")
_ERRORS = {
    "COLLECTIVE_TYPE_MISMATCH": Kind.MISMATCH_KIND,
    "SIZE_OR_SYNTAX_MISMATCH": Kind.MISMATCH_SHAPE,
    "COLLECTIVE_DTYPE_MISMATCH": Kind.MISMATCH_DTYPE,
}


def words_of_torchfrtrace(output: str, size: int) -> Said:
    """What torchfrtrace says: its first statement."""
    starts = [it.start() for it in _STATEMENT.finditer(output)]
    if not starts:
        return _failure(output)
    first = output[starts[0] : starts[1] if len(starts) > 1 else None]
    if missing := _MISSING.search(first):
        return Said(Kind.NEVER_CALLED, frozenset(int(it) for it in missing[1].split(",")))
    culprits = {int(rank) for rank, _ in _CULPRIT.findall(first)}
    kinds = [_ERRORS.get(error, Kind.UNKNOWN) for _, error in _CULPRIT.findall(first)]
    return Said(kinds[0] if kinds else Kind.UNKNOWN, frozenset(culprits))
