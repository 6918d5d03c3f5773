"""What ranks have recorded of the same operations, side by side."""

from __future__ import annotations

from tests.support.recorded import recorded

from rankbridge import timeline


def test_parts_of_one_operation_are_one_entry_in_the_order_of_the_first_calls() -> None:
    records = {
        0: [recorded(10.0, operation_id="b", done=1.0), recorded(8.0, operation_id="a")],
        2: [recorded(7.5, operation_id="a"), recorded(10.25, operation_id="b", done=2.0)],
    }
    first, second = timeline(records)
    assert (first.operation_id, list(first.at), first.called, first.apart) == ("a", [0, 2], 7.5, 0.5)
    assert (second.called, second.apart, second.took) == (10.0, 0.25, 2.25)
    assert (second.outcome, second.contract, second.site) == ("done", "barrier", "a.py:1")


def test_an_operation_without_an_id_or_of_another_generation_or_group_stays_alone() -> None:
    records = {
        0: [recorded(1.0), recorded(2.0, operation_id="a"), recorded(3.0, operation_id="b")],
        1: [recorded(1.0), recorded(2.0, operation_id="a", generation=2)],
        2: [recorded(3.0, operation_id="b", group="pair")],
    }
    assert [len(it.at) for it in timeline(records)] == [1] * 6


def test_where_ranks_differ_each_side_has_its_ranks() -> None:
    records = {
        rank: [
            recorded(
                1.0,
                operation_id="a",
                contract="reduce" if rank == 3 else "gather",
                site="",
                code="mismatch" if rank == 3 else "",
                done=None if rank == 0 else 0.25,
                phase="admission",
            )
        ]
        for rank in range(4)
    }
    (entry,) = timeline(records)
    assert entry.contract == "gather: ranks 0-2; reduce: rank 3"
    assert entry.outcome == "admission: rank 0; done: ranks 1-2; mismatch: rank 3"
    assert entry.took is None
    assert str(entry) == (
        "barrier on ranks 0-3, 0.0 ms apart, not yet answered, at -: admission: rank 0; done: ranks 1-2; "
        "mismatch: rank 3 (gather: ranks 0-2; reduce: rank 3)"
    )


def test_a_call_of_a_function_has_its_name() -> None:
    (entry,) = timeline({0: [recorded(1.0, operation="call_function", function="step")]})
    assert entry.operation == "step"
