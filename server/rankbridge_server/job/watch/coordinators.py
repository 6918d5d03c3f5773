"""Sees methods of objects that look like vLLM's GroupCoordinator, which may pass by torch's dispatcher.

Custom all-reduce, pynccl and shared memory do. A class looks like it by its name and methods, an object by
`unique_name`, `ranks`, and `device_group` or `cpu_group`: SGLang's does, and forks. Neither is imported here.

A call counts in a group of the coordinator's own, so that its numbers are equal on all members, whatever it does
inside. What it calls of torch.distributed is recorded as ever, in torch's group.
"""

from __future__ import annotations

import inspect
import sys
import time
import weakref
from _thread import get_ident
from collections.abc import Callable, Iterator
from functools import wraps
from types import FrameType
from typing import Any, NamedTuple

from .coordinator_call import CoordinatorCall, CoordinatorCalls
from .recorder import KnownGroup, Recorder

CLASS = "GroupCoordinator"
_LOOKS_LIKE = ("all_reduce", "all_gather", "broadcast", "barrier")
_METHODS = {
    **{
        name: name
        for name in (
            *("all_reduce", "all_gather", "all_gather_into_tensor", "all_gatherv", "reduce_scatter"),
            *(
                "reduce_scatter_tensor",
                "reduce_scatterv",
                "gather",
                "scatter",
                "broadcast",
                "broadcast_object",
            ),
            *("broadcast_object_list", "broadcast_tensor_dict", "all_to_all", "barrier", "send", "recv"),
            *("send_object", "recv_object", "send_tensor_dict", "recv_tensor_dict"),
        )
    },
    # What compiled code calls by a custom operator.
    "_all_reduce_out_place": "all_reduce",
    "_all_reduce_in_place": "all_reduce",
    "_all_gather_out_place": "all_gather",
    "_all_gather_into_tensor": "all_gather_into_tensor",
    "_reduce_scatter_out_place": "reduce_scatter",
    "_reduce_scatter_tensor": "reduce_scatter_tensor",
}
"""The kind of call that each method is."""
_WITH_ROOT = {"gather": "dst", "scatter": "src"}
_RUNS_SCRIPTS = ("runpy", "threading", "multiprocessing.process")
_TENSORS = ("input_", "input", "input_tensor", "tensor")


class _Place(NamedTuple):
    """Where a method has an argument. `default`: what it is without."""

    name: str
    at: int
    default: Any

    def of(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The argument of a call. `args`: without `self`."""
        return args[self.at] if self.at < len(args) else named.get(self.name, self.default)


class Coordinators:
    """Those of this process, until `end`. What their methods do is written by each of `writers`."""

    def __init__(self, recorder: Recorder) -> None:
        import torch
        from torch.distributed import distributed_c10d as c10d

        self.writers: tuple[CoordinatorCalls, ...] = ()
        self._recorder = recorder
        self._is_compiling: Callable[[], bool] = torch.compiler.is_compiling
        self._is_tensor = torch.is_tensor
        self._groups: dict[int, tuple[weakref.ref[Any], KnownGroup | None]] = {}
        self._inside: set[tuple[int, int]] = set()
        self._wrapped: list[tuple[type, str, Any, Any]] = []
        self._done: weakref.WeakSet[type] = weakref.WeakSet()
        self._c10d = c10d
        self._make = make = c10d._new_group_with_tag

        @wraps(make)
        def making(*args: Any, **named: Any) -> Any:
            # A coordinator makes its groups when it is made: its class is there, and nobody has called it yet.
            try:
                self.look()
            except Exception as error:
                recorder.complain(error)
            return make(*args, **named)

        self._making = c10d._new_group_with_tag = making
        self.look()

    def look(self) -> None:
        """Wraps the methods of classes that are there now, and were not before. Imports nothing."""
        for module in list(sys.modules.values()):
            found = getattr(module, "__dict__", {}).get(CLASS)
            if isinstance(found, type) and all(callable(getattr(found, it, None)) for it in _LOOKS_LIKE):
                for it in _with_subclasses(found):
                    if it not in self._done:
                        self._done.add(it)
                        self._wrap(it)

    def forget_groups(self) -> None:
        """Lets each coordinator be written again, into a record that has begun after it was seen."""
        self._groups.clear()

    def end(self) -> None:
        """Gives the classes their own methods back, unless somebody has wrapped these."""
        for owner, name, wrapped, bare in self._wrapped:
            if vars(owner).get(name) is wrapped:
                setattr(owner, name, bare)
        if self._c10d._new_group_with_tag is self._making:
            self._c10d._new_group_with_tag = self._make

    def _wrap(self, owner: type) -> None:
        for name, kind in _METHODS.items():
            bare = vars(owner).get(name)
            if inspect.isfunction(bare):
                wrapped = self._watched(bare, kind)
                setattr(owner, name, wrapped)
                self._wrapped.append((owner, name, wrapped, bare))

    def _watched(self, bare: Callable[..., Any], kind: str) -> Callable[..., Any]:
        recorder, inside, is_compiling = self._recorder, self._inside, self._is_compiling
        look = self._looking(bare, kind)

        @wraps(bare)
        def watched(coordinator: Any, *args: Any, **named: Any) -> Any:
            # Dynamo follows what it compiles in here, and finds the bare method.
            if is_compiling():
                return bare(coordinator, *args, **named)
            key = (get_ident(), id(coordinator))
            # A method that another has called is a part of that one's call.
            if key in inside:
                return bare(coordinator, *args, **named)
            ends: list[Callable[[BaseException | None], None]] = []
            call = None
            try:
                call = look(coordinator, args, named)
                if call is not None:
                    ends = [end for it in self.writers if (end := it.begin(call)) is not None]
            except Exception as error:
                recorder.complain(error)
            if call is None:
                return bare(coordinator, *args, **named)
            failed: BaseException | None = None
            inside.add(key)
            try:
                return bare(coordinator, *args, **named)
            except BaseException as error:
                failed = error
                raise
            finally:
                inside.discard(key)
                for end in ends:
                    end(failed)

        return watched

    def _looking(
        self, bare: Callable[..., Any], kind: str
    ) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], CoordinatorCall | None]:
        """What describes a call of a method; it gives None for an object that does not look like a coordinator."""
        recorder, now = self._recorder, time.time
        parameters = list(inspect.signature(bare).parameters.values())[1:]
        places = {it.name: _Place(it.name, at, it.default) for at, it in enumerate(parameters)}
        tensor_at = next((places[it] for it in _TENSORS if it in places), None)
        is_p2p = kind.startswith(("send", "recv"))
        peer_at = places.get("dst" if kind.startswith("send") else "src") if is_p2p else None
        root_at = places.get(_WITH_ROOT.get(kind, "src")) if not is_p2p else None
        size_at, dtype_at = (places.get(it) for it in ("size", "dtype"))
        package = bare.__globals__.get("__package__")

        def look(coordinator: Any, args: tuple[Any, ...], named: dict[str, Any]) -> CoordinatorCall | None:
            began = now()
            # The record must be there before groups and lines are written into it.
            recorder.ring()
            group = self._group(coordinator)
            if group is None:
                return None
            root = peer = tag = -1
            if is_p2p:
                peer = group.rank(_peer(coordinator, peer_at and peer_at.of(args, named), kind, group))
                tag = 0
                number = group.next_in_channel(kind, peer, tag)
            else:
                if root_at is not None:
                    given = root_at.of(args, named)
                    root = group.rank(given if isinstance(given, int) else 0)
                number = group.calls = group.calls + 1
            tensor = tensor_at.of(args, named) if tensor_at is not None else None
            dtype = size = None
            if self._is_tensor(tensor):
                size, dtype = tensor.shape, tensor.dtype
            elif size_at is not None and dtype_at is not None:
                size, dtype = size_at.of(args, named), dtype_at.of(args, named)
            site = recorder.site(_caller(sys._getframe(1), package))
            return CoordinatorCall(
                kind,
                group,
                number,
                began,
                root,
                peer,
                tag,
                dtype,
                None if size is None else tuple(size),
                self._is_tensor(tensor) and not tensor.is_cpu,
                site,
            )

        return look

    def _group(self, coordinator: Any) -> KnownGroup | None:
        """The group of an object; None: it does not look like a coordinator of several ranks."""
        known = self._groups.get(id(coordinator))
        if known is None or known[0]() is not coordinator:
            known = weakref.ref(coordinator), self._described(coordinator)
            self._groups[id(coordinator)] = known
        return known[1]

    def _described(self, coordinator: Any) -> KnownGroup | None:
        name, ranks = getattr(coordinator, "unique_name", None), getattr(coordinator, "ranks", None)
        has_group = any(getattr(coordinator, it, None) is not None for it in ("device_group", "cpu_group"))
        if not isinstance(name, str) or not isinstance(ranks, list | tuple) or not has_group:
            return None
        if len(ranks) < 2 or not all(type(it) is int for it in ranks):
            return None
        ring = self._recorder.written
        # Groups of one name have different ranks: "tp:0" of ranks 0-1, and "tp:0" of ranks 2-3.
        key = f"{name}@{ranks[0]}"
        content = {"group": key, "ranks": list(ranks), "description": name}
        return KnownGroup(ring.text(content) if ring is not None else 0, key, name, coordinator, list(ranks))


def _with_subclasses(found: type) -> Iterator[type]:
    yield found
    below: list[type] = found.__subclasses__()
    for it in below:
        yield from _with_subclasses(it)


def _peer(coordinator: Any, given: Any, kind: str, group: KnownGroup) -> int:
    """A peer's rank in the group; without one it is the next, to whom is sent, or the last, who has sent."""
    if isinstance(given, int):
        return given
    here = getattr(coordinator, "rank_in_group", 0)
    return int(here + (1 if kind.startswith("send") else -1)) % len(group.ranks)


def _caller(inner: FrameType, package: str | None) -> FrameType | None:
    """The frame outside of the coordinator's package that calls it; the next, if the script is in that package."""
    first = frame = inner.f_back
    while frame is not None and package and frame.f_globals.get("__package__") == package:
        frame = frame.f_back
    # Python's own modules run such a script.
    is_whole = frame is None or frame.f_globals.get("__name__") in _RUNS_SCRIPTS
    return first if is_whole else frame
