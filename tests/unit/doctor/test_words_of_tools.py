"""What torch's own tools print, as they print it, and how it is read."""

import pytest
from tests.diagnose.faults import PROGRAMS
from tests.diagnose.plan import Plan
from tests.diagnose.rivals.tools import in_favour, words_of_job, words_of_torchfrtrace
from tests.diagnose.said import Said
from tests.diagnose.score import score

from rankbridge_server.doctor.verdict import Kind

SIZE = 4


def asks(rank: int, kind: str, shape: int = 16, dtype: str = "Float") -> str:
    return (
        f"ank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=11, OpType={kind}, "
        f"TensorShape=[{shape}], TensorDtypes={dtype}, "
        "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu))"
    )


def mismatch(mine: str, theirs: str) -> str:
    return f"RuntimeError: Detected mismatch between collectives on ranks. R{mine}, but R{theirs}.Collectives differ in"


BARRIERS = "ank {} is running collective: CollectiveFingerPrint(SequenceNumber=8OpType=BARRIER)"
BARRIER = """[rank0]: RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 4000 ms
[rank1]: RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv \
from rank 0. Please check rank 0 logs for faulty rank."""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (BARRIER, Said(Kind.NEVER_CALLED, frozenset({2}))),
        (BARRIER.replace("Ranks 2", "Ranks 2, 3"), Said(Kind.NEVER_CALLED, frozenset({2, 3}))),
        (BARRIER.splitlines()[1], Said(Kind.NEVER_CALLED, frozenset({0}))),
        (
            f"{BARRIER.splitlines()[1]}\n[rank0]: RuntimeError: Timed out waiting 4000ms for recv operation",
            Said(Kind.NEVER_CALLED),
        ),
        (
            "\n".join(
                [mismatch(asks(it, "ALLREDUCE"), BARRIERS.format(2)) for it in (0, 1, 3)]
                + [mismatch(BARRIERS.format(2), BARRIERS.format(0).replace("BARRIER", "GATHER"))]
            ),
            Said(Kind.MISMATCH_KIND, frozenset({2}), (frozenset({2}), frozenset({0, 1, 3}))),
        ),
        (
            "RuntimeError: Timed out waiting 4000ms for recv operation to complete",
            Said(Kind.UNKNOWN, detected=True),
        ),
        ("W1125 tensors are ready", Said(Kind.HEALTHY, detected=False)),
        (
            "\n".join(
                [mismatch(asks(it, "ALLREDUCE"), asks(0, "BROADCAST")) for it in (1, 2, 3)]
                + [mismatch(asks(0, "BROADCAST"), asks(1, "ALLREDUCE"))]
            ),
            Said(Kind.MISMATCH_KIND, frozenset({0}), (frozenset({0}), frozenset({1, 2, 3})), detected=True),
        ),
        (
            mismatch(asks(1, "ALLREDUCE"), asks(0, "ALLREDUCE", 24)),
            Said(Kind.MISMATCH_SHAPE, frozenset(), (frozenset({1}), frozenset({0}))),
        ),
        (
            mismatch(asks(1, "ALLREDUCE"), asks(0, "ALLREDUCE", dtype="Double")),
            Said(Kind.MISMATCH_DTYPE, frozenset(), (frozenset({1}), frozenset({0}))),
        ),
    ],
)
def test_the_output_of_a_job_is_read_in_the_tools_favour(output: str, said: Said) -> None:
    assert words_of_job(output, SIZE) == said


def test_who_names_both_ranks_of_a_circle_has_named_the_right_ones() -> None:
    program = PROGRAMS["two_groups"]
    plan = Plan.drawn(program.name, 0)
    both = frozenset({plan.victim, plan.partner})
    found = score(program, plan, in_favour(program, plan, Said(Kind.NEVER_CALLED, both)), 0.0)
    assert (found.exact, found.false_blame, found.right_kind) == (True, False, False)
    one = score(
        program, plan, in_favour(program, plan, Said(Kind.NEVER_CALLED, frozenset({plan.victim}))), 0.0
    )
    assert (one.exact, one.false_blame) == (False, True)


MISSING = """Not all ranks joining collective, sequence number: 10
collective: gloo:all_reduce
missing ranks: {2}
expected ranks: {0, 1, 2, 3}
"""
ERRORS = """Collective sequence number: 12 has errors
collective: gloo:all_reduce
error msg: Culprit rank 0; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce' does not match \
found collective type: 'broadcast', Culprit rank 3; Error type: COLLECTIVE_TYPE_MISMATCH
"""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (MISSING + ERRORS, Said(Kind.NEVER_CALLED, frozenset({2}))),
        (ERRORS + MISSING, Said(Kind.MISMATCH_KIND, frozenset({0, 3}))),
        ("", Said(Kind.HEALTHY, detected=False)),
        ("AssertionError: missing dump files", Said(Kind.UNKNOWN, detected=True)),
    ],
)
def test_of_torchfrtrace_the_first_statement_counts(output: str, said: Said) -> None:
    assert words_of_torchfrtrace(output, SIZE) == said
