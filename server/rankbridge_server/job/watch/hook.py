"""Sees each collective where torch dispatches it: from Python, from C++, compiled, and in inference mode.

It is recorded, and who asks for it may let it wait there, or change it.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from .coordinator_call import CoordinatorCalls, RingCalls
from .coordinators import Coordinators
from .next_call import INPUTS, NO_TENSORS, POSTS, Admit, Done, NextCall, stop_if_boxing
from .process_end import watch_end
from .recorder import KnownGroup, Recorder, Site
from .ring import IS_ASYNC, KINDS, NO_SHAPE, Ring
from .unseen import UnseenCalls
from .waits import Waits

_OPERATORS = {
    "allreduce_": "all_reduce",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "gather_": "gather",
    "gather_into_tensor_": "gather_into_tensor",
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
_Seen = tuple[KnownGroup, int, Site, FrameType | None]
"""Of a call: its group, number of its reduce op or -1, the line that calls, and the frame that has called the hook."""
_undo: list[Callable[[], None]] = []
"""What takes back all that is hooked."""
_recorder: Recorder | None = None
_coordinators: Coordinators | None = None


def install(create: Callable[[int, int], Ring | None], admit: Admit | None = None) -> None:
    """Records each collective from now on, and calls of coordinators' methods. `create`: makes the record.

    `admit`: called with each, after it was recorded, and with what enters it; gives what that gives, for a send or a
    receive a Work, boxed, or Done. It raises what keeps the call from being entered.
    """
    recorder = _installed()
    recorder.create, recorder.admit = create, admit
    recorder.forget_groups()
    coordinators = count_coordinators()
    coordinators.forget_groups()
    if not any(isinstance(it, RingCalls) for it in coordinators.writers):
        write_coordinators(RingCalls(recorder))


def call_before(callback: Callable[[NextCall], None]) -> Callable[[], None]:
    """Calls `callback` before each collective from now on, before it is recorded. Returns what ends that.

    It may let the rank wait, change the call, skip it, follow it to its end, or raise.
    """
    recorder = _installed()
    recorder.before = (*recorder.before, callback)

    def end() -> None:
        recorder.before = tuple(it for it in recorder.before if it is not callback)
        if not recorder.before:
            recorder.followed.forget()

    return end


def count_coordinators() -> Coordinators:
    """Counts calls of coordinators' methods from now on: ranks that begin at the same place have the same numbers."""
    global _coordinators
    if _coordinators is None:
        _coordinators = Coordinators(_installed())
    return _coordinators


def write_coordinators(writer: CoordinatorCalls) -> Callable[[], None]:
    """Writes these calls down from now on, too. Returns what ends that."""
    coordinators = count_coordinators()
    coordinators.writers = (*coordinators.writers, writer)

    def end() -> None:
        coordinators.writers = tuple(it for it in coordinators.writers if it is not writer)

    return end


def watch_waits(work: Any) -> None:
    """Records waits of a class of works of its own, too."""
    _undo.append(Waits(_installed(), work).end)


def remove() -> None:
    """Takes the hooks of the dispatcher and of waits back; the end goes on being recorded. No call may be under way."""
    global _recorder, _coordinators
    if _coordinators is not None:
        _coordinators.end()
    _recorder = _coordinators = None
    while _undo:
        _undo.pop()()


def _installed() -> Recorder:
    """Hooks every c10d operator of torch's dispatcher, and waits in Python, unless that is done."""
    global _recorder
    if _recorder is not None:
        return _recorder
    import torch
    from torch._C._distributed_c10d import ProcessGroup, Work

    recorder = _recorder = Recorder(torch)
    library = torch.library.Library("c10d", "IMPL")  # type: ignore[no-untyped-call]
    key = torch._C.DispatchKey.BackendSelect
    for name, kind in _OPERATORS.items():
        operator = getattr(torch.ops.c10d, name, None)
        if operator is not None:
            hook = _hook(torch, recorder, operator.default, kind, key, ProcessGroup)
            library.impl(name, hook, "BackendSelect", with_keyset=True)  # type: ignore[no-untyped-call]
    if hasattr(ProcessGroup, "register_pre_hook"):
        _undo.append(UnseenCalls(recorder, _hook.__code__.co_filename).end)
    waits = Waits(recorder, Work)
    watch_end(recorder)
    os.register_at_fork(after_in_child=recorder.forked)
    # Without a reference, the library would take its hooks back.
    _undo.extend((waits.end, library._destroy))
    return recorder


def _hook(
    torch: Any,
    recorder: Recorder,
    operator: Any,
    kind: str,
    key: Any,
    groups: Any,
) -> Callable[..., Any]:
    # What runs in each call is written for speed: docs/doctor.md says what it costs.
    names = [it.name for it in operator._schema.arguments]
    at = {name: place for place, name in enumerate(names)}
    group_at = at["process_group"]
    op_at, root_at, tag_at = at.get("reduce_op"), at.get("root_rank"), at.get("tag")
    peer_at = next((at[it] for it in _PEERS if it in at), None)
    # Past the last argument, if it has none: who asks for no work then waits for nothing.
    async_at = at.get("async_op", len(names))
    tensors_at = None if kind in NO_TENSORS else next(at[it] for it in INPUTS if it in at)
    code = KINDS.index(kind)
    # `operator.redispatch` is this, with a frame of its own.
    unbox, redispatch, now, caller = groups.unbox, operator._handle.redispatch_boxed, time.time, sys._getframe
    receive = torch.ops.c10d.recv_.default
    blocking = _code(torch, kind) if kind in POSTS else None
    # Arguments have group and op in boxes, and opening them takes 6 us. Torch's function has them in variables.
    function = None if op_at is None else _code(torch, kind)
    ops = torch.distributed.ReduceOp
    op_numbers = {id(it): int(it) for it in vars(ops).values() if isinstance(it, ops.RedOpType)}
    by_id, described, to_wait_for = recorder.by_id, recorder.tensors, recorder.to_wait_for

    def op_of(args: tuple[Any, ...]) -> int:
        # As `.op()`, without the search for an attribute of Python's.
        return -1 if op_at is None else int(args[op_at]._get_method("op")())

    def listed(group: Any) -> KnownGroup | None:
        known = by_id.get(id(group))
        return known if known is not None and known.is_of() is group else None

    def group_of(args: tuple[Any, ...]) -> KnownGroup:
        group = unbox(args[group_at])
        return listed(group) or recorder.group(group)

    def see(args: tuple[Any, ...]) -> _Seen:
        # Groups and lines are written into the record when they are first seen: it must be there.
        if recorder.written is None:
            recorder.ring()
        # A thread of C++ alone has no frame but the hook's. That one, if its own call kept it, would keep tensors until
        # garbage is collected.
        frame = caller(1).f_back
        if function is None or frame is None or frame.f_code is not function:
            return group_of(args), op_of(args), recorder.site(frame), frame
        variables = frame.f_locals
        group, op = listed(variables.get("group")), op_numbers.get(id(variables.get("op")))
        return group or group_of(args), op_of(args) if op is None else op, recorder.site(frame), frame

    def look(args: tuple[Any, ...], seen: _Seen) -> NextCall:
        group, op, site, frame = seen
        blocks = blocking is not None and _is_called_by(frame, blocking)
        return NextCall(kind, group, args, at, op, site.text, is_blocking=blocks)

    def record(ring: Ring, args: tuple[Any, ...], seen: _Seen) -> int:
        group, op, site, _ = seen
        peer = tag = root = -1
        if root_at is not None:
            root = group.rank(args[root_at])
        if tag_at is not None:
            tag = args[tag_at]
            peer = group.rank(args[peer_at]) if peer_at is not None else -1
            number = group.next_in_channel(code, peer, tag)
        else:
            number = group.calls = group.calls + 1
        if tensors_at is None:
            dtype, count, flags, dimensions, elements, shape = 0, 0, 0, 0, 0, NO_SHAPE
        else:
            tensors = args[tensors_at]
            dtype, count, flags, dimensions, elements, shape = described(
                tensors if type(tensors) is list else (tensors,)
            )
        if async_at < len(args) and args[async_at]:
            flags |= IS_ASYNC
        return ring.begin(
            now(), number, code, dtype, dimensions, flags, group.number, count, site.number, op, root, peer, tag,
            elements, shape,
        )  # fmt: skip

    def entering(rest: Any, args: tuple[Any, ...]) -> Callable[[int | None], Any]:
        def enter(source: int | None) -> Any:
            if source is None:
                return redispatch(rest, *args)
            tensors, process_group, tag = args
            return receive.redispatch(rest, tensors, process_group, source, tag)

        return enter

    def hook(keys: Any, *args: Any, **named: Any) -> Any:
        followed: NextCall | None = None
        if before := recorder.before:
            stop_if_boxing(args, op_at)
            call = look(args, see(args))
            try:
                for callback in before:
                    callback(call)
            except BaseException as error:
                call.over(error)
                raise
            if call.is_skipped:
                call.over(None)
                return _done(operator, args, args[0])
            args = call.arguments
            followed = call if call.is_followed else None
        whole = (*args, *named.values()) if named else args
        place, seen = 0, None
        try:
            if (ring := recorder.written or recorder.ring()) is not None:
                seen = see(whole)
                place = record(ring, whole, seen)
        except Exception as error:
            recorder.complain(error)
        try:
            rest = keys.remove(key)
            if recorder.admit is None:
                result = redispatch(rest, *args, **named)
            else:
                result = recorder.admit(look(whole, seen or see(whole)), entering(rest, whole))
                if type(result) is Done:
                    result = _done(operator, whole, result.results)
        except BaseException as error:
            to_wait_for.pop(get_ident(), None)
            if followed is not None:
                followed.over(error)
            raise
        if place and (ring := recorder.written) is not None:
            ring.end(place, now())
        if place and async_at < len(args) and not args[async_at]:
            to_wait_for[get_ident()] = place
        else:
            to_wait_for.pop(get_ident(), None)
        if followed is not None:
            recorder.followed.add(followed, result)
        return result

    return hook


def _code(torch: Any, kind: str) -> CodeType | None:
    """That of torch.distributed's function of this name; None: it has none."""
    function = getattr(torch.distributed, kind, None)
    return inspect.unwrap(function).__code__ if isinstance(function, FunctionType) else None


def _is_called_by(frame: FrameType | None, code: CodeType) -> bool:
    """Whether a function of torch has called this frame: `send` has `isend`."""
    outer = frame.f_back if frame is not None else None
    return outer is not None and outer.f_code is code


def _done(operator: Any, args: tuple[Any, ...], results: Any) -> Any:
    """What a call gives that enters nothing: its tensors as they are, and work that is done, with these results."""
    import torch
    from torch._C import _distributed_c10d as c10d

    future: Any = torch.futures.Future()
    future.set_result(results)
    work = c10d._create_work_from_future(future).boxed()  # type: ignore[attr-defined]
    returns = len(operator._schema.returns)
    return (args[0], work) if returns == 2 else work if returns else None
