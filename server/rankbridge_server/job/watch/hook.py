"""Sees each collective where torch dispatches it: from Python, from C++, compiled, and in inference mode.

It is recorded, and who asks for it may let it wait there, or change it.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from _thread import get_ident
from collections.abc import Callable, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from .next_call import INPUTS, NO_TENSORS, NextCall, stop_if_boxing
from .ring import DIMENSIONS, DTYPES, IS_ASYNC, KINDS, Ring

_OPERATORS = {
    "allreduce_": "all_reduce",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "gather_": "gather",
    "scatter_": "scatter",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "barrier": "barrier",
    "monitored_barrier_": "monitored_barrier",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "allgather_coalesced_": "all_gather_coalesced",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
}
_PEERS = ("dst", "src")
_DEEPEST = 40
_libraries: list[Any] = []
_recorder: _Recorder | None = None


class _Group:
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


class _Site(NamedTuple):
    """A line of code that calls. `number`: of its text in the record; 0: it has none. `text`: "file:line"."""

    number: int
    text: str
    code: CodeType | None


_NOWHERE = _Site(0, "", None)
"""No Python calls, as in a backward pass."""


class _Recorder:
    """Writes calls into a ring, which is made at the first of them.

    `create`: makes it; None: there is none. `before`, `admit`: as of `call_before` and `install`.
    """

    def __init__(self, torch: Any) -> None:
        self.create: Callable[[int, int], Ring | None] | None = None
        self.before: list[Callable[[NextCall], None]] = []
        self.admit: Callable[[NextCall], None] | None = None
        self._ring: Ring | None = None
        self._pid = os.getpid()
        self._groups: dict[str, _Group] = {}
        self._sites: dict[tuple[int, int], _Site] = {}
        self._own = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)
        self._dtypes = {
            getattr(torch, name): at for at, name in enumerate(DTYPES) if name and hasattr(torch, name)
        }
        self._broken = False
        self.to_wait_for: dict[int, int] = {}
        """By thread, where the call is for which it waits next: one that was asked for without async_op."""

    def ring(self) -> Ring | None:
        """The record; None in a process that was forked from the one that is watched, and where there is no room."""
        create = self.create
        if self._ring is None and create is not None and not self._broken and os.getpid() == self._pid:
            try:
                self._ring = create(*_place())
            except OSError as error:
                self._broken = True
                print(
                    f"rankbridge watch: rank {os.environ.get('RANK')} is not recorded: {error}",
                    file=sys.stderr,
                )
        return self._ring

    def group(self, group: Any) -> _Group:
        """What is known of a group, which is written at its first call."""
        name = group.group_name
        known = self._groups.get(name)
        if known is None or (known.is_of() is not group and self._is_new(group, known)):
            from torch.distributed import distributed_c10d as c10d

            try:
                ranks = c10d.get_process_group_ranks(group)
            except (KeyError, ValueError, RuntimeError):
                ranks = list(range(group.size()))
            ring = self._ring
            content = {"group": name, "ranks": ranks, "description": group.group_desc}
            known = self._groups[name] = _Group(
                ring.text(content) if ring is not None else 0, name, group, ranks
            )
        return known

    def _is_new(self, group: Any, known: _Group) -> bool:
        """Whether a known name has a new group. One that torch does not list has another wrapper each time."""
        from torch.distributed import distributed_c10d as c10d

        if group in c10d._world.pg_names:
            return True
        known.is_of = weakref.ref(group)
        return False

    def site(self) -> _Site:
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
            return _NOWHERE
        code = frame.f_code
        # A code object hashes all of its instructions: its identity is enough, as long as it is kept.
        key = (id(code), frame.f_lasti)
        known = self._sites.get(key)
        if known is None:
            content = {"site": code.co_name, "file": code.co_filename, "line": frame.f_lineno}
            number = self._ring.text(content) if self._ring is not None else 0
            known = self._sites[key] = _Site(number, f"{code.co_filename}:{frame.f_lineno}", code)
        return known

    def dtype(self, tensor: Any) -> int:
        """Number of a tensor's dtype."""
        return self._dtypes.get(tensor.dtype, 0)

    def forget_groups(self) -> None:
        """Lets each group and line be written again, into a record that has begun after they were seen."""
        self._groups, self._sites = {}, {}

    def forked(self) -> None:
        """A process that the watched one has forked is not watched."""
        self._ring, self._broken = None, True


def _place() -> tuple[int, int]:
    """Rank and world size: torch's, or what the environment says before there is a default group."""
    from torch.distributed import distributed_c10d as c10d

    if c10d.is_initialized():
        return c10d.get_rank(), c10d.get_world_size()
    return int(os.environ.get("RANK", -1)), int(os.environ.get("WORLD_SIZE", -1))


def install(
    create: Callable[[int, int], Ring | None], admit: Callable[[NextCall], None] | None = None
) -> None:
    """Records each collective from now on. `create`: makes the record.

    `admit`: called before each is entered, after it was recorded; raises what keeps it from that.
    """
    recorder = _installed()
    recorder.create, recorder.admit = create, admit
    recorder.forget_groups()


def call_before(callback: Callable[[NextCall], None]) -> None:
    """Calls `callback` before each collective from now on, before it is recorded.

    It may let the rank wait, change the call, skip it, or raise.
    """
    _installed().before.append(callback)


def remove() -> None:
    """Takes the hooks of the dispatcher back; waits and the end go on being recorded."""
    global _recorder
    _recorder = None
    while _libraries:
        _libraries.pop()._destroy()


def _installed() -> _Recorder:
    """Hooks every c10d operator of torch's dispatcher, and waits in Python, unless that is done."""
    global _recorder
    if _recorder is not None:
        return _recorder
    import torch
    from torch._C._distributed_c10d import ProcessGroup, Work

    recorder = _recorder = _Recorder(torch)
    library = torch.library.Library("c10d", "IMPL")  # type: ignore[no-untyped-call]
    key = torch._C.DispatchKey.BackendSelect
    for name, kind in _OPERATORS.items():
        operator = getattr(torch.ops.c10d, name, None)
        if operator is not None:
            hook = _hook(recorder, operator.default, kind, key, ProcessGroup)
            library.impl(name, hook, "BackendSelect", with_keyset=True)  # type: ignore[no-untyped-call]
    _watch_waits(recorder, Work)
    _watch_end(recorder)
    os.register_at_fork(after_in_child=recorder.forked)
    # Without a reference, the library would take its hooks back.
    _libraries.append(library)
    return recorder


def _hook(
    recorder: _Recorder,
    operator: Any,
    kind: str,
    key: Any,
    groups: Any,
) -> Callable[..., Any]:
    names = [it.name for it in operator._schema.arguments]
    at = {name: place for place, name in enumerate(names)}
    group_at = at["process_group"]
    op_at, root_at, tag_at = at.get("reduce_op"), at.get("root_rank"), at.get("tag")
    peer_at = next((at[it] for it in _PEERS if it in at), None)
    async_at = at.get("async_op")
    tensors_at = None if kind in NO_TENSORS else next(at[it] for it in INPUTS if it in at)
    code = KINDS.index(kind)
    unbox, now, redispatch = groups.unbox, time.time, operator.redispatch
    empty = (0,) * DIMENSIONS
    to_wait_for = recorder.to_wait_for

    def is_waited_for(args: tuple[Any, ...]) -> bool:
        return async_at is not None and async_at < len(args) and not args[async_at]

    def look(args: tuple[Any, ...]) -> tuple[_Group, int, _Site]:
        # Groups and lines are written into the record when they are first seen: it must be there.
        recorder.ring()
        op = int(args[op_at].op()) if op_at is not None else -1
        return recorder.group(unbox(args[group_at])), op, recorder.site()

    def record(args: tuple[Any, ...], group: _Group, op: int, site: _Site) -> tuple[Ring, int] | None:
        ring = recorder.ring()
        if ring is None:
            return None
        peer = tag = root = -1
        if root_at is not None:
            root = group.rank(args[root_at])
        if tag_at is not None:
            tag = args[tag_at]
            peer = group.rank(args[peer_at]) if peer_at is not None else -1
            channel = (code, peer, tag)
            number = group.channels[channel] = group.channels.get(channel, 0) + 1
        else:
            group.calls += 1
            number = group.calls
        dtype = count = elements = dimensions = 0
        shape = empty
        if tensors_at is not None:
            tensors = args[tensors_at]
            if type(tensors) is list:
                while tensors and type(tensors[0]) is list:
                    tensors = tensors[0]
            else:
                tensors = (tensors,)
            count = len(tensors)
            if count:
                first = tensors[0]
                dtype = recorder.dtype(first)
                sizes = tuple(first.shape)
                dimensions = len(sizes)
                shape = sizes[:DIMENSIONS] + empty[dimensions:]
                elements = first.numel() if count == 1 else sum(it.numel() for it in tensors)
        flags = IS_ASYNC if async_at is not None and async_at < len(args) and args[async_at] else 0
        called = now()
        return ring, ring.begin(
            called, number, code, dtype, dimensions, flags, group.number, min(count, 65535), site.number, op, 0, root,
            peer, tag, elements, *shape,
        )  # fmt: skip

    def hook(keys: Any, *args: Any, **named: Any) -> Any:
        to_wait_for.pop(get_ident(), None)
        if recorder.before:
            stop_if_boxing(args, op_at)
            group, op, site = look(args)
            call = NextCall(kind, group, args, at, op, site.text)
            for callback in recorder.before:
                callback(call)
            if call.is_skipped:
                return _undone(operator, args)
            args = call.arguments
        whole = (*args, *named.values()) if named else args
        seen = place = None
        try:
            seen = look(whole)
            place = record(whole, *seen)
        except Exception as error:
            _complain(recorder, error)
        if recorder.admit is not None:
            group, op, site = seen or look(whole)
            recorder.admit(NextCall(kind, group, whole, at, op, site.text))
        result = redispatch(keys.remove(key), *args, **named)
        if place is not None:
            place[0].end(place[1], now())
            if is_waited_for(args):
                to_wait_for[get_ident()] = place[1]
        return result

    return hook


def _undone(operator: Any, args: tuple[Any, ...]) -> Any:
    """What a call gives that was not made: its tensors as they are, and work that is done."""
    import torch
    from torch._C import _distributed_c10d as c10d

    future: Any = torch.futures.Future()
    future.set_result(args[0])
    work = c10d._create_work_from_future(future).boxed()  # type: ignore[attr-defined]
    returns = len(operator._schema.returns)
    return (args[0], work) if returns == 2 else work if returns else None


def _complain(recorder: _Recorder, error: Exception) -> None:
    """Says once that a call was not recorded: watching must fail no job."""
    if not recorder._broken:
        recorder._broken = True
        recorder._ring = None
        print(
            f"rankbridge watch: rank {os.environ.get('RANK')} is no longer recorded: {error!r}",
            file=sys.stderr,
        )


def _watch_waits(recorder: _Recorder, work: Any) -> None:
    wait, now = getattr(work.wait, "bare", work.wait), time.time

    def watched(self: Any, *args: Any, **named: Any) -> Any:
        ring = recorder._ring
        if ring is None:
            return wait(self, *args, **named)
        call = recorder.to_wait_for.pop(get_ident(), None)
        ring.waiting(now())
        try:
            return wait(self, *args, **named)
        finally:
            ring.waiting(0.0)
            if call is not None:
                ring.waited(call, now())

    watched.__doc__ = wait.__doc__
    watched.bare = wait  # type: ignore[attr-defined]
    work.wait = watched


def _watch_end(recorder: _Recorder) -> None:
    before = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if recorder._ring is not None:
            recorder._ring.ended(2, f"{kind.__name__}: {error}")
        before(kind, error, trace)

    def at_exit() -> None:
        ring = recorder._ring
        if ring is not None and os.getpid() == recorder._pid and not ring.has_ended:
            ring.ended(1)

    sys.excepthook = excepthook
    atexit.register(at_exit)
