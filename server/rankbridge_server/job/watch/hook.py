"""Sees each collective where torch dispatches it: from Python, from C++, compiled, and in inference mode.

It is recorded, and who asks for it may let it wait there, or change it.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from .coordinator_call import CoordinatorCalls, RingCalls
from .coordinators import Coordinators
from .methods import MethodCalls
from .next_call import INPUTS, NO_TENSORS, POSTS, Admit, Done, NextCall, stop_if_boxing
from .operators import OPERATORS, code_of
from .process_end import watch_end
from .recorder import KnownGroup, Recorder
from .ring import KINDS, Ring
from .sites import Site
from .unseen import UnseenCalls
from .waits import Waits

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
    if _recorder is not None:
        _recorder.is_hooked = False
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
    for name, kind in OPERATORS.items():
        operator = getattr(torch.ops.c10d, name, None)
        if operator is not None:
            hook = _hook(torch, recorder, operator.default, kind, key, ProcessGroup)
            library.impl(name, hook, "BackendSelect", with_keyset=True)  # type: ignore[no-untyped-call]
    file = _hook.__code__.co_filename
    # A backend that is entered at once does not call the hooks of a group, which torch has from 2.14 on.
    has_hooks = hasattr(ProcessGroup, "register_pre_hook")
    _undo.append(UnseenCalls(recorder, file).end if has_hooks else MethodCalls(recorder, torch, file).end)
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
    blocking = code_of(torch, kind) if kind in POSTS else None
    known, to_wait_for = recorder.known, recorder.to_wait_for

    def see(args: tuple[Any, ...]) -> _Seen:
        # Groups and lines are written into the record when they are first seen: it must be there.
        if recorder.written is None:
            recorder.ring()
        # A thread of C++ alone has no frame but the hook's. That one, if its own call kept it, would keep tensors until
        # garbage is collected.
        frame = caller(1).f_back
        # As `.op()`, without the search for an attribute of Python's.
        op = -1 if op_at is None else int(args[op_at]._get_method("op")())
        return known(unbox(args[group_at])), op, recorder.site(frame), frame

    def look(args: tuple[Any, ...], seen: _Seen) -> NextCall:
        group, op, site, frame = seen
        blocks = blocking is not None and _is_called_by(frame, blocking)
        return NextCall(kind, group, args, at, op, site.text, is_blocking=blocks)

    def record(ring: Ring, args: tuple[Any, ...], seen: _Seen) -> int:
        group, op, site, _ = seen
        tensors = None if tensors_at is None else args[tensors_at]
        return recorder.begin(
            ring,
            code,
            group,
            site,
            tensors if tensors is None or type(tensors) is list else (tensors,),
            op,
            -1 if root_at is None else args[root_at],
            -1 if peer_at is None else args[peer_at],
            -1 if tag_at is None else args[tag_at],
            async_at < len(args) and args[async_at],
        )

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
