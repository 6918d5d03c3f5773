"""The reference model: what an operation gives each member, by numpy, in float64, with the bridge's rules.

It computes each reduction of floats once, in float64, and says how far from it a backend may be that adds in its own
precision and order. Moves are of bits. Ints wrap around, bools are combined as logic does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.tensor import Tensor
from rankbridge.harness.floats import Values, decode, encode, epsilon, largest

Options = Mapping[str, Any]


class Unpredictable(Exception):
    """The model does not say what comes of this: an operation that must fail, or one that it does not know."""


@dataclass(frozen=True, slots=True)
class Near:
    """A tensor that is right within rounding.

    Attributes:
        tensor: The result, rounded once.
        values: The same in float64 or complex128.
        bound: How far off an element may be, by element.
        may_overflow: Where numbers may become infinite on the way, in some order, by element.
    """

    tensor: Tensor
    values: Values
    bound: Values
    may_overflow: Values

    def part(self, pick: Callable[[Values], Values]) -> Near:
        """Gives a part of it."""
        picked = [np.ascontiguousarray(pick(it)) for it in (self.values, self.bound, self.may_overflow)]
        return Near(encode(picked[0], self.tensor.dtype), *picked)


Result = Tensor | Near
"""What a member is given, as a tensor."""


def results(operation: str, brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    """Gives what an operation gives every member of a group.

    Args:
        operation: Its name.
        brought: What each member brings, in group order: a ``Tensor``, a value, or a map of tensors.
        options: Arguments of each member, by their names in the proto.

    Returns:
        For each member a ``Result``, a list of them, a map of tensors, a value, or None.

    Raises:
        Unpredictable: It must fail, or is none of the model's operations.
    """
    model = _MODELS.get(operation)
    if model is None:
        raise Unpredictable(f"the reference model has no {operation}")
    try:
        return model(brought, options)
    except (IndexError, TypeError, ValueError, KeyError) as error:
        raise Unpredictable(f"the reference model has no result of this {operation}: {error}") from error


def reduced(tensors: Sequence[Tensor], op: str) -> Result:
    """Gives the reduction of tensors, element by element.

    Raises:
        Unpredictable: No backend has it.
    """
    dtype = tensors[0].dtype
    if len({(it.dtype, it.shape) for it in tensors}) != 1:
        raise Unpredictable("tensors of several dtypes or shapes")
    if dtype.startswith("float8") or (dtype.startswith("complex") and op not in ("sum", "avg", "product")):
        raise Unpredictable(f"there is no {op} of {dtype}")
    arrays = np.stack([decode(it) for it in tensors])
    if arrays.dtype.kind == "b":
        return encode(_of_bools(arrays, op), dtype)
    if arrays.dtype.kind in "iu":
        return encode(_of_ints(arrays, op), dtype)
    return _of_floats(arrays, op, dtype)


def _of_bools(arrays: Values, op: str) -> Values:
    if op in ("sum", "max", "bor"):
        return np.asarray(arrays.any(axis=0))
    if op in ("product", "min", "band"):
        return np.asarray(arrays.all(axis=0))
    if op == "bxor":
        return np.asarray(np.logical_xor.reduce(arrays, axis=0))
    raise Unpredictable(f"there is no {op} of bool")


_INT_OPS: dict[str, np.ufunc] = {
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


def _of_ints(arrays: Values, op: str) -> Values:
    if op not in _INT_OPS:
        raise Unpredictable(f"there is no {op} of {arrays.dtype}")
    return np.asarray(_INT_OPS[op].reduce(arrays, axis=0, dtype=arrays.dtype))


def _of_floats(arrays: Values, op: str, dtype: str) -> Result:
    count = len(arrays)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if op in ("min", "max"):
            values = np.asarray(_INT_OPS[op].reduce(arrays, axis=0))
            # Engines differ in what becomes of a NaN.
            unknown = np.asarray(np.isnan(arrays).any(axis=0))
            exact = encode(values, dtype)
            return Near(exact, np.where(unknown, 0, values), np.where(unknown, np.inf, 0), unknown)
        sizes = np.abs(arrays)
        if op in ("sum", "avg"):
            values = np.asarray(arrays.sum(axis=0))
            most = sizes.sum(axis=0)
            if op == "avg":
                values, slack = values / count, most / count
            else:
                slack = most
        elif op == "product":
            values = np.asarray(arrays.prod(axis=0))
            most = np.maximum(sizes, 1).prod(axis=0)
            # A product of complex numbers is off by less than three times as much as one of real ones.
            slack = np.abs(values) * (3 if arrays.dtype.kind == "c" else 1)
        else:
            raise Unpredictable(f"there is no {op} of {dtype}")
        # Each of count - 1 steps, a division, and the last rounding is off by half of this at most.
        bound = slack * (epsilon(dtype) * (count + 1) / 2)
        # Below the smallest normal number there is nothing relative.
        bound = np.asarray(bound + (2.0**-24 if dtype in ("float16", "complex32") else 1e-44) * (count > 1))
        if dtype in ("float64", "complex128"):
            bound = np.asarray(bound - 1e-44 * (count > 1))
    return Near(encode(values, dtype), values, np.maximum(bound, 0), np.asarray(most > largest(dtype)))


def gathered(tensors: Sequence[Tensor], options: Options) -> Any:
    """Gives tensors put together, as gather and all_gather do."""
    layout = options.get("layout") or "concatenated"
    first, dim = tensors[0], options.get("dim")
    if layout == "list":
        return list(tensors)
    bits = [_bits(it) for it in tensors]
    if layout == "stacked":
        return _tensor(first.dtype, np.stack(bits, axis=dim or 0))
    return _tensor(first.dtype, np.concatenate(bits, axis=-1 if dim is None else dim))


def divided(whole: Values, dim: int, sizes: Sequence[int]) -> list[Values]:
    """Gives parts of some sizes along a dimension.

    Raises:
        Unpredictable: They do not add up.
    """
    if sum(sizes) != whole.shape[dim]:
        raise Unpredictable(f"sizes {list(sizes)} are not those of {list(whole.shape)} along {dim}")
    return np.split(whole, np.cumsum(sizes)[:-1], axis=dim)


def _equal(size: int, members: int) -> list[int]:
    if size % members:
        raise Unpredictable(f"{size} cannot be divided equally among {members}")
    return [size // members] * members


def _bits(tensor: Tensor) -> Values:
    kind = DTYPES[tensor.dtype].numpy
    return tensor.numpy() if kind is not None else tensor.view_uint()


def _tensor(dtype: str, bits: Values) -> Tensor:
    return Tensor(dtype, bits.shape, np.ascontiguousarray(bits))


def _agreed(options: Sequence[Options], name: str, default: Any) -> Any:
    """Gives an argument on which all members agree."""
    given = [default if it.get(name) is None else it[name] for it in options]
    if any(it != given[0] for it in given):
        raise Unpredictable(f"the members differ in {name}")
    return given[0]


def _barrier(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    return [None] * len(brought)


def _broadcast(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    return [brought[_agreed(options, "src_rank_in_group", 0)]] * len(brought)


def _gather(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    dst = _agreed(options, "dst_rank_in_group", 0)
    return _only(dst, _all_gather(brought, options)[0], len(brought))


def _all_gather(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    for name in ("dim", "layout", "ragged", "sizes"):
        _agreed(options, name, None)
    return [gathered(brought, options[0])] * len(brought)


def _reduce(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    dst = _agreed(options, "dst_rank_in_group", 0)
    return _only(dst, reduced(brought, _agreed(options, "op", "sum")), len(brought))


def _all_reduce(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    return [reduced(brought, _agreed(options, "op", "sum"))] * len(brought)


def _reduce_scatter(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    whole = reduced(brought, _agreed(options, "op", "sum"))
    dim = _agreed(options, "dim", -1)
    shape = brought[0].shape
    sizes = _agreed(options, "sizes", None) or _equal(shape[dim], len(brought))
    if isinstance(whole, Tensor):
        return [_tensor(whole.dtype, it) for it in divided(_bits(whole), dim, sizes)]
    near = whole
    return [near.part(lambda it, at=at: divided(it, dim, sizes)[at]) for at in range(len(brought))]  # type: ignore[misc]


def _scatter(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    whole, dim = brought[_agreed(options, "src_rank_in_group", 0)], _agreed(options, "dim", 0)
    sizes = _agreed(options, "sizes", None) or _equal(whole.shape[dim], len(brought))
    parts = divided(_bits(whole), dim, sizes)
    return [_tensor(whole.dtype, it) for it in parts]


def _all_to_all(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    dim = _agreed(options, "dim", 0)
    parts = [
        divided(_bits(it), dim, own.get("input_sizes") or _equal(it.shape[dim], len(brought)))
        for it, own in zip(brought, options, strict=True)
    ]
    return [
        _tensor(brought[0].dtype, np.concatenate([row[member] for row in parts], axis=dim))
        for member in range(len(brought))
    ]


def _scan(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    op, exclusive = _agreed(options, "op", "sum"), _agreed(options, "exclusive", False)
    if op == "avg" or (exclusive and op != "sum"):
        raise Unpredictable(f"there is no such scan by {op}")
    zeros = encode(np.zeros(brought[0].shape), brought[0].dtype)
    ends = range(len(brought)) if exclusive else range(1, len(brought) + 1)
    return [reduced(brought[:end], op) if end else zeros for end in ends]


def _scatter_object(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    values = brought[_agreed(options, "src_rank_in_group", 0)]
    if len(values) != len(brought):
        raise Unpredictable("not one value for each member")
    return list(values)


def _gather_object(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    return _only(_agreed(options, "dst_rank_in_group", 0), list(brought), len(brought))


def _all_gather_object(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    return [list(brought)] * len(brought)


def _all_reduce_value(brought: Sequence[Any], options: Sequence[Options]) -> list[Any]:
    if len({type(it) for it in brought}) != 1:
        raise Unpredictable("numbers of several kinds")
    return [_number(brought, _agreed(options, "op", "sum"))] * len(brought)


def _number(numbers: Sequence[Any], op: str) -> Any:
    if isinstance(numbers[0], bool):
        return bool(_of_bools(np.array(numbers), op))
    if isinstance(numbers[0], float) and op in ("band", "bor", "bxor"):
        raise Unpredictable(f"there is no {op} of floats")
    folds: dict[str, Callable[[Any, Any], Any]] = {
        "sum": lambda a, b: a + b,
        "avg": lambda a, b: a + b,
        "product": lambda a, b: a * b,
        "min": lambda a, b: a if math.isnan(a) else b if math.isnan(b) else min(a, b),
        "max": lambda a, b: a if math.isnan(a) else b if math.isnan(b) else max(a, b),
        "band": lambda a, b: a & b,
        "bor": lambda a, b: a | b,
        "bxor": lambda a, b: a ^ b,
    }
    total = numbers[0]
    for number in numbers[1:]:
        total = folds[op](total, number)
    return total / len(numbers) if op == "avg" else total


def _only(place: int, result: Any, members: int) -> list[Any]:
    if not 0 <= place < members:
        raise Unpredictable(f"there is no member {place} of {members}")
    return [result if member == place else None for member in range(members)]


_MODELS: dict[str, Callable[[Sequence[Any], Sequence[Options]], list[Any]]] = {
    "barrier": _barrier,
    "broadcast": _broadcast,
    "gather": _gather,
    "all_gather": _all_gather,
    "reduce": _reduce,
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
    "scan": _scan,
    "broadcast_object": _broadcast,
    "scatter_object": _scatter_object,
    "gather_object": _gather_object,
    "all_gather_object": _all_gather_object,
    "all_reduce_value": _all_reduce_value,
    "broadcast_tensor_dict": _broadcast,
}


def difference(got: Any, expected: Any) -> str:
    """Says how what came differs from what the model gives; empty: it does not."""
    match expected:
        case Near():
            return _far(got, expected)
        case Tensor():
            if not isinstance(got, Tensor):
                return f"expected {expected!r}, got {_described(got)}"
            return "" if got == expected else _elements(got, expected)
        case list() | tuple():
            if not isinstance(got, (list, tuple)) or len(got) != len(expected):
                return f"expected a list of {len(expected)}, got {_described(got)}"
            pairs = enumerate(zip(got, expected, strict=True))
            parts = [(place, difference(one, other)) for place, (one, other) in pairs]
            return next((f"item {place}: {it}" for place, it in parts if it), "")
        case dict():
            if not isinstance(got, dict) or list(got) != list(expected):
                return f"expected a map of {list(expected)}, got {_described(got)}"
            parts_of = [(key, difference(got[key], it)) for key, it in expected.items()]
            return next((f"{key!r}: {it}" for key, it in parts_of if it), "")
        case float() if isinstance(got, float) and math.isnan(expected) and math.isnan(got):
            return ""
    same = type(got) is type(expected) and bool(got == expected)
    return "" if same else f"expected {_described(expected)}, got {_described(got)}"


def _far(got: Any, near: Near) -> str:
    want = near.tensor
    if not isinstance(got, Tensor) or (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"expected {want.dtype}{list(want.shape)}, got {_described(got)}"
    elements = decode(got)
    with np.errstate(invalid="ignore", over="ignore"):
        right = (np.abs(elements - near.values) <= near.bound) | (elements == near.values)
        right |= np.isnan(elements) & np.isnan(near.values)
        right |= near.may_overflow & ~np.isfinite(elements)
        # What is out of range is infinite, or is the largest number, by rounding.
        right |= elements == decode(want)
    return "" if right.all() else _elements(got, want, ~right)


def _elements(got: Tensor, want: Tensor, wrong: Values | None = None) -> str:
    """Says how many elements differ, and the first of them."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"expected {want.dtype}{list(want.shape)}, got {got.dtype}{list(got.shape)}"
    if want.dtype.startswith("float8"):
        ours, theirs = want.view_uint(), got.view_uint()
    else:
        ours, theirs = decode(want), decode(got)
    if wrong is None:
        size = DTYPES[want.dtype].itemsize
        differ = np.frombuffer(got.data, np.uint8) != np.frombuffer(want.data, np.uint8)
        wrong = differ.reshape(-1, size).any(axis=1).reshape(want.shape)
    (first, *_) = np.argwhere(wrong)
    index = tuple(int(it) for it in first)
    count = int(np.count_nonzero(wrong))
    return (
        f"{count} of {wrong.size} elements differ, the first at {list(index)}: "
        f"expected {ours[index]}, got {theirs[index]}"
    )


def _described(value: Any) -> str:
    text = f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
