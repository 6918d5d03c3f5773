"""What members of a group have recorded of the same operation, also where none of them was given an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.support.recorded import recorded

from rankbridge import RecordedOperation
from rankbridge._plan.export.meetings import meetings


def passed(called: float, came: float = 0.0, **fields: object) -> RecordedOperation:
    """A barrier that was admitted at the next tenth of a second."""
    ruled = 0.1 - (called + came) % 0.1
    return recorded(called, announced=came, entered=came + ruled, done=came + ruled + 0.001, **fields)


def failed(called: float, ended: float | None, **fields: object) -> RecordedOperation:
    code = "" if ended is None else "peer_missing"
    return recorded(
        called, announced=0.0, done=None if ended is None else ended - called, code=code, **fields
    )


def met(
    records: Mapping[int, Sequence[RecordedOperation]],
    before: Mapping[int, Sequence[RecordedOperation]] | None = None,
) -> list[dict[int, float]]:
    """By rank, when each was called."""
    found = meetings(records, dict.fromkeys(records, 0.0), before)
    return [{rank: it.record.called for rank, it in sorted(each.items())} for each in found]


def test_what_was_admitted_together_is_found_without_ids() -> None:
    records = {0: [passed(1.01), passed(1.11)], 1: [passed(1.05), passed(1.15)]}
    assert met(records) == [{0: 1.01, 1: 1.05}, {0: 1.11, 1: 1.15}]


def test_who_has_not_come_is_absent_and_comes_to_the_next() -> None:
    records = {
        0: [passed(1.01), failed(2.0, 3.0), passed(4.01)],
        1: [passed(1.02), failed(2.5, 3.0), passed(4.02)],
        2: [passed(1.03), passed(4.03)],
    }
    assert met(records) == [{0: 1.01, 1: 1.02, 2: 1.03}, {0: 2.0, 1: 2.5}, {0: 4.01, 1: 4.02, 2: 4.03}]


def test_those_that_asked_for_different_ones_have_met() -> None:
    records = {0: [failed(1.0, 2.0, operation_id="a")], 1: [failed(1.5, 2.0, operation_id="b")]}
    assert met(records) == [{0: 1.0, 1: 1.5}]


def test_what_a_record_may_have_lost_is_left_out_and_what_is_pending_is_not() -> None:
    records = {
        0: [passed(1.01), failed(2.0, 3.0), passed(4.01), failed(5.0, None)],
        1: [passed(4.02)],
        2: [],
    }
    # Nothing shows that a rank without a record has lost any of it.
    assert met({0: records[0][1:2], 2: []}) == [{0: 2.0}]
    assert met({rank: records[rank] for rank in (0, 1)}) == [{0: 4.01, 1: 4.02}, {0: 5.0}]


def test_records_that_were_read_one_after_the_other_accuse_nobody() -> None:
    # Rank 1 was read last: it has been admitted, and has called the next one.
    records = {0: [failed(1.01, None)], 1: [passed(1.05), failed(1.2, None)]}
    before = {0: records[0], 1: []}
    assert met(records, before) == [{0: 1.01, 1: 1.05}]
    assert met(records, records) == [{0: 1.01, 1: 1.05}, {1: 1.2}]
