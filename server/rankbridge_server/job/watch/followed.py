"""Calls that are followed until they are over for the script: when its wait for them returns, or fails."""

from __future__ import annotations

import weakref
from _thread import get_ident
from typing import Any

from .next_call import NextCall


class Followed:
    """By the work that a call has given, for which the script waits.

    A call that nobody waits for in Python is forgotten with its work.
    """

    def __init__(self) -> None:
        self.calls: dict[int, tuple[weakref.ref[Any], NextCall]] = {}
        """By the identity of their works."""
        # By thread: the script has no reference yet, and without one torch makes another object of the same work.
        self._newest: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.calls)

    def add(self, call: NextCall, result: Any) -> None:
        """Follows a call that has returned this to the dispatcher. One without work is over."""
        from torch._C._distributed_c10d import Work

        self._newest.pop(get_ident(), None)
        boxed = (result[-1] if result else None) if isinstance(result, tuple) else result
        work = None if boxed is None else Work.unbox(boxed)
        if work is None:
            call.over(None)
            return
        key, calls = id(work), self.calls
        self._newest[get_ident()] = work

        def forget(_: object) -> None:
            if known := calls.pop(key, None):
                known[1].forgotten()

        call.work = reference = weakref.ref(work, forget)
        calls[key] = reference, call

    def take(self, work: Any) -> NextCall | None:
        """The call that has given a work, which is not followed further. None: it is not followed."""
        known = self.calls.pop(id(work), None)
        if known is None:
            return None
        if self._newest.get(get_ident()) is work:
            del self._newest[get_ident()]
        return known[1]

    def forget(self) -> None:
        """Follows none any more."""
        for _, call in list(self.calls.values()):
            call.forgotten()
        self.calls.clear()
        self._newest.clear()
