"""What is known of the groups that call, and the record into which calls are written."""

from __future__ import annotations

import math
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from time import time as _now
from typing import Any

from .followed import Followed
from .next_call import POSTS, Admit, NextCall
from .ring import DTYPES, IS_ASYNC, KINDS, NO_SHAPE, ON_DEVICE, Ring, packed_shape
from .sites import Site, Sites

_MOST_SHAPES = 4096
_POSTS = tuple(KINDS.index(it) for it in POSTS)


class KnownGroup:
    """What the record knows of a process group."""

    def __init__(self, number: int, key: str, name: str, group: Any, ranks: Sequence[int]) -> None:
        self.number = number
        self.key = key
        self.name = name
        self.ranks = ranks
        self.entries: dict[str, Callable[..., Any]] = {}
        """Methods of its backend, by name. Kept for no longer than the group: what it is connected to ends with it."""
        self.show(group)
        self.calls = 0
        self.channels: dict[tuple[int | str, int, int], int] = {}

    def show(self, group: Any) -> None:
        """Says which object of torch's it is."""
        entries = self.entries
        entries.clear()
        # By reference: a new group may get the address of the one that was destroyed.
        self.is_of = weakref.ref(group, lambda _: entries.clear())

    def next_in_channel(self, kind: int | str, peer: int, tag: int) -> int:
        """Counts a send or a receive."""
        channel = (kind, peer, tag)
        number = self.channels[channel] = self.channels.get(channel, 0) + 1
        return number

    def rank(self, in_group: int) -> int:
        """A member's rank in the job."""
        return self.ranks[in_group] if 0 <= in_group < len(self.ranks) else in_group


class Recorder:
    """Writes calls into a ring, which is made at the first of them.

    `create`: makes it; None: there is none. `before`, `admit`: as of `call_before` and `install`.
    """

    def __init__(self, torch: Any) -> None:
        self.create: Callable[[int, int], Ring | None] | None = None
        self.before: tuple[Callable[[NextCall], None], ...] = ()
        self.admit: Admit | None = None
        self.written: Ring | None = None
        self.pid = os.getpid()
        self._by_id: dict[int, KnownGroup] = {}
        """Groups that torch lists, by identity of torch's object: that of one which is gone may be another's now."""
        self._groups: dict[str, KnownGroup] = {}
        self._sites = Sites(torch, self._text)
        self._shapes: dict[Any, tuple[int, bytes, int]] = {}
        self.dtypes = {
            getattr(torch, name): at for at, name in enumerate(DTYPES) if name and hasattr(torch, name)
        }
        self.is_broken = False
        self.is_hooked = True
        """Whether what sees calls has not been taken back."""
        self.site = self._sites.of
        """Of a frame."""
        self.new_group: Callable[[Any, KnownGroup], None] | None = None
        """Is called with each group that torch lists, when it is seen for the first time."""
        self.followed = Followed()
        self.waiting: dict[int, float] = {}
        """By thread, since when it is in a call of a coordinator."""
        self.to_wait_for: dict[int, int] = {}
        """By thread, where the call is for which it waits next: one that was asked for without async_op."""

    def ring(self) -> Ring | None:
        """The record; None in what is no rank, in a process that a rank has forked, and where there is no room."""
        create = self.create
        if self.written is None and create is not None and not self.is_broken and os.getpid() == self.pid:
            rank, size = _place()
            if rank < 0:
                return None
            try:
                self.written = create(rank, size)
            except OSError as error:
                self.is_broken = True
                print(f"rankbridge watch: rank {rank} is not recorded: {error}", file=sys.stderr)
        return self.written

    def known(self, group: Any) -> KnownGroup:
        """What is known of a group, which is written at its first call."""
        known = self._by_id.get(id(group))
        return known if known is not None and known.is_of() is group else self._looked_up(group)

    def _looked_up(self, group: Any) -> KnownGroup:
        name = group.group_name
        known = self._groups.get(name)
        if known is None or (known.is_of() is not group and self._is_new(group, known)):
            from torch.distributed import distributed_c10d as c10d

            try:
                ranks = c10d.get_process_group_ranks(group)
            except (KeyError, ValueError, RuntimeError):
                ranks = list(range(group.size()))
            number = self._text({"group": name, "ranks": ranks, "description": group.group_desc})
            shown = _name_for_people(name, group.group_desc)
            known = self._groups[name] = KnownGroup(number, name, shown, group, ranks)
            if group in c10d._world.pg_names:
                self._by_id[id(group)] = known
                if self.new_group is not None:
                    self.new_group(group, known)
        return known

    def _is_new(self, group: Any, known: KnownGroup) -> bool:
        """Whether a known name has a new group. One that torch does not list has another wrapper each time."""
        from torch.distributed import distributed_c10d as c10d

        if group in c10d._world.pg_names:
            return True
        known.show(group)
        return False

    def _text(self, content: dict[str, Any]) -> int:
        return self.written.text(content) if self.written is not None else 0

    def begin(
        self,
        ring: Ring,
        kind: int,
        group: KnownGroup,
        site: Site,
        tensors: Sequence[Any] | None,
        op: int,
        root: int,
        peer: int,
        tag: int,
        is_async: bool | None,
    ) -> int:
        """Writes a call that is about to be entered; returns where it is in the record.

        `tensors`: or lists of them. The record has dtype and shape of the first, and how many elements all have.
        `kind`, `op`: by their numbers. `root`, `peer`: ranks in the group. -1: it has none.
        """
        if root >= 0:
            root = group.rank(root)
        if kind in _POSTS:
            if peer >= 0:
                peer = group.rank(peer)
            number = group.next_in_channel(kind, peer, tag)
        else:
            number = group.calls = group.calls + 1
        while tensors and type(tensors[0]) is list:
            tensors = tensors[0]
        dtype = count = flags = dimensions = elements = 0
        shape = NO_SHAPE
        if tensors:
            first, count = tensors[0], len(tensors)
            size = first.shape
            dimensions, shape, elements = self._shapes.get(size) or self.shape(size)
            if count > 1:
                elements = sum(it.numel() for it in tensors)
            dtype = self.dtypes.get(first.dtype, 0)
            flags = 0 if first.is_cpu else ON_DEVICE
        if is_async:
            flags |= IS_ASYNC
        return ring.begin(
            _now(), number, kind, dtype, dimensions, flags, group.number, count, site.number, op, root, peer, tag,
            elements, shape,
        )  # fmt: skip

    def shape(self, size: Any) -> tuple[int, bytes, int]:
        """Of a tensor of this size: how many dimensions, their sizes as the record has them, how many elements."""
        known = self._shapes.get(size)
        if known is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            known = self._shapes[size] = (min(len(size), 255), packed_shape(size), math.prod(size))
        return known

    def complain(self, error: Exception) -> None:
        """Says once that a call was not recorded: watching must fail no job."""
        if not self.is_broken:
            self.is_broken = True
            self.written = None
            print(f"rankbridge watch: rank {_place()[0]} is no longer recorded: {error!r}", file=sys.stderr)

    def forget_entries(self) -> None:
        """Lets the backend of each group be looked up again."""
        for it in self._groups.values():
            it.entries.clear()

    def forget_groups(self) -> None:
        """Lets each group and line be written again, into a record that has begun after they were seen."""
        self._groups.clear()
        self._by_id.clear()
        self._sites.forget()

    def forked(self) -> None:
        """A process that a rank has forked is not watched. One that was forked before may become a rank itself."""
        if self.written is None and not self.is_broken and not _has_begun():
            self.pid = os.getpid()
        else:
            self.written, self.is_broken = None, True


def _name_for_people(name: str, description: str) -> str:
    # Attached gangs call a group likewise to which nobody has given a name.
    if description == "default_pg":
        return "world"
    return f"group_{name}" if description in ("", "undefined") else description


def _has_begun() -> bool:
    from torch.distributed import distributed_c10d as c10d

    return c10d.is_initialized()


def _place() -> tuple[int, int]:
    """Rank and world size: torch's, or what the environment says before there is a default group."""
    from torch.distributed import distributed_c10d as c10d

    if c10d.is_initialized():
        return c10d.get_rank(), c10d.get_world_size()
    return int(os.environ.get("RANK", -1)), int(os.environ.get("WORLD_SIZE", -1))
