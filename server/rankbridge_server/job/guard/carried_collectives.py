"""Small collectives, whose tensors travel with what announces them: they enter no backend.

The leader gives all members the parts of all with its verdict. Each makes its result of them, bit by bit as Gloo's.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..watch.next_call import NextCall
from ..watch.ring import OPS
from . import carried
from .carried import content_of, fill
from .on_gloo import GlooGroups, is_plain

_NOTHING = b"\0"
"""The part of a member that brings nothing, and takes part."""

_TYPES: dict[str, type[Any]] = {
    "torch.int8": ctypes.c_int8,
    "torch.uint8": ctypes.c_uint8,
    "torch.int32": ctypes.c_int32,
    "torch.int64": ctypes.c_int64,
    "torch.float32": ctypes.c_float,
    "torch.float64": ctypes.c_double,
}


def _min(a: Any, b: Any) -> Any:
    # As C++'s `std::min`, which has its own way with NaN and with zeros.
    return b if b < a else a


def _max(a: Any, b: Any) -> Any:
    return b if a < b else a


_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "product": operator.mul,
    "min": _min,
    "max": _max,
    "band": operator.and_,
    "bor": operator.or_,
    "bxor": operator.xor,
}
_BITWISE = ("band", "bor", "bxor")


def part_of(call: NextCall, groups: GlooGroups) -> bytes:
    """What this rank brings to a call that is carried if all members bring something; empty: it enters the backend."""
    known = _KINDS.get(call.kind)
    if known is None:
        return b""
    tensors = known[0](call)
    # Parts of all members come to each of them.
    if not tensors or len(call.ranks) * _size(tensors[0]) > carried.MOST_BYTES:
        return b""
    # What Gloo does not take, or might not, it is to refuse itself.
    if str(tensors[0].dtype) not in _TYPES or not all(map(is_plain, tensors)) or not groups.have(call):
        return b""
    if call.kind == "broadcast" and not _is_root(call):
        return _NOTHING
    return content_of(tensors[0])


def give(call: NextCall, parts: Sequence[bytes]) -> list[Any]:
    """Writes the result of a call into this rank's tensors; gives what Gloo's future would.

    `parts`: of all members, in group order.
    """
    return _KINDS[call.kind][1](call, parts)


def reduced(parts: Sequence[bytes], dtype: str, op: str) -> bytes:
    """The reduction of members' tensors. `dtype`: "torch.float32".

    Gloo cuts a tensor into as many chunks as there are members. It adds to a chunk of number k in turn what the members
    k-1, k-2, ..., k have: where the sum is rounded, that is seen.
    """
    size, members = len(parts[0]), len(parts)
    element = _TYPES[dtype]
    count = size // ctypes.sizeof(element)
    array, operation = element * count, _OPS[op]
    chunk = 2 * -(-count // (2 * members)) * ctypes.sizeof(element)
    chunks = range(-(-size // chunk))
    result: Any = None
    for turn in range(1, members + 1):
        rows = (parts[(at - turn) % members][at * chunk : (at + 1) * chunk] for at in chunks)
        row = array.from_buffer_copy(b"".join(rows))
        # An array rounds, or wraps, what it is given.
        result = row if result is None else array(*map(operation, row, result))
    return bytes(result)


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _is_root(call: NextCall) -> bool:
    from torch._C._distributed_c10d import ProcessGroup

    return bool(ProcessGroup.unbox(call.argument("process_group")).rank() == call.argument("root_rank"))


# By kind: the tensors that a member reads and writes, the one that it brings first (none: it is not carried), and what
# makes the result.


def _to_reduce(call: NextCall) -> Sequence[Any]:
    tensors = call.argument("tensors")
    if len(tensors) != 1 or not 0 <= call.op < len(OPS):
        return ()
    op = OPS[call.op]
    is_known = op in _OPS and not (op in _BITWISE and tensors[0].dtype.is_floating_point)
    return tensors if is_known else ()


def _give_reduced(call: NextCall, parts: Sequence[bytes]) -> list[Any]:
    (tensor,) = call.argument("tensors")
    fill(tensor, reduced(parts, str(tensor.dtype), OPS[call.op]))
    return [tensor]


def _to_broadcast(call: NextCall) -> Sequence[Any]:
    tensors = call.argument("tensors")
    return tensors if len(tensors) == 1 and 0 <= call.argument("root_rank") < len(call.ranks) else ()


def _give_broadcast(call: NextCall, parts: Sequence[bytes]) -> list[Any]:
    (tensor,) = call.argument("tensors")
    if not _is_root(call):
        fill(tensor, parts[call.argument("root_rank")])
    return [tensor]


def _to_gather(call: NextCall) -> Sequence[Any]:
    inputs, outputs = call.argument("input_tensors"), call.argument("output_tensors")
    if len(inputs) != 1 or len(outputs) != 1 or len(outputs[0]) != len(call.ranks):
        return ()
    (own,) = inputs
    alike = all(it.shape == own.shape and it.dtype is own.dtype for it in outputs[0])
    return [own, *outputs[0]] if alike else ()


def _give_gathered(call: NextCall, parts: Sequence[bytes]) -> list[Any]:
    outputs = list(call.argument("output_tensors")[0])
    for output, part in zip(outputs, parts, strict=True):
        fill(output, part)
    return outputs


def _to_gather_into(call: NextCall) -> Sequence[Any]:
    own, output = call.argument("input_tensor"), call.argument("output_tensor")
    alike = output.dtype is own.dtype and output.numel() == len(call.ranks) * own.numel()
    return [own, output] if alike else ()


def _give_gathered_into(call: NextCall, parts: Sequence[bytes]) -> list[Any]:
    output = call.argument("output_tensor")
    fill(output, b"".join(parts))
    return list(output.chunk(len(parts)))


_KINDS: dict[
    str, tuple[Callable[[NextCall], Sequence[Any]], Callable[[NextCall, Sequence[bytes]], list[Any]]]
] = {
    "all_reduce": (_to_reduce, _give_reduced),
    "broadcast": (_to_broadcast, _give_broadcast),
    "all_gather": (_to_gather, _give_gathered),
    "all_gather_into_tensor": (_to_gather_into, _give_gathered_into),
}
