"""Calls that the dispatcher's hooks do not see, as torch's own hooks of a group tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, ProcessGroup

from rankbridge_server.doctor.evidence import Call
from rankbridge_server.job.outside import rings
from rankbridge_server.job.watch import hook
from rankbridge_server.job.watch.recorder import KnownGroup, Recorder
from rankbridge_server.job.watch.ring import Ring
from rankbridge_server.job.watch.unseen import UnseenCalls

has_hooks = pytest.mark.skipif(
    not hasattr(ProcessGroup, "register_pre_hook"), reason="torch 2.14 is the first to have hooks of its own"
)


class HookedGroup:
    """A group that fires its hooks as torch 2.14 does."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[[Any], None]] = {}
        self.after: dict[int, Callable[[Any], None]] = {}
        self._id = 0

    def register_pre_hook(self, number: int, callback: Callable[[Any], None]) -> None:
        self.before[number] = callback

    def register_post_hook(self, number: int, callback: Callable[[Any], None]) -> None:
        self.after[number] = callback

    def unregister_pre_hook(self, number: int) -> None:
        self.before.pop(number, None)

    def unregister_post_hook(self, number: int) -> None:
        self.after.pop(number, None)

    def call(
        self, name: str, *, root: int = -1, async_op: bool = False, **tensors: list[torch.Tensor]
    ) -> None:
        """A call that ends at once."""
        self._id += 1
        arguments = SimpleNamespace(
            name=SimpleNamespace(name=name), op_id=self._id, root=root, async_op=async_op,
            input_tensors=tensors.get("inputs", []), output_tensors=tensors.get("outputs", []),
        )  # fmt: skip
        for it in self.before.values():
            it(arguments)
        for it in self.after.values():
            it(arguments)


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring.create(tmp_path, 0, 2)


@pytest.fixture
def recorder(ring: Ring) -> Recorder:
    it = Recorder(torch)
    it.written = ring
    return it


@pytest.fixture
def group() -> HookedGroup:
    return HookedGroup()


def watch(recorder: Recorder, ring: Ring, group: HookedGroup, seeing: str = "seeing.py") -> UnseenCalls:
    """As of a group that torch lists, when it is first seen."""
    unseen = UnseenCalls(recorder, seeing)
    number = ring.text({"group": "0", "ranks": [4, 7], "description": "default_pg"})
    assert recorder.new_group is not None
    recorder.new_group(group, KnownGroup(number, "0", "world", group, [4, 7]))
    return unseen


def calls(ring: Ring) -> list[Call]:
    return list(rings.read(ring.path).calls)


def test_what_torch_tells_is_recorded(recorder: Recorder, ring: Ring, group: HookedGroup) -> None:
    watch(recorder, ring, group)
    group.call("BROADCAST", root=1, inputs=[torch.ones(2, 3)])
    group.call("ALLGATHER", async_op=True, inputs=[torch.ones(2)], outputs=[torch.ones(2), torch.ones(2)])
    group.call("SEND", root=1, inputs=[torch.ones(4, dtype=torch.int64)])
    group.call("RECV", root=0, outputs=[torch.ones(5)])
    assert [(it.kind, it.number, it.dtypes, it.shapes, it.root, it.peer) for it in calls(ring)] == [
        ("broadcast", 1, ("float32",), ((2, 3),), 7, None),
        ("all_gather", 2, ("float32",), ((2,),), None, None),
        ("send", 1, ("int64",), ((4,),), None, 7),
        ("recv", 1, ("float32",), ((5,),), None, 4),
    ]
    assert {(it.op, it.tag) for it in calls(ring)} == {(None, None)}
    assert all(it.returned_at for it in calls(ring))
    site = calls(ring)[0].site
    assert site is not None
    assert site.file == __file__


def test_what_the_dispatchers_hooks_see_is_recorded_once(
    recorder: Recorder, ring: Ring, group: HookedGroup
) -> None:
    watch(recorder, ring, group, __file__)
    group.call("BARRIER")
    assert calls(ring) == []
    assert group.after == {}


def test_a_kind_that_the_record_does_not_have_is_left_out(
    recorder: Recorder, ring: Ring, group: HookedGroup
) -> None:
    watch(recorder, ring, group)
    group.call("NEW_WINDOW")
    group.call("BARRIER")
    assert [(it.kind, it.number) for it in calls(ring)] == [("barrier", 1)]


def test_the_end_takes_the_hooks_back(recorder: Recorder, ring: Ring, group: HookedGroup) -> None:
    unseen = watch(recorder, ring, group)
    group.call("BARRIER")
    assert (len(group.before), len(group.after)) == (1, 1)
    unseen.end()
    assert (group.before, group.after) == ({}, {})


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """A default group whose calls are recorded; gives the kinds of those calls."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    hook.install(lambda rank, size: Ring.create(tmp_path, rank, size))
    dist.barrier()
    yield lambda: [it.kind for path in tmp_path.glob("*.rbring") for it in rings.read(path).calls]
    hook.remove()
    dist.destroy_process_group()


@has_hooks
def test_an_operator_that_somebody_else_hooks_is_recorded(watched: Callable[[], list[str]]) -> None:
    operator = torch.ops.c10d.broadcast_.default
    key = torch._C.DispatchKey.BackendSelect
    library = torch.library.Library("c10d", "IMPL")  # type: ignore[no-untyped-call]

    def theirs(keys: Any, *args: Any) -> Any:
        return operator.redispatch(keys.remove(key), *args)

    library.impl("broadcast_", theirs, "BackendSelect", with_keyset=True, allow_override=True)  # type: ignore[no-untyped-call]
    try:
        dist.broadcast(torch.ones(1), 0)
        dist.all_reduce(torch.ones(1))
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
    assert watched() == ["barrier", "broadcast", "all_reduce"]


@has_hooks
def test_what_is_guarded_is_recorded_once(watched: Callable[[], list[str]]) -> None:
    recorder = hook._recorder
    assert recorder is not None
    recorder.admit = lambda call, enter: enter(0 if call.kind == "recv" else None)
    dist.all_reduce(torch.ones(1))
    with pytest.raises(RuntimeError):
        dist.distributed_c10d._get_default_group().recv_anysource([torch.ones(1)], 0)
    assert watched() == ["barrier", "all_reduce", "recv"]


@has_hooks
def test_hooks_are_taken_back(watched: Callable[[], list[str]]) -> None:
    hook.remove()
    dist.all_reduce(torch.ones(1))
    assert watched() == ["barrier"]
