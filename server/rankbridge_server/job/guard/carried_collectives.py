"""Small collectives, whose tensors travel with what announces them: they enter no backend.

The leader gives all members the parts of all with its verdict. Each makes its result of them, bit by bit as Gloo's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..watch.next_call import NextCall
from ..watch.ring import OPS
from . import carried
from .carried import content_of, fill
from .carried_reductions import TYPES, reduced, reduces
from .on_gloo import GlooGroups, is_plain

_NOTHING = b"\0"
"""The part of a member that brings nothing, and takes part."""


def part_of(call: NextCall, groups: GlooGroups) -> bytes:
    """What this rank brings to a call that is carried if all members bring something; empty: it enters the backend."""
    kind = _KINDS.get(call.kind)
    tensors = kind.tensors(call) if kind is not None else ()
    if kind is None or not tensors:
        return b""
    # The parts of all members come to each of them.
    first = tensors[0]
    if len(call.ranks) * first.numel() * first.element_size() > carried.MOST_BYTES:
        return b""
    # What Gloo does not take, or might not, it is to refuse itself.
    if str(first.dtype) not in TYPES or not all(map(is_plain, tensors)) or not groups.have(call):
        return b""
    return kind.part(call, tensors, groups)


def is_carried(call: NextCall, parts: Sequence[bytes]) -> bool:
    """Whether a call is, of which these are the parts of all members: all of them say the same."""
    return bool(parts) and all(parts) and _KINDS[call.kind].do_fit(parts)


def give(call: NextCall, parts: Sequence[bytes]) -> list[Any]:
    """Writes the result of a call into this rank's tensors; gives what Gloo's future would.

    `parts`: of all members, in group order.
    """
    return _KINDS[call.kind].give(call, parts)


class _Kind(ABC):
    """One kind of collective."""

    @abstractmethod
    def tensors(self, call: NextCall) -> Sequence[Any]:
        """What this rank reads and writes, first what is as large on all members. Empty: the call is not carried."""

    def part(self, call: NextCall, tensors: Sequence[Any], groups: GlooGroups) -> bytes:
        """What this rank brings; empty: the call is not carried."""
        return content_of(tensors[0])

    def do_fit(self, parts: Sequence[bytes]) -> bool:
        """Whether a result can be made of these parts of all members."""
        return True

    @abstractmethod
    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        """Writes the result; gives what Gloo's future would."""


class _AllReduce(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        tensors = call.argument("tensors")
        return tensors if len(tensors) == 1 and _reduces(call, tensors[0]) else ()

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        (tensor,) = call.argument("tensors")
        fill(tensor, reduced(parts, str(tensor.dtype), OPS[call.op]))
        return [tensor]


class _Reduce(_AllReduce):
    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        return super().give(call, parts) if _is_root(call) else list(call.argument("tensors"))


class _ReduceScatterTensor(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        whole, output = call.argument("input_tensor"), call.argument("output_tensor")
        return [whole, output] if _is_in_parts(whole, output, call) and _reduces(call, whole) else ()

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        output = call.argument("output_tensor")
        fill(output, _slice(reduced(parts, str(output.dtype), OPS[call.op]), call))
        return [output]


class _Broadcast(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        tensors = call.argument("tensors")
        return tensors if len(tensors) == 1 and _has_root(call) else ()

    def part(self, call: NextCall, tensors: Sequence[Any], groups: GlooGroups) -> bytes:
        return content_of(tensors[0]) if _is_root(call) else _NOTHING

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        (tensor,) = call.argument("tensors")
        if not _is_root(call):
            fill(tensor, parts[call.argument("root_rank")])
        return [tensor]


class _AllGather(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        return _each_alike(call.argument("input_tensors"), call.argument("output_tensors"), call)

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        outputs = list(call.argument("output_tensors")[0])
        for output, part in zip(outputs, parts, strict=True):
            fill(output, part)
        return outputs


class _Gather(_AllGather):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        inputs = call.argument("input_tensors")
        if not _has_root(call) or len(inputs) != 1:
            return ()
        return super().tensors(call) if _is_root(call) else inputs

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        return super().give(call, parts) if _is_root(call) else []


class _AllGatherIntoTensor(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        own, output = call.argument("input_tensor"), call.argument("output_tensor")
        return [own, output] if _is_in_parts(output, own, call) else ()

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        output = call.argument("output_tensor")
        fill(output, b"".join(parts))
        return list(output.chunk(len(parts)))


class _Scatter(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        outputs = call.argument("output_tensors")
        if not _has_root(call) or len(outputs) != 1:
            return ()
        return _each_alike(outputs, call.argument("input_tensors"), call) if _is_root(call) else outputs

    def part(self, call: NextCall, tensors: Sequence[Any], groups: GlooGroups) -> bytes:
        return b"".join(map(content_of, tensors[1:])) if _is_root(call) else _NOTHING

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        (output,) = call.argument("output_tensors")
        fill(output, _slice(parts[call.argument("root_rank")], call))
        return [output]


class _AllToAllSingle(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        whole, output = call.argument("input"), call.argument("output")
        if call.argument("input_split_sizes") or call.argument("output_split_sizes"):
            return ()
        is_even = whole.dim() > 0 and whole.shape == output.shape and whole.shape[0] % len(call.ranks) == 0
        return [whole, output] if is_even and whole.dtype is output.dtype else ()

    def do_fit(self, parts: Sequence[bytes]) -> bool:
        return len(set(map(len, parts))) == 1

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        output = call.argument("output")
        fill(output, b"".join(_slice(part, call) for part in parts))
        return [output]


class _Barrier(_Kind):
    def tensors(self, call: NextCall) -> Sequence[Any]:
        # It has nothing in it, and says which backend is meant.
        return [call.argument("tensor")]

    def part(self, call: NextCall, tensors: Sequence[Any], groups: GlooGroups) -> bytes:
        # What was asked for before a barrier, Gloo waits for.
        return _NOTHING if groups.are_quiet(call) else b""

    def give(self, call: NextCall, parts: Sequence[bytes]) -> list[Any]:
        return []


def _has_root(call: NextCall) -> bool:
    return bool(0 <= call.argument("root_rank") < len(call.ranks))


def _is_root(call: NextCall) -> bool:
    return bool(_own_rank(call) == call.argument("root_rank"))


def _own_rank(call: NextCall) -> int:
    from torch._C._distributed_c10d import ProcessGroup

    return int(ProcessGroup.unbox(call.argument("process_group")).rank())


def _reduces(call: NextCall, tensor: Any) -> bool:
    return 0 <= call.op < len(OPS) and reduces(tensor.dtype, OPS[call.op])


def _is_in_parts(whole: Any, part: Any, call: NextCall) -> bool:
    """Whether one tensor has one like the other for each member."""
    return bool(whole.dtype is part.dtype and whole.numel() == len(call.ranks) * part.numel())


def _each_alike(owns: Sequence[Any], lists: Sequence[Sequence[Any]], call: NextCall) -> Sequence[Any]:
    """A tensor, and a list of one like it for each member; empty: they are something else."""
    if len(owns) != 1 or len(lists) != 1 or len(lists[0]) != len(call.ranks):
        return ()
    own, each = owns[0], lists[0]
    return [own, *each] if all(it.shape == own.shape and it.dtype is own.dtype for it in each) else ()


def _slice(whole: bytes, call: NextCall) -> bytes:
    """This rank's of as many slices as there are members."""
    size, at = len(whole) // len(call.ranks), _own_rank(call)
    return whole[at * size : (at + 1) * size]


_KINDS: dict[str, _Kind] = {
    "all_reduce": _AllReduce(),
    "reduce": _Reduce(),
    "reduce_scatter_tensor": _ReduceScatterTensor(),
    "broadcast": _Broadcast(),
    "all_gather": _AllGather(),
    "gather": _Gather(),
    "all_gather_into_tensor": _AllGatherIntoTensor(),
    "scatter": _Scatter(),
    "all_to_all_single": _AllToAllSingle(),
    "barrier": _Barrier(),
}
