"""What the members of a group must agree on before a collective that the user's code calls, as the bridge says it.

Shapes are compared as torch does with TORCH_DISTRIBUTED_DEBUG=DETAIL, also where the number of elements is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from .watch.coordinator_call import CoordinatorCall
from .watch.next_call import NextCall
from .watch.ring import OPS

_ALIKE = {
    "all_reduce": "tensors",
    "broadcast": "tensors",
    "reduce": "tensors",
    # A member's own part may have another size; the list of all parts may not.
    "all_gather": "output_tensors",
    "all_gather_into_tensor": "input_tensor",
    "gather": "input_tensors",
    "gather_into_tensor": "input_tensor",
    "scatter": "output_tensors",
    "reduce_scatter": "input_tensors",
    "reduce_scatter_tensor": "input_tensor",
    "all_reduce_coalesced": "tensors",
    "all_gather_coalesced": "output_lists",
    "all_gather_into_tensor_coalesced": "inputs",
    "reduce_scatter_tensor_coalesced": "inputs",
}
"""By kind, the argument whose tensors have the same shapes on all members."""
_DTYPE_ALONE = {"all_to_all": "input_tensors", "all_to_all_single": "input"}
"""By kind, the argument whose tensors have the same dtype, and shapes of their own."""
_ROOT = {
    "broadcast": "src_rank_in_group",
    "scatter": "src_rank_in_group",
    "reduce": "dst_rank_in_group",
    "gather": "dst_rank_in_group",
    "gather_into_tensor": "dst_rank_in_group",
}
_MOST_SHOWN = 8
_KNOWN: dict[tuple[object, ...], str] = {}
_MOST_KNOWN = 4096


def contract_of(call: NextCall) -> str:
    """A call's contract: "all_reduce dtype=float32 shape=[4] op=sum"."""
    kind, root = call.kind, call.argument("root_rank")
    tensors = flat(call.argument(_ALIKE.get(kind) or _DTYPE_ALONE.get(kind, "")))
    shapes = tuple(it.shape for it in tensors) if kind in _ALIKE else ()
    key = kind, call.op, root, tensors[0].dtype if tensors else None, shapes
    known = _KNOWN.get(key)
    if known is None:
        known = _keep(key, _written(kind, call.op, root, key[3], [str(list(it)) for it in shapes]))
    return known


def post_of(call: NextCall) -> str:
    """What a send or a receive brings, and for whom: "send dtype=float32 shape=[4] peer=1 tag=0".

    The peer is a rank of the job; of a receive from whoever sends, there is none.
    """
    tensors, tag = flat(call.argument("tensors")), call.argument("tag")
    peer = call.argument("dst") if call.kind == "send" else call.argument("src")
    first = tensors[0] if tensors else None
    key = call.kind, call.key, peer, tag, *((first.dtype, first.shape) if first is not None else ())
    known = _KNOWN.get(key)
    if known is None:
        made = _made(
            call.kind, first.dtype if first is not None else None, [str(list(it.shape)) for it in tensors]
        )
        if peer is not None:
            made.append(f"peer={call.ranks[peer] if 0 <= peer < len(call.ranks) else peer}")
        known = _keep(key, " ".join([*made, f"tag={tag}"]))
    return known


def contract_of_coordinator(call: CoordinatorCall) -> str:
    """The same of a coordinator's method, as far as its arguments say it before the call."""
    key = call.kind, call.group.key, call.dtype, call.shape, call.root, call.peer, call.tag
    known = _KNOWN.get(key)
    if known is None:
        made = _made(call.kind, call.dtype, [] if call.shape is None else [str(list(call.shape))])
        if call.peer >= 0:
            made += [f"peer={call.peer}", f"tag={call.tag}"]
        elif call.root >= 0:
            side = "dst" if call.kind == "gather" else "src"
            made.append(f"{side}_rank_in_group={list(call.group.ranks).index(call.root)}")
        known = _keep(key, " ".join(made))
    return known


def _keep(key: tuple[object, ...], text: str) -> str:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[key] = text
    return text


def _made(kind: str, dtype: Any, shapes: Sequence[str]) -> list[str]:
    parts = [kind]
    if dtype is not None:
        parts.append(f"dtype={str(dtype).removeprefix('torch.')}")
    if shapes:
        parts.append(_shapes(shapes))
    return parts


def _written(kind: str, op: int, root: Any, dtype: Any, shapes: Sequence[str]) -> str:
    parts = _made(kind, dtype, shapes)
    if op >= 0:
        parts.append(f"op={OPS[op] if op < len(OPS) else op}")
    if kind in _ROOT:
        parts.append(f"{_ROOT[kind]}={root}")
    return " ".join(parts)


def flat(given: Any) -> Sequence[Any]:
    """A tensor, a list of tensors or a list of such lists, as one list; None: nothing."""
    if given is None:
        return ()
    if not isinstance(given, list):
        return (given,)
    return [it for each in given for it in each] if given and isinstance(given[0], list) else given


def _shapes(shapes: Sequence[str]) -> str:
    if len(set(shapes)) == 1:
        return f"shape={shapes[0]}" if len(shapes) == 1 else f"shape={shapes[0]} tensors={len(shapes)}"
    if len(shapes) <= _MOST_SHOWN:
        return f"shapes={','.join(shapes)}"
    digest = hashlib.blake2b(",".join(shapes).encode(), digest_size=6).hexdigest()
    return f"tensors={len(shapes)} shapes={','.join(shapes[:_MOST_SHOWN])},... digest={digest}"
