"""What is known of the groups and lines that call, and the record into which calls are written."""

from __future__ import annotations

import math
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .followed import Followed
from .next_call import Admit, NextCall
from .ring import DTYPES, NO_SHAPE, ON_DEVICE, Ring, packed_shape

_DEEPEST = 40
_FURTHEST = 12
"""Frames between the line of a library that calls and the script's: each costs time in every such call."""
_MOST_SHAPES = 4096


class KnownGroup:
    """What the record knows of a process group."""

    def __init__(self, number: int, key: str, name: str, group: Any, ranks: Sequence[int]) -> None:
        self.number = number
        self.key = key
        self.name = name
        # By reference: a new group may get the address of the one that was destroyed.
        self.is_of = weakref.ref(group)
        self.ranks = ranks
        self.calls = 0
        self.channels: dict[tuple[int | str, int, int], int] = {}

    def next_in_channel(self, kind: int | str, peer: int, tag: int) -> int:
        """Counts a send or a receive."""
        channel = (kind, peer, tag)
        number = self.channels[channel] = self.channels.get(channel, 0) + 1
        return number

    def rank(self, in_group: int) -> int:
        """A member's rank in the job."""
        return self.ranks[in_group] if 0 <= in_group < len(self.ranks) else in_group


class Site(NamedTuple):
    """A line of code that calls. `number`: of its text in the record; 0: it has none.

    `text`: "file:line"; of a line of a library that a script's has led to, "loop.py:7 < file:line".
    """

    number: int
    text: str
    codes: tuple[CodeType, ...]
    """Kept, as their identities are the key."""
    is_of_library: bool = False


NOWHERE = Site(0, "", ())
"""No Python calls, as in a backward pass."""


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
        self.by_id: dict[int, KnownGroup] = {}
        """Groups that torch lists, by identity of torch's object: that of one which is gone may be another's now."""
        self._groups: dict[str, KnownGroup] = {}
        self._sites: dict[tuple[int, ...], Site] = {}
        self._shapes: dict[Any, tuple[int, bytes, int]] = {}
        # Code of ours and of torch, by identity: a code object hashes all of its instructions.
        self._own_code: dict[int, CodeType] = {}
        self._library_code: dict[int, CodeType] = {}
        self._own = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)
        self.dtypes = {
            getattr(torch, name): at for at, name in enumerate(DTYPES) if name and hasattr(torch, name)
        }
        self.is_broken = False
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
            number = ring.text(content) if ring is not None else 0
            shown = _name_for_people(name, group.group_desc)
            known = self._groups[name] = KnownGroup(number, name, shown, group, ranks)
            if group in c10d._world.pg_names:
                self.by_id[id(group)] = known
                if self.new_group is not None:
                    self.new_group(group, known)
        return known

    def _is_new(self, group: Any, known: KnownGroup) -> bool:
        """Whether a known name has a new group. One that torch does not list has another wrapper each time."""
        from torch.distributed import distributed_c10d as c10d

        if group in c10d._world.pg_names:
            return True
        known.is_of = weakref.ref(group)
        return False

    def site(self, frame: FrameType | None) -> Site:
        """The line outside of torch that calls, from this frame outwards; of a library, with the script's line."""
        for _ in range(_DEEPEST):
            # A thread of C++ alone has none.
            if frame is None:
                break
            code = frame.f_code
            key = id(code)
            if key not in self._own_code:
                known = self._sites.get((key, frame.f_lasti))
                if known is None and code.co_filename.startswith(self._own):
                    self._own_code[key] = code
                else:
                    known = known or self._new_site((frame,))
                    return self._with_script(known, frame) if known.is_of_library else known
            frame = frame.f_back
        return NOWHERE

    def _with_script(self, site: Site, library: FrameType) -> Site:
        frame = library.f_back
        for _ in range(_FURTHEST):
            if frame is None:
                break
            code = frame.f_code
            key = id(code)
            if key not in self._library_code:
                known = self._sites.get((id(library.f_code), library.f_lasti, key, frame.f_lasti))
                if known is not None:
                    return known
                if not _is_library(code.co_filename) and not code.co_filename.startswith(self._own):
                    return self._new_site((library, frame))
                self._library_code[key] = code
            frame = frame.f_back
        return site

    def _new_site(self, frames: tuple[FrameType, ...]) -> Site:
        """`frames`: of the line that calls, and of the script's, if that is another one."""
        inner, script = frames[0], frames[-1]
        code, file = script.f_code, script.f_code.co_filename
        via = via_name = ""
        if script is not inner:
            via = f"{os.path.basename(inner.f_code.co_filename)}:{inner.f_lineno} < "
            via_name = f"{inner.f_code.co_name} {via}"
        content = {"site": f"{via_name}{code.co_name}", "file": file, "line": script.f_lineno}
        number = self.written.text(content) if self.written is not None else 0
        key = tuple(part for it in frames for part in (id(it.f_code), it.f_lasti))
        site = self._sites[key] = Site(
            number, f"{via}{file}:{script.f_lineno}", tuple(it.f_code for it in frames), _is_library(file)
        )
        return site

    def tensors(self, tensors: Sequence[Any]) -> tuple[int, int, int, int, int, bytes]:
        """Of tensors, or of lists of them: dtype, count, flags, dimensions, elements of all, and shape of the first."""
        while tensors and type(tensors[0]) is list:
            tensors = tensors[0]
        count = len(tensors)
        if not count:
            return 0, 0, 0, 0, 0, NO_SHAPE
        first = tensors[0]
        dimensions, shape, elements = self.shape(first.shape)
        if count > 1:
            elements = sum(it.numel() for it in tensors)
        return (
            self.dtypes.get(first.dtype, 0), count, 0 if first.is_cpu else ON_DEVICE, dimensions, elements, shape,
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

    def forget_groups(self) -> None:
        """Lets each group and line be written again, into a record that has begun after they were seen."""
        for it in (self._groups, self._sites, self.by_id):
            it.clear()

    def forked(self) -> None:
        """A process that a rank has forked is not watched. One that was forked before may become a rank itself."""
        if self.written is None and not self.is_broken and not _has_begun():
            self.pid = os.getpid()
        else:
            self.written, self.is_broken = None, True


_PACKAGES = ("/site-packages/", "/dist-packages/")
_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen ")


def _is_library(file: str) -> bool:
    """Whether code of this file is of an installed package, or of Python itself."""
    return file.startswith(_STANDARD) or any(it in file for it in _PACKAGES)


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
