"""Guards the making of groups: torch waits, or gives ranks different groups, where they do not make the same."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from types import FrameType
from typing import Any

from ...core.functions.raised import is_users
from ...core.rank_intervals import rank_intervals
from ..watch.next_call import NextCall

_MOST_SHOWN = 64


@dataclass
class _DefaultGroup:
    name: str
    key: str
    ranks: Sequence[int]


def guard_new_groups(admit: Callable[[NextCall, str], None]) -> None:
    """Calls `admit` with each new group, as a call of the default group, and its contract, before torch makes it.

    Not with groups that their members alone make: others do not call it.
    """
    from torch.distributed import distributed_c10d as c10d

    make = c10d._new_group_with_tag
    signature = inspect.signature(make)

    @wraps(make)
    def guarded(*args: Any, **named: Any) -> Any:
        given = signature.bind(*args, **named).arguments
        if c10d.is_initialized() and not given.get("use_local_synchronization"):
            group = c10d._get_default_group()
            default = _DefaultGroup("world", group.group_name, range(group.size()))
            call = NextCall("new_group", default, (), {}, site=_site(sys._getframe(1)))
            admit(call, _contract(given, group.size()))
        return make(*args, **named)

    # `new_group` looks it up when it is called.
    c10d._new_group_with_tag = guarded


def _contract(given: dict[str, Any], size: int) -> str:
    ranks = given.get("ranks")
    ranks = list(range(size)) if ranks is None else list(ranks)
    if given.get("sort_ranks", True):
        ranks = sorted(ranks)
    members = str(ranks) if len(ranks) <= _MOST_SHOWN else rank_intervals(ranks).removeprefix("ranks ")
    backend = f" backend={given['backend']}" if given.get("backend") else ""
    return f"new_group ranks={members}{backend}"


def _site(frame: FrameType | None) -> str:
    """The line of the user's code that makes it. Empty: a library makes it."""
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
