"""A collective that a rank is about to enter, and what it asks for, which can be changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any


class NextCall:
    """A call that is about to be entered.

    `kind`: the collective's name. `group`: its group's, as the bridge has it. `arguments`: the operator's own.
    """

    def __init__(self, kind: str, group: str, arguments: tuple[Any, ...], at: Mapping[str, int]) -> None:
        self.kind = kind
        self.group = group
        self.arguments = arguments
        self._at = at

    def change(self, change: Mapping[str, Any]) -> None:
        """Changes what this rank asks for: `op`, name of a reduce op; `root_rank_in_group`."""
        changed = list(self.arguments)
        if "root_rank_in_group" in change and "root_rank" in self._at:
            changed[self._at["root_rank"]] = change["root_rank_in_group"]
        if "op" in change and "reduce_op" in self._at:
            changed[self._at["reduce_op"]] = _boxed(change["op"])
        self.arguments = tuple(changed)


_boxing = threading.local()


class _Boxed(Exception):
    """Brings the boxed reduce op of a call that is not made."""


def _boxed(op: str) -> Any:
    """A reduce op as the dispatcher has it: only a call can make one."""
    import torch
    from torch.distributed import distributed_c10d as c10d

    options = c10d.AllreduceOptions()
    options.reduceOp = getattr(c10d.ReduceOp, op.upper())
    _boxing.on = True
    try:
        c10d._get_default_group().allreduce([torch.zeros(1)], options)
    except _Boxed as boxed:
        return boxed.args[0]
    finally:
        _boxing.on = False
    raise RuntimeError("the dispatcher has not called the hook")


def stop_if_boxing(arguments: tuple[Any, ...], op_at: int | None) -> None:
    """Keeps a call from being made that is there for its boxed reduce op alone."""
    if op_at is not None and getattr(_boxing, "on", False):
        raise _Boxed(arguments[op_at])
