"""A collective that a rank is about to enter, and what it asks for, which can be changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

INPUTS = ("input_tensors", "input_tensor", "inputs", "input_list", "input", "tensors", "tensor")
"""Names of the argument that a c10d operator reads: the first that it has. A receive writes it."""
NO_TENSORS = ("barrier", "monitored_barrier")
POSTS = ("send", "recv")
NO_INPUTS = (*NO_TENSORS, "recv")


class Group(Protocol):
    """What is known of a process group. `name`: as the bridge has it. `key`: torch's, which no other group has.

    `ranks`: of the members in the job, in group order.
    """

    name: str
    key: str
    ranks: Sequence[int]


def _no_work() -> None:
    return None


class NextCall:
    """A call that is about to be entered.

    `kind`: the collective's name. `arguments`: the operator's own. `op`: number of its reduce op; -1: it has none, or
    it was not looked for. `site`: the line of code that calls, "file:line"; empty: not known. `is_blocking`: of a send
    or a receive, whether its caller is known to wait for it at once.
    """

    is_skipped = False

    def __init__(
        self,
        kind: str,
        group: Group,
        arguments: tuple[Any, ...],
        at: Mapping[str, int],
        op: int = -1,
        site: str = "",
        *,
        is_blocking: bool = False,
    ) -> None:
        self.kind = kind
        self.group = group.name
        self.key = group.key
        self.ranks = group.ranks
        self.arguments = arguments
        self.op = op
        self.site = site
        self.is_blocking = is_blocking
        self.work: Callable[[], Any] = _no_work
        """Gives the work that it has given to who has made it, while one exists."""
        self._at = at
        self._followers: list[Callable[[BaseException | None], None]] = []
        self._forgetters: list[Callable[[], None]] = []

    def argument(self, name: str) -> Any:
        """The operator's argument of this name; None: it has none."""
        place = self._at.get(name)
        return self.arguments[place] if place is not None and place < len(self.arguments) else None

    def inputs(self) -> Any:
        """The tensors that it reads: one, a list, or a list of lists. None: it reads none."""
        if self.kind in NO_INPUTS:
            return None
        return next((self.argument(name) for name in INPUTS if name in self._at), None)

    @property
    def is_post(self) -> bool:
        """Whether it is a send or a receive: one of two members calls it, and it has no number in the group."""
        return self.kind in POSTS

    def skip(self) -> None:
        """Lets this rank go on as if the call were done, without it."""
        self.is_skipped = True

    def then(self, callback: Callable[[BaseException | None], None]) -> None:
        """Calls `callback` when the call is over for who has made it: with what it raised, or None.

        That is when a wait in Python for what it gave returns or raises; also when the call itself raises.
        """
        self._followers.append(callback)

    def if_forgotten(self, callback: Callable[[], None]) -> None:
        """Calls `callback` if nobody can wait any more in Python for a call that is not over.

        That is on any thread, and at any moment, as a finalizer is.
        """
        self._forgetters.append(callback)

    def outcome(self) -> tuple[bool, BaseException | None]:
        """Whether its work is done, although nobody has waited for it, and how that has failed."""
        work = self.work()
        if work is None or not work.is_completed():
            return False, None
        try:
            future = work.get_future()
        except RuntimeError:
            # Sends and receives have none: only their wait tells how they have ended.
            return False, None
        try:
            future.value()
        except Exception as error:
            return True, error
        return True, None

    @property
    def is_followed(self) -> bool:
        """Whether somebody wants to know when it is over."""
        return bool(self._followers)

    def over(self, error: BaseException | None) -> None:
        """Tells those who want to know that it is over."""
        followers = self._followers
        self._forget_callbacks()
        for callback in followers:
            callback(error)

    def forgotten(self) -> None:
        """Tells those who want to know that it is never over."""
        forgetters = self._forgetters
        self._forget_callbacks()
        for callback in forgetters:
            callback()

    def _forget_callbacks(self) -> None:
        # A callback may know the call: both would keep each other, and the tensors, until garbage is collected.
        self._followers, self._forgetters = [], []

    def change(self, change: Mapping[str, Any]) -> None:
        """Changes what this rank asks for: `op`, name of a reduce op; `root_rank_in_group`."""
        changed = list(self.arguments)
        if "root_rank_in_group" in change and "root_rank" in self._at:
            changed[self._at["root_rank"]] = change["root_rank_in_group"]
        if "op" in change and "reduce_op" in self._at:
            changed[self._at["reduce_op"]] = _boxed(change["op"])
        self.arguments = tuple(changed)


class Done:
    """What admits a call gives this when the call is done, and enters nothing.

    `results`: as the work's future has them.
    """

    __slots__ = ("results",)

    def __init__(self, results: list[Any]) -> None:
        self.results = results


Admit = Callable[[NextCall, Callable[[int | None], Any]], Any]
"""What enters a call takes the source of a receive from any, by rank in the group; else None."""

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
