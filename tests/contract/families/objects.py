"""Values by value: whatever can be said goes from any member to any other and stays what it is.

A value is an object of one entry, its kind: `{"none": true}`, `{"bool": b}`, `{"int": "decimal"}`, `{"float": hex of
its 8 bytes, big-endian}`, `{"text": s}`, `{"bytes": base64}`, `{"list": [...]}`, `{"tuple": [...]}`, `{"map": [[key,
value], ...]}`, `{"tensor": {...}}`, and in tensor dicts `{"ref": the tensor that is there}`.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from typing import Any

from tests.contract.families.build import RANKS, Json, case, noise, tensor

NONE = {"none": True}


def integer(value: int) -> Json:
    """An int of any size."""
    return {"int": str(value)}


def number(value: float) -> Json:
    """A float, NaN and -0.0 included."""
    return {"float": struct.pack(">d", value).hex()}


def octets(value: bytes) -> Json:
    """Bytes."""
    return {"bytes": base64.b64encode(value).decode()}


def text(value: str) -> Json:
    """Text."""
    return {"text": value}


VALUES: dict[str, Json] = {
    "none": NONE,
    "true": {"bool": True},
    "false": {"bool": False},
    "zero": integer(0),
    "a negative int": integer(-(2**63)),
    "an int of 65 bits": integer(2**64),
    "a large negative int": integer(-(2**200) - 1),
    "a float": number(0.1),
    "minus zero": number(-0.0),
    "infinity": number(math.inf),
    "no text": text(""),
    "text": text("äöü \u4e16\u754c \U0001f600 \u0000"),
    "no bytes": octets(b""),
    "bytes that are text": octets(b"abc"),
    "bytes": octets(bytes(range(256)) * 300),
    "an empty list": {"list": []},
    "an empty tuple": {"tuple": []},
    "an empty map": {"map": []},
    "a tensor": {"tensor": tensor("bfloat16", [2, 0, 3], b"")},
    "nested": {
        "map": [
            [text("a"), {"list": [integer(1), {"tuple": [NONE, {"bool": True}]}, number(1.5)]}],
            [integer(7), octets(b"\xff")],
            [{"tuple": [integer(1), text("k")]}, {"map": [[NONE, {"list": []}]]}],
            [{"bool": False}, {"tensor": tensor("int16", [2], noise("v", "int16", [2]))}],
        ]
    },
}

SOME = [VALUES[name] for name in ("nested", "none", "bytes", "a large negative int")]
OTHERS = [VALUES[name] for name in ("minus zero", "an empty map", "text", "a tensor")]


def objects() -> Iterator[Json]:
    """What a value is, and who gets it."""
    for name, value in VALUES.items():
        yield case(f"broadcast_object of {name}", "broadcast_object", value=value, results=[value] * RANKS)
    for src in range(RANKS):
        arguments = {"src_rank_in_group": src}
        yield case(
            f"broadcast_object from {src}",
            "broadcast_object",
            arguments=arguments,
            value=SOME[src],
            results=[SOME[src]] * RANKS,
        )
        yield case(
            f"scatter_object from {src}", "scatter_object", arguments=arguments, values=SOME, results=SOME
        )
        yield case(
            f"gather_object to {src}",
            "gather_object",
            arguments={"dst_rank_in_group": src},
            values=OTHERS,
            results=[{"list": OTHERS} if rank == src else NONE for rank in range(RANKS)],
        )
    for values in (SOME, OTHERS, [NONE] * RANKS):
        yield case(
            f"all_gather_object of {[next(iter(it)) for it in values]}",
            "all_gather_object",
            values=values,
            results=[{"list": values}] * RANKS,
        )
    yield case(
        "broadcast_object in a group in its own order",
        "broadcast_object",
        group=[3, 1],
        arguments={"src_rank_in_group": 1},
        value=text("from rank 1"),
        results=[text("from rank 1")] * 2,
    )
    yield case(
        "all_gather_object in a group in its own order",
        "all_gather_object",
        group=[2, 0, 3],
        values=SOME[:3],
        results=[{"list": SOME[:3]}] * 3,
    )
    yield case(
        "broadcast_object from nobody",
        "broadcast_object",
        arguments={"src_rank_in_group": RANKS},
        value=NONE,
        error="RANK_OUT_OF_RANGE",
    )
    yield from reductions()
    yield from dicts()


def reductions() -> Iterator[Json]:
    """Numbers stay what they are."""
    cases: list[tuple[str, list[Json], dict[str, Json]]] = [
        (
            "ints",
            [integer(it) for it in (6, 3, -5, 2**70)],
            {
                "sum": integer(4 + 2**70),
                "product": integer(-90 * 2**70),
                "min": integer(-5),
                "max": integer(2**70),
                "bxor": integer(6 ^ 3 ^ -5 ^ 2**70),
            },
        ),
        ("small ints", [integer(it) for it in (1, 2, 3, 4)], {"avg": number(2.5), "band": integer(0)}),
        (
            "floats",
            [number(it) for it in (0.1, 0.2, 0.3, 1e300)],
            {"sum": number(0.1 + 0.2 + 0.3 + 1e300), "max": number(1e300), "min": number(0.1)},
        ),
        (
            "small floats",
            [number(it) for it in (0.1, 0.2, 0.3, 0.4)],
            {"sum": number(0.1 + 0.2 + 0.3 + 0.4), "avg": number((0.1 + 0.2 + 0.3 + 0.4) / 4)},
        ),
        (
            "bools",
            [{"bool": it} for it in (True, False, True, True)],
            {"sum": {"bool": True}, "product": {"bool": False}, "bxor": {"bool": True}},
        ),
    ]
    for name, values, results in cases:
        for op, result in results.items():
            yield case(
                f"all_reduce_value of {name}, {op}",
                "all_reduce_value",
                arguments={"op": op},
                values=values,
                results=[result] * RANKS,
            )
    mixed = [integer(1), number(1.0), integer(1), integer(1)]
    yield case("all_reduce_value of an int and a float", "all_reduce_value", values=mixed, error="MISMATCH")
    for op, value in (("band", number(1.0)), ("avg", {"bool": True})):
        yield case(
            f"all_reduce_value that has no {op}",
            "all_reduce_value",
            arguments={"op": op},
            values=[value] * RANKS,
            error="UNSUPPORTED_DTYPE",
        )


WEIGHTS: Json = {
    "map": [
        [
            text("weights"),
            {"map": [[text("a"), {"ref": tensor("float8_e5m2", [2, 3], noise("a", "float8_e5m2", [2, 3]))}]]},
        ],
        [text("empty"), {"ref": tensor("int64", [0, 4], b"")}],
        [text("scalar"), {"ref": tensor("float64", [], noise("s", "float64", []))}],
        [text("step"), integer(3)],
        [integer(1), {"list": [text("not a tensor"), NONE]}],
    ]
}


def dicts() -> Iterator[Json]:
    """Maps of tensors: nested, empty ones, and values beside them."""
    for src in range(RANKS):
        yield case(
            f"broadcast_tensor_dict from {src}",
            "broadcast_tensor_dict",
            arguments={"src_rank_in_group": src},
            value=WEIGHTS,
            results=[WEIGHTS] * RANKS,
        )
    plain: Any = {"map": [[text("k"), integer(1)]]}
    for name, value in (("without tensors", plain), ("of nothing", {"map": []})):
        yield case(
            f"broadcast_tensor_dict {name}", "broadcast_tensor_dict", value=value, results=[value] * RANKS
        )
