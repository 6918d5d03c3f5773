"""Writes `cases/*.json`: what every backend must answer, through every client.

Run `python -m tests.contract.generate`; a test checks that running it again changes nothing. Nothing here computes
with torch: moves are told in random bytes, reductions in small whole numbers that every dtype holds exactly.

A case: `ranks` in the gang; `group`, ranks of a group that is made for it, or null for world; `operation` and
`arguments`, the same on every member, or `arguments_by_rank`, one for each; `inputs`, one tensor for each member, or
null; and either `results`, for each member a tensor or null, or `error`, the code of the error that the call raises.
A tensor is `{dtype, shape, data}`, data in base64 of its little-endian bytes.
"""

from __future__ import annotations

import base64
import json
import math
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"
RANKS = 4

ITEM_SIZES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1, "complex32": 4, "complex64": 8, "complex128": 16,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
}  # fmt: skip
FLOATS = {"float32": "f", "float64": "d", "float16": "e"}
INTS = {"int8": "b", "uint8": "B", "int32": "i", "int64": "q"}
COMPLEX = {"complex64": "f", "complex128": "d"}
REDUCIBLE = [*FLOATS, "bfloat16", *INTS, "bool", *COMPLEX]
NOT_REDUCIBLE = sorted(set(ITEM_SIZES) - set(REDUCIBLE))

Json = dict[str, Any]


def tensor(dtype: str, shape: Sequence[int], data: bytes) -> Json:
    """A tensor as cases have it."""
    assert len(data) == math.prod(shape) * ITEM_SIZES[dtype]
    return {"dtype": dtype, "shape": list(shape), "data": base64.b64encode(data).decode()}


def noise(seed: str, dtype: str, shape: Sequence[int]) -> bytes:
    """Random elements, NaNs and infinities among them; of bool 0 or 1."""
    generator = random.Random(seed)
    count = math.prod(shape) * ITEM_SIZES[dtype]
    return bytes(generator.randrange(2 if dtype == "bool" else 256) for _ in range(count))


def encode(dtype: str, values: Sequence[int]) -> bytes:
    """Small whole numbers as elements."""
    if dtype in FLOATS or dtype in INTS:
        return struct.pack(f"<{len(values)}{(FLOATS | INTS)[dtype]}", *values)
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    if dtype == "bool":
        return bytes(value != 0 for value in values)
    return b"".join(struct.pack(f"<2{COMPLEX[dtype]}", value, -value) for value in values)


def case(name: str, operation: str, **fields: Any) -> Json:
    """A case with what it leaves out."""
    return {
        "case": name,
        "ranks": RANKS,
        "group": None,
        "operation": operation,
        "arguments": {},
        "inputs": None,
        **fields,
    }


def concatenate(parts: Sequence[bytes], dtype: str, shape: Sequence[int], dim: int) -> bytes:
    """Row-major tensors of `shape`, side by side along `dim`."""
    rows = math.prod(shape[:dim])
    width = math.prod(shape[dim:]) * ITEM_SIZES[dtype]
    return b"".join(part[row * width : (row + 1) * width] for row in range(rows) for part in parts)


def moves() -> Iterator[Json]:
    """Broadcast, gather and all_gather of every dtype."""
    for dtype in ITEM_SIZES:
        shape = [2, 3]
        data = [noise(f"{dtype}/{rank}", dtype, shape) for rank in range(RANKS)]
        inputs = [tensor(dtype, shape, it) for it in data]
        for in_place in (False, True):
            yield case(
                f"broadcast {dtype}{' in place' if in_place else ''}",
                "broadcast",
                arguments={"src_rank_in_group": 2, "in_place": in_place},
                inputs=inputs,
                results=[inputs[2]] * RANKS,
            )
        joined = tensor(dtype, [8, 3], concatenate(data, dtype, shape, 0))
        yield case(
            f"gather {dtype}",
            "gather",
            arguments={"dst_rank_in_group": 1, "dim": 0},
            inputs=inputs,
            results=[None, joined, None, None],
        )
        joined = tensor(dtype, [2, 12], concatenate(data, dtype, shape, 1))
        yield case(
            f"all_gather {dtype}",
            "all_gather",
            arguments={"dim": -1},
            inputs=inputs,
            results=[joined] * RANKS,
        )


def shapes() -> Iterator[Json]:
    """Concatenation along every dimension of many shapes, empty ones among them."""
    for shape in ([1], [5], [0], [2, 3], [3, 0, 2], [2, 1, 3, 2]):
        data = [noise(f"{shape}/{rank}", "int16", shape) for rank in range(RANKS)]
        inputs = [tensor("int16", shape, it) for it in data]
        for dim in range(len(shape)):
            joined_shape = [size * RANKS if at == dim else size for at, size in enumerate(shape)]
            joined = tensor("int16", joined_shape, concatenate(data, "int16", shape, dim))
            for spelled in (dim, dim - len(shape)):
                yield case(
                    f"all_gather of {shape} along {spelled}",
                    "all_gather",
                    arguments={"dim": spelled},
                    inputs=inputs,
                    results=[joined] * RANKS,
                )
            yield case(
                f"gather of {shape} along {dim} to the last rank",
                "gather",
                arguments={"dst_rank_in_group": RANKS - 1, "dim": dim},
                inputs=inputs,
                results=[None] * (RANKS - 1) + [joined],
            )
    for shape in ([], [0], [2, 0]):
        values = [rank + 1 for rank in range(RANKS)]
        inputs = [tensor("float32", shape, encode("float32", [v] * math.prod(shape))) for v in values]
        total = tensor("float32", shape, encode("float32", [sum(values)] * math.prod(shape)))
        yield case(
            f"all_reduce of {shape}",
            "all_reduce",
            arguments={"op": "sum"},
            inputs=inputs,
            results=[total] * RANKS,
        )
        arguments = {"src_rank_in_group": 3}
        yield case(
            f"broadcast of {shape}",
            "broadcast",
            arguments=arguments,
            inputs=inputs,
            results=[inputs[3]] * RANKS,
        )


def reductions() -> Iterator[Json]:
    """Every reduce op on every dtype, and the refusals."""
    combine: dict[str, Callable[[Sequence[int]], int]] = {
        "sum": sum,
        "product": math.prod,
        "min": min,
        "max": max,
        "avg": lambda values: sum(values) // len(values),
    }
    columns = [[1, 2, 3, 2], [0, 4, 0, 4], [1, 1, 1, 1]]
    for op, reduce in combine.items():
        for dtype in ITEM_SIZES:
            refused = (
                dtype in NOT_REDUCIBLE
                or (op == "avg" and (dtype in INTS or dtype == "bool"))
                or (op not in ("sum", "avg") and dtype in COMPLEX)
            )
            arguments = {"op": op}
            if refused:
                inputs = [tensor(dtype, [3], bytes(3 * ITEM_SIZES[dtype]))] * RANKS
                yield case(
                    f"all_reduce {op} {dtype}",
                    "all_reduce",
                    arguments=arguments,
                    inputs=inputs,
                    error="UNSUPPORTED_DTYPE",
                )
                continue
            values = [[bool(v) for v in column] for column in columns] if dtype == "bool" else columns
            inputs = [
                tensor(dtype, [3], encode(dtype, [int(column[rank]) for column in values]))
                for rank in range(RANKS)
            ]
            result = tensor(
                dtype, [3], encode(dtype, [_reduced(op, dtype, column, reduce) for column in columns])
            )
            for in_place in (False, True):
                yield case(
                    f"all_reduce {op} {dtype}{' in place' if in_place else ''}",
                    "all_reduce",
                    arguments={"op": op, "in_place": in_place},
                    inputs=inputs,
                    results=[result] * RANKS,
                )


def _reduced(op: str, dtype: str, column: Sequence[int], reduce: Callable[[Sequence[int]], int]) -> int:
    if op == "avg" and sum(column) % len(column):
        raise ValueError(f"the average of {column} is not whole")
    return int(reduce([bool(v) for v in column])) if dtype == "bool" else reduce(column)


def groups() -> Iterator[Json]:
    """Groups other than world: their order is their own."""
    for ranks in ([0, 2], [3, 1, 0], [2], [3, 2, 1, 0]):
        values = [10 * (place + 1) for place in range(len(ranks))]
        inputs = [tensor("int32", [1], encode("int32", [value])) for value in values]
        total = tensor("int32", [1], encode("int32", [sum(values)]))
        joined = tensor("int32", [len(ranks)], encode("int32", values))
        members = len(ranks)
        last = members - 1
        yield case(f"barrier in {ranks}", "barrier", group=ranks, results=[None] * members)
        yield case(
            f"all_reduce in {ranks}",
            "all_reduce",
            group=ranks,
            arguments={"op": "sum"},
            inputs=inputs,
            results=[total] * members,
        )
        yield case(
            f"all_gather in {ranks}",
            "all_gather",
            group=ranks,
            arguments={"dim": 0},
            inputs=inputs,
            results=[joined] * members,
        )
        yield case(
            f"broadcast in {ranks} from its last", "broadcast", group=ranks,
            arguments={"src_rank_in_group": last}, inputs=inputs, results=[inputs[last]] * members,
        )  # fmt: skip
        yield case(
            f"gather in {ranks} to its first", "gather", group=ranks,
            arguments={"dst_rank_in_group": 0, "dim": 0}, inputs=inputs, results=[joined] + [None] * last,
        )  # fmt: skip
        yield case(
            f"broadcast in {ranks} from outside", "broadcast", group=ranks,
            arguments={"src_rank_in_group": members}, inputs=inputs, error="RANK_OUT_OF_RANGE",
        )  # fmt: skip


def refusals() -> Iterator[Json]:
    """Bad input: a clear error, nothing changed, and the group as healthy as before."""
    one = tensor("float32", [4], bytes(16))
    scalar = tensor("float32", [], bytes(4))
    other_dtype = tensor("int32", [4], bytes(16))
    longer = tensor("float32", [8], bytes(32))
    reshaped = tensor("float32", [2, 2], bytes(16))
    for name, odd in (("dtype", other_dtype), ("size", longer), ("shape", reshaped)):
        inputs = [one, one, odd, one]
        yield case(
            f"all_reduce with another {name} on one rank",
            "all_reduce",
            arguments={"op": "sum"},
            inputs=inputs,
            error="MISMATCH",
        )
        yield case(
            f"broadcast with another {name} on one rank",
            "broadcast",
            arguments={"src_rank_in_group": 0},
            inputs=inputs,
            error="MISMATCH",
        )
        yield case(
            f"gather with another {name} on one rank",
            "gather",
            arguments={"dst_rank_in_group": 0, "dim": 0},
            inputs=inputs,
            error="MISMATCH",
        )
        yield case(
            f"all_gather with another {name} on one rank",
            "all_gather",
            arguments={"dim": 0},
            inputs=inputs,
            error="MISMATCH",
        )
    different = {
        "op": ("all_reduce", [{"op": "sum"}] * 3 + [{"op": "max"}]),
        "source": ("broadcast", [{"src_rank_in_group": 0}] * 3 + [{"src_rank_in_group": 1}]),
        "destination": (
            "gather",
            [{"dst_rank_in_group": 0, "dim": 0}] * 3 + [{"dst_rank_in_group": 1, "dim": 0}],
        ),
    }
    for name, (operation, arguments) in different.items():
        yield case(
            f"{operation} with another {name} on one rank",
            operation,
            arguments_by_rank=arguments,
            inputs=[one] * RANKS,
            error="MISMATCH",
        )
    for rank in (RANKS, 2**31):
        yield case(
            f"broadcast from rank {rank}",
            "broadcast",
            arguments={"src_rank_in_group": rank},
            inputs=[one] * RANKS,
            error="RANK_OUT_OF_RANGE",
        )
        yield case(
            f"gather to rank {rank}",
            "gather",
            arguments={"dst_rank_in_group": rank, "dim": 0},
            inputs=[one] * RANKS,
            error="RANK_OUT_OF_RANGE",
        )
    for dim in (1, -2):
        yield case(
            f"all_gather along {dim} of one dimension",
            "all_gather",
            arguments={"dim": dim},
            inputs=[one] * RANKS,
            error="INVALID_ARGUMENT",
        )
    yield case(
        "all_gather of no dimension",
        "all_gather",
        arguments={"dim": 0},
        inputs=[scalar] * RANKS,
        error="INVALID_ARGUMENT",
    )
    yield case(
        "gather of no dimension",
        "gather",
        arguments={"dst_rank_in_group": 0, "dim": 0},
        inputs=[scalar] * RANKS,
        error="INVALID_ARGUMENT",
    )


FILES: dict[str, Callable[[], Iterator[Json]]] = {
    "moves": moves,
    "shapes": shapes,
    "reductions": reductions,
    "groups": groups,
    "refusals": refusals,
}


def rendered(name: str) -> str:
    """What the file of that name holds."""
    lines = ",\n".join(json.dumps(it) for it in FILES[name]())
    return f"[\n{lines}\n]\n"


def main() -> None:
    """Write all files."""
    CASES.mkdir(exist_ok=True)
    for name in FILES:
        (CASES / f"{name}.json").write_text(rendered(name))


if __name__ == "__main__":
    main()
