"""Calls that Python makes by a method of a process group are recorded here, and enter the group's backend at once.

That is where torch's dispatcher leads them. Its way into Python and back takes 7 us, and three times that in a rank
that has just slept. What it does more with goes its way, where the hook sees it.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from functools import partial, wraps
from sys import _getframe
from time import time as now
from types import FrameType
from typing import Any, NamedTuple

from .operators import OPERATORS, code_of
from .recorder import Recorder
from .ring import KINDS
from .straight import straight

Method = Callable[..., Any]


class _Collective(NamedTuple):
    """A method of a backend, whose arguments are tensors, or lists of them, sizes of parts, and options.

    `tensors`: how many of these. `reads`: which of them it reads. `others`: names that groups have for it besides.
    """

    method: str
    operator: str
    options: str
    tensors: int = 1
    reads: int = 0
    has_lists: bool = True
    sizes: int = 0
    others: tuple[str, ...] = ()


_COLLECTIVES = (
    _Collective("allreduce", "allreduce_", "AllreduceOptions"),
    _Collective("broadcast", "broadcast_", "BroadcastOptions"),
    _Collective("reduce", "reduce_", "ReduceOptions"),
    _Collective("allgather", "allgather_", "AllgatherOptions", 2, 1),
    _Collective(
        "_allgather_base", "_allgather_base_", "AllgatherOptions", 2, 1, has_lists=False, others=("all_gather_single",)
    ),
    _Collective("gather", "gather_", "GatherOptions", 2, 1),
    _Collective("scatter", "scatter_", "ScatterOptions", 2, 1),
    _Collective("reduce_scatter", "reduce_scatter_", "ReduceScatterOptions", 2, 1),
    _Collective(
        "_reduce_scatter_base", "_reduce_scatter_base_", "ReduceScatterOptions", 2, 1, has_lists=False,
        others=("reduce_scatter_single",),
    ),
    _Collective("alltoall", "alltoall_", "AllToAllOptions", 2, 1),
    _Collective(
        "alltoall_base", "alltoall_base_", "AllToAllOptions", 2, 1, has_lists=False, sizes=2,
        others=("all_to_all_single",),
    ),
)  # fmt: skip
_POSTS = {"send": "send", "recv": "recv_"}
"""Operators by methods."""


class MethodCalls:
    """Sees them from now on until `end`. `hooks`: the file of the dispatcher's hooks."""

    def __init__(self, recorder: Recorder, torch: Any, hooks: str) -> None:
        self._torch = torch
        self._c10d = torch._C._distributed_c10d
        self._group = self._c10d.ProcessGroup
        self._cpu = torch.device("cpu")
        ops = torch.distributed.ReduceOp
        self._op_numbers = {id(it): int(it) for it in vars(ops).values() if isinstance(it, ops.RedOpType)}
        self._wrapped: dict[tuple[type, str], tuple[Method, Method]] = {}
        """By class and name, what was there before, and what is there now."""
        try:
            self._is_straight, self._is_plain, look_again = straight(torch, recorder, hooks)
        except AttributeError:
            return
        self._enter = _entry(recorder, self._cpu)
        for its in _COLLECTIVES:
            for name in (its.method, *its.others):
                self._watch(name, partial(self._collective, its), its.options)
        self._watch("barrier", self._barrier, "BarrierOptions")
        for name in _POSTS:
            self._watch(name, partial(self._post, name))
        self._watch("_register_backend", partial(_followed_by, recorder.forget_entries))
        for name in ("impl", "_destroy"):
            self._wrap(torch.library.Library, name, partial(_followed_by, look_again))

    def end(self) -> None:
        """Gives torch its own back, except what somebody has wrapped since."""
        for (owner, name), (bare, watched) in self._wrapped.items():
            if vars(owner)[name] is watched:
                setattr(owner, name, bare)

    def _watch(self, name: str, watched: Callable[[Method], Method], options: str = "") -> None:
        bare = vars(self._group).get(name)
        # Options of an older torch do not say whether the caller waits. What somebody has wrapped would not be called.
        says_all = not options or hasattr(getattr(self._c10d, options, None), "asyncOp")
        if says_all and type(bare).__name__ == "instancemethod":
            self._wrap(self._group, name, watched)

    def _wrap(self, owner: type, name: str, watched: Callable[[Method], Method]) -> None:
        bare, method = vars(owner)[name], getattr(owner, name)
        wrapped = wraps(method)(watched(method))
        self._wrapped[owner, name] = bare, wrapped
        setattr(owner, name, wrapped)

    def _collective(self, its: _Collective, bare: Method) -> Method:
        operator, method, count, read = its.operator, its.method, its.tensors, its.reads
        options_type = getattr(self._c10d, its.options)
        has_op, has_root = hasattr(options_type, "reduceOp"), hasattr(options_type, "rootRank")
        kind, most = OPERATORS[operator], count + its.sizes + 1
        code, function, numbers = KINDS.index(kind), code_of(self._torch, kind), self._op_numbers
        form, has_sizes = list if its.has_lists else self._torch.Tensor, its.sizes > 0
        is_straight, is_plain, enter = self._is_straight, self._is_plain, self._enter

        def call(group: Any, *args: Any, **named: Any) -> Any:
            # What has another form is torch's to judge: if it refuses a call, there was none.
            if (
                named
                or len(args) != most
                or type(args[-1]) is not options_type
                or type(args[0]) is not form
                or not is_straight(group, operator)
                or not is_plain(args[0])
                or (count == 2 and not (type(args[1]) is form and is_plain(args[1])))
                or (has_sizes and not all(map(_are_numbers, args[count:-1])))
            ):
                return bare(group, *args, **named)
            options, tensors, frame = args[-1], args[read], _getframe(1)
            op, is_async = -1 if not has_op else None, None
            if has_op and frame.f_code is function:
                # Options make objects of what torch's function has in variables.
                variables = frame.f_locals
                op, is_async = numbers.get(id(variables.get("op"))), variables.get("async_op")
            if op is None:
                op = int(options.reduceOp.op)
            if type(is_async) is not bool:
                is_async = options.asyncOp
            return enter(
                group, method, args, code, frame,
                tensors if form is list else (tensors,),
                op,
                options.rootRank if has_root else -1,
                -1, -1, is_async,
            )  # fmt: skip

        return call

    def _barrier(self, bare: Method) -> Method:
        options_type, cpu, kind = self._c10d.BarrierOptions, self._cpu, KINDS.index("barrier")
        is_straight, enter = self._is_straight, self._enter

        def barrier(group: Any, *args: Any, **named: Any) -> Any:
            options: Any = named.get("opts")
            # Without a device, the group chooses one.
            if (
                args
                or len(named) != 1
                or type(options) is not options_type
                or options.device != cpu
                or not is_straight(group, "barrier")
            ):
                return bare(group, *args, **named)
            return enter(
                group, "barrier", (options,), kind, _getframe(1), (), -1, -1, -1, -1, options.asyncOp
            )

        return barrier

    def _post(self, name: str, bare: Method) -> Method:
        operator = _POSTS[name]
        kind = KINDS.index(OPERATORS[operator])
        is_straight, is_plain, enter = self._is_straight, self._is_plain, self._enter

        def post(group: Any, *args: Any, **named: Any) -> Any:
            if (
                named
                or len(args) != 3
                or type(args[0]) is not list
                or not _are_numbers(args[1:])
                or not is_straight(group, operator)
                or not is_plain(args[0])
            ):
                return bare(group, *args, **named)
            tensors, peer, tag = args
            return enter(group, name, args, kind, _getframe(1), tensors, -1, -1, peer, tag, None)

        return post


def _are_numbers(them: Any) -> bool:
    return isinstance(them, list | tuple) and all(type(it) is int for it in them)


def _entry(recorder: Recorder, cpu: Any) -> Method:
    """What records a call, and enters the backend."""
    known, site, begin, to_wait_for = recorder.known, recorder.site, recorder.begin, recorder.to_wait_for

    def enter(
        group: Any,
        method: str,
        args: tuple[Any, ...],
        kind: int,
        frame: FrameType,
        tensors: Any,
        op: int,
        root: int,
        peer: int,
        tag: int,
        is_async: bool | None,
    ) -> Any:
        place, thread = 0, get_ident()
        entries: dict[str, Method] = {}
        if (ring := recorder.written) is not None:
            try:
                its = known(group)
                place = begin(ring, kind, its, site(frame), tensors, op, root, peer, tag, is_async)
                entries = its.entries
            except Exception as error:
                recorder.complain(error)
        try:
            entry = entries.get(method)
            if entry is None:
                entry = entries[method] = getattr(group._get_backend(cpu), method)
            result = entry(*args)
        except BaseException:
            to_wait_for.pop(thread, None)
            raise
        if place and ring is not None:
            ring.end(place, now())
        # Any number of sends and receives is waited for, in any order.
        if place and is_async is False:
            to_wait_for[thread] = place
        else:
            to_wait_for.pop(thread, None)
        return result

    return enter


def _followed_by(forget: Callable[[], None], bare: Method) -> Method:
    """Wraps what makes untrue what is kept."""

    def change(*args: Any, **named: Any) -> Any:
        try:
            return bare(*args, **named)
        finally:
            forget()

    return change
