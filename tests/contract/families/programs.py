"""Programs: steps of which one takes what another gives, as one operation.

`tensors`: those that are there before, by name, one for each member. `steps`: collectives - `takes`: a name of
`tensors`, "%" and a name that an earlier step gives, or null; `name`: of what it gives, or null - and loops, of `count`
and `steps`. `keep`: names; `results`: for each what its collective gives alone, or a name of `tensors`, whose refs it
gives. `after`: of `tensors`, those that have changed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from tests.contract.families.build import RANKS, Json, case, divide, encode, noise, stack, tensor
from tests.contract.families.layouts import noisy

ROWS = [[rank + 1, 2 * rank] for rank in range(RANKS)]
SUMS = [sum(column) for column in zip(*ROWS, strict=True)]


def int32(values: Sequence[int]) -> Json:
    """A tensor of whole numbers."""
    return tensor("int32", [len(values)], encode("int32", values))


def step(operation: str, takes: str | None, name: str | None = None, **arguments: Any) -> Json:
    """A collective."""
    return {"operation": operation, "takes": takes, "name": name, "arguments": arguments}


def loop(count: int, *steps: Json) -> Json:
    """Steps that are repeated."""
    return {"count": count, "steps": list(steps)}


def program(name: str, tensors: dict[str, list[Json]], *steps: Json, **fields: Any) -> Json:
    """A case with what it leaves out."""
    common: Json = {"keep": [], "results": [], "after": {}}
    if "error" in fields:
        del common["results"]
    return case(f"program {name}", "run_program", tensors=tensors, steps=list(steps), **{**common, **fields})


def programs() -> Iterator[Json]:
    """Chains, loops, what is kept and what is not, and what cannot be done."""
    yield from chains()
    yield from loops()
    yield from refusals()


def chains() -> Iterator[Json]:
    """Each takes what another gives."""
    rows = [int32(row) for row in ROWS]
    total = int32(SUMS)
    yield program(
        "that gathers sums",
        {"x": rows},
        step("all_reduce", "x", "total", op="sum"),
        step("all_gather", "%total", "all", dim=0),
        keep=["all", "total"],
        results=[[stack([total] * RANKS, 0)] * RANKS, [total] * RANKS],
    )
    shape = [2 * RANKS, 3]
    whole = noise("program scatter", "uint16", shape)
    parts = divide(whole, "uint16", shape, 0, [2] * RANKS)
    moved = [stack([divide(base64.b64decode(part["data"]), "uint16", [2, 3], 1, [0, 1, 2, 0])[member]
                    for part in parts], 1) for member in range(RANKS)]  # fmt: skip
    yield program(
        "that scatters, exchanges and gathers again",
        {"parts": [tensor("uint16", shape, whole), *parts[1:]]},
        step("scatter", "parts", "part"),
        step("barrier", None),
        step("all_to_all", "%part", "moved", dim=1, sizes=[[0, 1, 2, 0]] * RANKS),
        step("gather", "%part", "whole", dim=0, dst_rank_in_group=2),
        step("all_gather", "%part", "list", layout="list"),
        keep=["moved", "whole", "list"],
        results=[moved, [None, None, tensor("uint16", shape, whole), None], [parts] * RANKS],
    )
    yield program(
        "of a group, with a reduction at one member",
        {"x": rows[:2]},
        step("broadcast", "x", "sent", src_rank_in_group=1),
        step("reduce", "%sent", "reduced", op="sum", dst_rank_in_group=0),
        group=[3, 1],
        keep=["reduced"],
        results=[[int32([2 * value for value in ROWS[1]]), None]],
    )
    bytes_ = noisy("float8_e5m2", [[2, 1]] * RANKS)
    yield program(
        "that changes in place what later steps see",
        {"x": rows, "bytes": bytes_},
        step("all_reduce", "x", "first", op="sum", in_place=True),
        step("all_reduce", "x", "second", op="sum"),
        step("broadcast", "bytes", None, src_rank_in_group=3, in_place=True),
        step("all_gather", "bytes", "all", dim=1),
        keep=["first", "second", "all"],
        results=[
            "x",
            [int32([RANKS * value for value in SUMS])] * RANKS,
            [stack([bytes_[3]] * RANKS, 1)] * RANKS,
        ],
        after={"x": [total] * RANKS, "bytes": [bytes_[3]] * RANKS},
    )


def loops() -> Iterator[Json]:
    """What one turn gives is there in the next."""
    rows = [int32(row) for row in ROWS]
    yield program(
        "that carries a sum through a loop",
        {"x": rows},
        step("all_reduce", "x", "total", op="sum"),
        loop(5, step("all_reduce", "%total", "total", op="sum")),
        keep=["total"],
        results=[[int32([RANKS**5 * value for value in SUMS])] * RANKS],
    )
    yield program(
        "with loops in a loop, in place",
        {"x": rows},
        loop(
            2,
            loop(2, step("all_reduce", "x", None, op="sum", in_place=True), step("barrier", None)),
            loop(1, step("broadcast", "x", "sent", src_rank_in_group=1)),
        ),
        keep=["sent"],
        results=[[int32([RANKS**3 * value for value in SUMS])] * RANKS],
        after={"x": [int32([RANKS**3 * value for value in SUMS])] * RANKS},
    )
    yield program("of barriers alone", {}, loop(100, step("barrier", None)))


def refusals() -> Iterator[Json]:
    """Nothing has changed."""
    rows = [int32(row) for row in ROWS]
    adding = step("all_reduce", "x", "total", op="sum", in_place=True)
    wrong = [tensor("float8_e5m2", [1], bytes([rank])) for rank in range(RANKS)]
    unlike = noisy("uint8", [[3], [0], [1], [2]])
    yield program(
        "with a dtype that is not reduced",
        {"x": rows, "wrong": wrong},
        adding,
        loop(3, step("all_reduce", "wrong", None, op="sum")),
        error="UNSUPPORTED_DTYPE",
    )
    yield program(
        "with shapes that differ",
        {"x": rows, "unlike": unlike},
        adding,
        step("all_gather", "unlike", "all", dim=0),
        keep=["all"],
        error="MISMATCH",
    )
    yield program(
        "that gives a name again as something else",
        {"x": rows},
        adding,
        step("all_gather", "x", "all", dim=0),
        loop(2, step("all_gather", "%all", "all", dim=0)),
        keep=["all"],
        error="INVALID_ARGUMENT",
    )
    yield program(
        "with a source that is not there",
        {"x": rows},
        adding,
        loop(2, step("broadcast", "x", None, src_rank_in_group=RANKS)),
        error="RANK_OUT_OF_RANGE",
    )
