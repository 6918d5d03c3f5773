"""What is known of the groups and lines that call, and the record into which calls are written."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .followed import Followed
from .next_call import NextCall
from .ring import DTYPES, Ring

_DEEPEST = 40


class KnownGroup:
    """What the record knows of a process group."""

    def __init__(self, number: int, key: str, group: Any, ranks: Sequence[int]) -> None:
        self.number = number
        self.key = key
        self.name = "world" if group.group_desc == "default_pg" else group.group_desc
        # By reference: a new group may get the address of the one that was destroyed.
        self.is_of = weakref.ref(group)
        self.ranks = ranks
        self.calls = 0
        self.channels: dict[tuple[int, int, int], int] = {}

    def rank(self, in_group: int) -> int:
        """A member's rank in the job."""
        return self.ranks[in_group] if 0 <= in_group < len(self.ranks) else in_group


class Site(NamedTuple):
    """A line of code that calls. `number`: of its text in the record; 0: it has none. `text`: "file:line"."""

    number: int
    text: str
    code: CodeType | None


NOWHERE = Site(0, "", None)
"""No Python calls, as in a backward pass."""


class Recorder:
    """Writes calls into a ring, which is made at the first of them.

    `create`: makes it; None: there is none. `before`, `admit`: as of `call_before` and `install`.
    """

    def __init__(self, torch: Any) -> None:
        self.create: Callable[[int, int], Ring | None] | None = None
        self.before: tuple[Callable[[NextCall], None], ...] = ()
        self.admit: Callable[[NextCall], None] | None = None
        self.written: Ring | None = None
        self.pid = os.getpid()
        self._groups: dict[str, KnownGroup] = {}
        self._sites: dict[tuple[int, int], Site] = {}
        self._own = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)
        self._dtypes = {
            getattr(torch, name): at for at, name in enumerate(DTYPES) if name and hasattr(torch, name)
        }
        self.is_broken = False
        self.followed = Followed()
        self.to_wait_for: dict[int, int] = {}
        """By thread, where the call is for which it waits next: one that was asked for without async_op."""

    def ring(self) -> Ring | None:
        """The record; None in a process that was forked from the one that is watched, and where there is no room."""
        create = self.create
        if self.written is None and create is not None and not self.is_broken and os.getpid() == self.pid:
            try:
                self.written = create(*_place())
            except OSError as error:
                self.is_broken = True
                print(
                    f"rankbridge watch: rank {os.environ.get('RANK')} is not recorded: {error}",
                    file=sys.stderr,
                )
        return self.written

    def group(self, group: Any) -> KnownGroup:
        """What is known of a group, which is written at its first call."""
        name = group.group_name
        known = self._groups.get(name)
        if known is None or (known.is_of() is not group and self._is_new(group, known)):
            from torch.distributed import distributed_c10d as c10d

            try:
                ranks = c10d.get_process_group_ranks(group)
            except (KeyError, ValueError, RuntimeError):
                ranks = list(range(group.size()))
            ring = self.written
            content = {"group": name, "ranks": ranks, "description": group.group_desc}
            known = self._groups[name] = KnownGroup(
                ring.text(content) if ring is not None else 0, name, group, ranks
            )
        return known

    def _is_new(self, group: Any, known: KnownGroup) -> bool:
        """Whether a known name has a new group. One that torch does not list has another wrapper each time."""
        from torch.distributed import distributed_c10d as c10d

        if group in c10d._world.pg_names:
            return True
        known.is_of = weakref.ref(group)
        return False

    def site(self) -> Site:
        """The line outside of torch that calls."""
        # The hook's own: a thread of C++ alone has no other.
        frame: FrameType | None = sys._getframe(2)
        for _ in range(_DEEPEST):
            if frame is None or not frame.f_code.co_filename.startswith(self._own):
                break
            frame = frame.f_back
        else:
            frame = None
        if frame is None:
            return NOWHERE
        code = frame.f_code
        # A code object hashes all of its instructions: its identity is enough, as long as it is kept.
        key = (id(code), frame.f_lasti)
        known = self._sites.get(key)
        if known is None:
            content = {"site": code.co_name, "file": code.co_filename, "line": frame.f_lineno}
            number = self.written.text(content) if self.written is not None else 0
            known = self._sites[key] = Site(number, f"{code.co_filename}:{frame.f_lineno}", code)
        return known

    def dtype(self, tensor: Any) -> int:
        """Number of a tensor's dtype."""
        return self._dtypes.get(tensor.dtype, 0)

    def forget_groups(self) -> None:
        """Lets each group and line be written again, into a record that has begun after they were seen."""
        self._groups, self._sites = {}, {}

    def forked(self) -> None:
        """A process that the watched one has forked is not watched."""
        self.written, self.is_broken = None, True


def _place() -> tuple[int, int]:
    """Rank and world size: torch's, or what the environment says before there is a default group."""
    from torch.distributed import distributed_c10d as c10d

    if c10d.is_initialized():
        return c10d.get_rank(), c10d.get_world_size()
    return int(os.environ.get("RANK", -1)), int(os.environ.get("WORLD_SIZE", -1))
