"""The reduction of numbers by value.

They go with the arrivals and come back with GO: no tensor moves, and one admission is all it takes. Ints never
overflow, floats are combined in float64, in group order, so that every member computes the same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from ..coordinator import ReduceOp
from ..errors import BridgeError, ErrorCode, invalid
from .objects import object_plan
from .operation import Entry, Plan, Site, operation
from .outcome import Outcome

Number = bool | int | float

MAX_BITS = 65536
"""Of an int: it goes over the control links."""

_BITWISE = frozenset({ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR})
_KINDS: dict[str, frozenset[ReduceOp]] = {
    "bool": frozenset(ReduceOp) - {ReduceOp.AVG},
    "int": frozenset(ReduceOp),
    "float": frozenset(ReduceOp) - _BITWISE,
}


@dataclass(frozen=True, slots=True)
class AllReduceValue:
    """Give every member the reduction of all members' numbers."""

    value: Number
    op: ReduceOp


@operation()
def all_reduce_value(site: Site, args: AllReduceValue) -> Plan:
    """Equal kinds of number, and ops."""
    kind = type(args.value).__name__
    if args.op not in _KINDS[kind]:
        raise BridgeError.of(
            ErrorCode.UNSUPPORTED_DTYPE,
            f"no all_reduce_value with op {str(args.op)!r} for a {kind}",
            expected=", ".join(str(op) for op in ReduceOp if op in _KINDS[kind]),
            got=str(args.op),
        )

    if isinstance(args.value, int) and args.value.bit_length() > MAX_BITS:
        got = f"{args.value.bit_length()} bits"
        raise invalid("the number is too long", expected=f"at most {MAX_BITS} bits", got=got)

    def run(entry: Entry) -> Outcome:
        return _reduced([_read(kind, payload) for payload in entry.payloads], args.op)

    return object_plan(f"{kind} op={args.op}", _written(args.value), run)


def _written(number: Number) -> bytes:
    return (number.hex() if isinstance(number, float) else f"{int(number):x}").encode()


def _read(kind: str, payload: bytes) -> Number:
    text = payload.decode()
    if kind == "float":
        return float.fromhex(text)
    return bool(int(text)) if kind == "bool" else int(text, 16)


def _reduced(numbers: Sequence[Number], op: ReduceOp) -> Number:
    if isinstance(numbers[0], bool):
        return _COMBINE_BOOLS[op](numbers)
    if op is ReduceOp.AVG:
        try:
            return float(_COMBINE[ReduceOp.SUM](numbers) / len(numbers))
        except OverflowError:
            raise invalid("the average is too large for a float", got="ints beyond float64") from None
    return _COMBINE[op](numbers)


def _extreme(pick: Callable[[Sequence[Number]], Number]) -> Callable[[Sequence[Number]], Number]:
    def of(numbers: Sequence[Number]) -> Number:
        # As torch does: an error for values that cannot be compared.
        return next((it for it in numbers if isinstance(it, float) and math.isnan(it)), pick(numbers))

    return of


_COMBINE: dict[ReduceOp, Callable[[Sequence[Number]], Number]] = {
    ReduceOp.SUM: partial(reduce, operator.add),
    ReduceOp.PRODUCT: math.prod,
    ReduceOp.MIN: _extreme(min),
    ReduceOp.MAX: _extreme(max),
    ReduceOp.BAND: partial(reduce, operator.and_),
    ReduceOp.BOR: partial(reduce, operator.or_),
    ReduceOp.BXOR: partial(reduce, operator.xor),
}

_COMBINE_BOOLS: dict[ReduceOp, Callable[[Sequence[Number]], Number]] = {
    ReduceOp.SUM: any,
    ReduceOp.PRODUCT: all,
    ReduceOp.MIN: all,
    ReduceOp.MAX: any,
    ReduceOp.BAND: all,
    ReduceOp.BOR: any,
    ReduceOp.BXOR: lambda numbers: sum(map(int, numbers)) % 2 == 1,
}
"""As on tensors of bool."""
