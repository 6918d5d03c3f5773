"""Bad input: a clear error, nothing changed, and the group as healthy as before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.contract.families.build import RANKS, Json, case, tensor
from tests.contract.families.sizes import by_rank

Arguments = dict[str, Any]

ONE = tensor("float32", [4, 4], bytes(64))
WHOLE = tensor("float32", [16, 4], bytes(256))
SCALAR = tensor("float32", [], bytes(4))
ODD = {
    "dtype": tensor("int32", [4, 4], bytes(64)),
    "size": tensor("float32", [4, 8], bytes(128)),
    "shape": tensor("float32", [4, 2, 2], bytes(64)),
}
"""What differs from `ONE`, by what is different."""

GOOD: dict[str, Arguments] = {
    "all_reduce": {"op": "sum"},
    "broadcast": {"src_rank_in_group": 0},
    "scatter": {"src_rank_in_group": 0, "dim": 0},
    "gather": {"dst_rank_in_group": 0, "dim": 0},
    "all_gather": {"dim": 0},
    "reduce": {"op": "sum", "dst_rank_in_group": 0},
    "reduce_scatter": {"op": "sum", "dim": 0},
    "all_to_all": {"dim": 0},
}
"""Arguments that every operation takes, with its `inputs`."""

DIFFERENT: list[tuple[str, str, Arguments]] = [
    ("op", "all_reduce", {"op": "max"}),
    ("source", "broadcast", {"src_rank_in_group": 1}),
    ("source", "scatter", {"src_rank_in_group": 3}),
    ("dim", "scatter", {"dim": 1}),
    ("list of sizes", "scatter", {"sizes": [4, 4, 4, 4]}),
    ("destination", "gather", {"dst_rank_in_group": 1}),
    ("dim", "gather", {"dim": 1}),
    ("dim", "all_gather", {"dim": 1}),
    ("op", "reduce", {"op": "max"}),
    ("destination", "reduce", {"dst_rank_in_group": 1}),
    ("op", "reduce_scatter", {"op": "min"}),
    ("dim", "reduce_scatter", {"dim": 1}),
    ("list of sizes", "reduce_scatter", {"sizes": [0, 0, 1, 3]}),
    ("dim", "all_to_all", {"dim": 1}),
    ("list of sizes", "all_to_all", {"input_sizes": [1] * 4, "output_sizes": [1] * 4}),
    ("list of sizes", "gather", {"sizes": [4, 4, 4, 4]}),
    ("list of sizes", "all_gather", {"sizes": [4, 4, 4, 4]}),
]
"""What the last rank says instead."""

ROOTS = [
    ("broadcast", "src_rank_in_group"),
    ("gather", "dst_rank_in_group"),
    ("reduce", "dst_rank_in_group"),
    ("scatter", "src_rank_in_group"),
]
DIMS = ["all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"]


def inputs(operation: str) -> list[Json]:
    """What all members bring."""
    return [WHOLE, ONE, ONE, ONE] if operation == "scatter" else [ONE] * RANKS


def refusals() -> Iterator[Json]:
    """Members that differ, and arguments that are wrong on all of them."""
    yield from mismatches()
    yield from mismatched_sizes()
    yield from misfits()
    for rank in (RANKS, 2**31):
        for operation, root in ROOTS:
            yield case(
                f"{operation} {'to' if root.startswith('dst') else 'from'} rank {rank}",
                operation,
                arguments={**GOOD[operation], root: rank},
                inputs=inputs(operation),
                error="RANK_OUT_OF_RANGE",
            )
    for operation in DIMS:
        for dim in (2, -3):
            yield case(
                f"{operation} along {dim} of two dimensions",
                operation,
                arguments={**GOOD[operation], "dim": dim},
                inputs=inputs(operation),
                error="INVALID_ARGUMENT",
            )
        yield case(
            f"{operation} of no dimension",
            operation,
            arguments=GOOD[operation],
            inputs=[SCALAR] * RANKS,
            error="INVALID_ARGUMENT",
        )


def misfits() -> Iterator[Json]:
    """Tensors that cannot be divided as they should be."""
    yield case(
        "scatter of 6 to 4",
        "scatter",
        arguments_by_rank=[None, {"src_rank_in_group": 1, "dim": 0}, None, None],
        inputs=[tensor("float32", [6], bytes(24))] * RANKS,
        error="INVALID_ARGUMENT",
    )
    for sizes in ([], [1, 1, 1], [1] * 5, [1, 1, 1, 2], [0] * 4, [-1, 1, 2, 2], [2**63 - 1] * 4):
        yield case(
            f"reduce_scatter of 4 into {sizes}",
            "reduce_scatter",
            arguments={"dim": 0, "sizes": sizes},
            inputs=[ONE] * RANKS,
            error="INVALID_ARGUMENT",
        )
    for sizes in ([], [4] * 3, [4] * 5, [4, 4, 4, 5], [3, 4, 4, 5], [16, 4, 4, -8]):
        yield case(
            f"scatter of 16 to 4 each, said to be {sizes}",
            "scatter",
            arguments={**GOOD["scatter"], "sizes": sizes},
            inputs=inputs("scatter"),
            error="INVALID_ARGUMENT",
        )
    for operation in ("gather", "all_gather"):
        for sizes in ([], [4] * 3, [4] * 5, [3] * 4, [4, -4, 4, 4]):
            yield case(
                f"{operation} of 4 each, said to be {sizes}",
                operation,
                arguments={**GOOD[operation], "sizes": sizes},
                inputs=[ONE] * RANKS,
                error="INVALID_ARGUMENT",
            )
    wrong: list[Arguments] = [
        {"input_sizes": [1] * 3, "output_sizes": [1] * 4},
        {"input_sizes": [2] * 4, "output_sizes": [2] * 4},
        {"input_sizes": [1] * 4, "output_sizes": [1] * 5},
        {"input_sizes": [1] * 4, "output_sizes": [1, 1, -1, 1]},
        {"input_sizes": [1] * 4},
        {"output_sizes": [1] * 4},
        {"input_sizes": [], "output_sizes": []},
    ]
    for given in wrong:
        yield case(
            f"all_to_all with {given}",
            "all_to_all",
            arguments_by_rank=[{"dim": 0, **given}] * RANKS,
            inputs=[ONE] * RANKS,
            error="INVALID_ARGUMENT",
        )
    for rows in ([[1] * 4] * 3, [[1] * 3] * 4, [[1] * 4] * 3 + [[1] * 5], [[2] * 4] * 4, []):
        yield case(
            f"all_to_all with rows {rows}",
            "all_to_all",
            arguments={"dim": 0, "sizes": rows},
            inputs=[ONE] * RANKS,
            error="INVALID_ARGUMENT",
        )
    for operation in ("reduce_scatter", "all_to_all"):
        yield case(
            f"{operation} of 6 among 4",
            operation,
            arguments={"dim": 0},
            inputs=[tensor("float32", [6], bytes(24))] * RANKS,
            error="INVALID_ARGUMENT",
        )


def mismatches() -> Iterator[Json]:
    """One rank's tensor, or what it asks for, differs from the others'."""
    for what, odd in ODD.items():
        for operation, arguments in GOOD.items():
            yield case(
                f"{operation} with another {what} on one rank",
                operation,
                arguments=arguments,
                inputs=[*inputs(operation)[:2], odd, ONE],
                error="MISMATCH",
            )
    for what, operation, odd in DIFFERENT:
        good = GOOD[operation]
        yield case(
            f"{operation} with another {what} on one rank",
            operation,
            arguments_by_rank=[good] * (RANKS - 1) + [{**good, **odd}],
            inputs=inputs(operation),
            error="MISMATCH",
        )


def mismatched_sizes() -> Iterator[Json]:
    """Each rank's own size is right, and one is wrong about another's."""
    rows = [[4, 4, 4, 4]] * 3 + [[3, 4, 4, 4]]
    for operation in ("scatter", "gather", "all_gather"):
        yield case(
            f"{operation} with another size on one rank's list",
            operation,
            arguments_by_rank=[{**GOOD[operation], "sizes": it} for it in rows],
            inputs=inputs(operation),
            error="MISMATCH",
        )
    good = by_rank([[1] * RANKS] * RANKS, 0)
    for what, odd in (
        ("what it sends", {"input_sizes": [1, 0, 2, 1]}),
        ("what it gets", {"output_sizes": [2, 1, 1, 1]}),
        ("what it gets of all others", {"output_sizes": [3, 3, 3, 1]}),
        ("everything", {"input_sizes": [0, 0, 2, 2], "output_sizes": [0, 2, 0, 2]}),
    ):
        yield case(
            f"all_to_all with another idea on one rank of {what}",
            "all_to_all",
            arguments_by_rank=[*good[:3], {**good[3], **odd}],
            inputs=[ONE] * RANKS,
            error="MISMATCH",
        )


def missing() -> Iterator[Json]:
    """A rank that does not come: null stands for its arguments."""
    for operation, arguments in GOOD.items():
        yield case(
            f"{operation} without one rank",
            operation,
            arguments_by_rank=[arguments, arguments, None, arguments],
            inputs=inputs(operation),
            # On a busy machine a rank may take a while to begin with its part.
            timeout=0.6,
            error="PEER_MISSING",
        )
