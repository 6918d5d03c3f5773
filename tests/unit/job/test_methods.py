"""Calls that Python makes by methods of a process group, in a process with a default group of its own."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import HashStore, ProcessGroup
from torch.profiler import ProfilerActivity, profile
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from rankbridge_server.doctor.evidence import Call
from rankbridge_server.job.outside import rings
from rankbridge_server.job.watch import hook
from rankbridge_server.job.watch.ring import Ring

pytestmark = pytest.mark.skipif(
    hasattr(ProcessGroup, "register_pre_hook"), reason="from torch 2.14 on, all calls go torch's way"
)

Asked = Callable[..., Any]
OPS = dist.ReduceOp
# Newer torch has other names, and warns of these.
ALL_GATHER_SINGLE: Asked = vars(dist).get("all_gather_single") or dist.all_gather_into_tensor
REDUCE_SCATTER_SINGLE: Asked = vars(dist).get("reduce_scatter_single") or dist.reduce_scatter_tensor


def both(tensor: torch.Tensor) -> torch.Tensor:
    return torch.cat([tensor, tensor])


ALONE: dict[str, tuple[str, Asked]] = {
    "all_reduce": ("allreduce", lambda it: dist.all_reduce(it, OPS.MAX)),
    "all_reduce by an op made by hand": ("allreduce", lambda it: dist.all_reduce(it, OPS(OPS.MIN))),
    "all_reduce async": ("allreduce", lambda it: dist.all_reduce(it, async_op=True)),
    "broadcast": ("broadcast", lambda it: dist.broadcast(it, 0)),
    "reduce": ("reduce", lambda it: dist.reduce(it, 0, OPS.PRODUCT)),
    "all_gather": ("allgather", lambda it: dist.all_gather([torch.empty_like(it)], it)),
    "all_gather_into_tensor": (
        "_allgather_base",
        lambda it: ALL_GATHER_SINGLE(torch.empty_like(it), it),
    ),
    "gather": ("gather", lambda it: dist.gather(it, [torch.empty_like(it)])),
    "scatter": ("scatter", lambda it: dist.scatter(torch.empty_like(it), [it])),
    "reduce_scatter": ("reduce_scatter", lambda it: dist.reduce_scatter(torch.empty_like(it), [it], OPS.MAX)),
    "reduce_scatter_tensor": (
        "_reduce_scatter_base",
        lambda it: REDUCE_SCATTER_SINGLE(torch.empty_like(it), it, OPS.MIN),
    ),
    "all_to_all_single": ("alltoall_base", lambda it: dist.all_to_all_single(torch.empty_like(it), it)),
    "barrier": ("barrier", lambda _: dist.barrier()),
}
OF_TWO: dict[str, tuple[str, Asked]] = {
    "all_to_all": ("alltoall", lambda it: dist.all_to_all([it, it], [it, it])),
    "all_gather": ("allgather", lambda it: dist.all_gather([it, it], it)),
    "gather": ("gather", lambda it: dist.gather(it, dst=1)),
    "all_gather_into_tensor": ("_allgather_base", lambda it: ALL_GATHER_SINGLE(both(it), it)),
    "send": ("send", lambda it: dist.send(it, 1, tag=5)),
    "recv": ("recv", lambda it: dist.recv(it, 1, tag=6)),
    "isend": ("send", lambda it: dist.isend(it, 1)),
}


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[str], Callable[[], list[Call]]]]:
    """Begins a group with a backend, whose calls are recorded; gives what reads them."""

    def begin(backend: str) -> Callable[[], list[Call]]:
        if backend == "fake":
            dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
        else:
            dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
        hook.install(lambda rank, size: Ring.create(tmp_path, rank, size))
        # The record begins with the first call, which no method enters at once.
        dist.distributed_c10d._get_default_group().barrier().wait()
        return lambda: list(rings.read(next(tmp_path.glob("*.rbring"))).calls)[1:]

    yield begin
    hook.remove()
    dist.destroy_process_group()


def entered() -> set[str]:
    """Methods of the default group's backend that calls have entered at once."""
    recorder = hook._recorder
    assert recorder is not None
    return set(recorder.known(dist.distributed_c10d._get_default_group()).entries)


def backend_entered(group: Any) -> Any:
    """The backend of a group that an all_reduce has entered at once."""
    recorder = hook._recorder
    assert recorder is not None
    entry: Any = recorder.known(group).entries["allreduce"]
    return entry.__self__


class Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees operators as torch dispatches them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operators: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.operators.append(func.name())
        return func(*args, **(kwargs or {}))


def told(call: Call) -> tuple[Any, ...]:
    """All that a record has of a call, but its times and its number."""
    site = call.site
    return (
        call.kind, call.group, call.op, call.root, call.peer, call.tag, call.dtypes, call.shapes,
        call.done, call.on_device,
        (site.file, site.line) if site is not None else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("backend", "name"), [*(("gloo", it) for it in ALONE), *(("fake", it) for it in OF_TWO)]
)
def test_a_call_is_recorded_and_done_as_torchs_dispatcher_would(
    begin: Callable[[str], Callable[[], list[Call]]], backend: str, name: str
) -> None:
    method, ask = (ALONE if backend == "gloo" else OF_TWO)[name]
    calls = begin(backend)
    tensors = torch.tensor([2.0, 3.0]), torch.tensor([2.0, 3.0])
    profiler = profile(activities=[ProfilerActivity.CPU])
    ways: tuple[AbstractContextManager[Any], ...] = (nullcontext(), profiler)
    results = []
    for tensor, way in zip(tensors, ways, strict=True):
        with way:
            result = ask(tensor)
            if hasattr(result, "wait"):
                result.wait()
            results.append(result if isinstance(result, int) else None)
        assert entered() == {method}
    assert any(it.name.startswith("c10d::") for it in profiler.events())  # type: ignore[no-untyped-call]
    first, second = calls()
    assert told(first) == told(second)
    assert second.number == first.number + 1
    assert first.returned_at
    assert bool(first.waited_at) == bool(second.waited_at)
    assert torch.equal(*tensors)
    assert results[0] == results[1]


def negative() -> torch.Tensor:
    """A view whose values are yet to be negated."""
    return torch.ones(1, dtype=torch.complex64).conj().imag


OTHERWISE: dict[str, Callable[[], torch.Tensor]] = {
    "a gradient is asked for": lambda: torch.ones(1, requires_grad=True),
    "it is a parameter": lambda: torch.nn.Parameter(torch.ones(1), requires_grad=False),
    "it is yet to be negated": negative,
    "it is sparse": lambda: torch.ones(1).to_sparse(),
}


@pytest.mark.parametrize("why", OTHERWISE)
def test_a_tensor_that_is_not_plain_goes_torchs_way(
    begin: Callable[[str], Callable[[], list[Call]]], why: str
) -> None:
    calls = begin("gloo")
    with torch.no_grad():
        dist.all_reduce(OTHERWISE[why]())
    assert entered() == set()
    assert [it.kind for it in calls()] == ["all_reduce"]


def test_a_tensor_on_another_device_goes_torchs_way(begin: Callable[[str], Callable[[], list[Call]]]) -> None:
    calls = begin("gloo")
    dist.broadcast(torch.ones(1, device="meta"), 0, async_op=True)
    assert entered() == set()
    assert [it.kind for it in calls()] == ["broadcast"]


def test_a_tensor_of_inference_enters_at_once(begin: Callable[[str], Callable[[], list[Call]]]) -> None:
    calls = begin("gloo")
    with torch.inference_mode():
        dist.all_reduce(torch.ones(1))
    assert entered() == {"allreduce"}
    assert [it.kind for it in calls()] == ["all_reduce"]


def test_a_mode_of_torchs_sees_its_operator(begin: Callable[[str], Callable[[], list[Call]]]) -> None:
    calls = begin("gloo")
    with Seen() as seen:
        dist.all_reduce(torch.ones(1))
    assert "c10d::allreduce_" in seen.operators
    assert entered() == set()
    assert [it.kind for it in calls()] == ["all_reduce"]


def test_a_profiler_has_torchs_operator(begin: Callable[[str], Callable[[], list[Call]]]) -> None:
    calls = begin("gloo")
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        dist.all_reduce(torch.ones(1))
    assert "c10d::allreduce_" in {it.name for it in profiled.events()}
    assert [it.kind for it in calls()] == ["all_reduce"]


def test_what_changes_or_admits_calls_goes_torchs_way(
    begin: Callable[[str], Callable[[], list[Call]]],
) -> None:
    calls = begin("gloo")
    end = hook.call_before(lambda call: call.skip())
    tensor = torch.ones(1)
    dist.broadcast(tensor, 0)
    assert calls() == []
    end()
    recorder = hook._recorder
    assert recorder is not None
    recorder.admit = lambda call, enter: enter(None)
    dist.broadcast(tensor, 0)
    assert entered() == set()
    assert [it.kind for it in calls()] == ["broadcast"]


def test_an_operator_that_somebody_else_hooks_goes_torchs_way(
    begin: Callable[[str], Callable[[], list[Call]]],
) -> None:
    calls = begin("gloo")
    dist.broadcast(torch.ones(1), 0)
    assert entered() == {"broadcast"}
    recorder = hook._recorder
    assert recorder is not None
    recorder.forget_entries()
    operator = torch.ops.c10d.broadcast_.default
    key = torch._C.DispatchKey.AutogradCPU
    seen = []
    library = torch.library.Library("c10d", "IMPL")  # type: ignore[no-untyped-call]

    def theirs(keys: Any, *args: Any) -> Any:
        seen.append("broadcast")
        return operator.redispatch(keys.remove(key), *args)

    library.impl("broadcast_", theirs, "AutogradCPU", with_keyset=True)  # type: ignore[no-untyped-call]
    try:
        dist.broadcast(torch.ones(1), 0)
        dist.all_reduce(torch.ones(1))
    finally:
        library._destroy()  # type: ignore[no-untyped-call]
    assert seen == ["broadcast"]
    assert entered() == {"allreduce"}
    dist.broadcast(torch.ones(1), 0)
    assert entered() == {"allreduce", "broadcast"}
    assert [it.kind for it in calls()] == ["broadcast", "broadcast", "all_reduce", "broadcast"]


def test_a_call_that_raises_has_failed(begin: Callable[[str], Callable[[], list[Call]]]) -> None:
    calls = begin("gloo")
    options = dist.BroadcastOptions()
    options.rootRank = 7
    with pytest.raises((RuntimeError, ValueError), match="root"):
        dist.distributed_c10d._get_default_group().broadcast([torch.ones(1)], options)
    assert [(it.kind, it.returned_at) for it in calls()] == [("broadcast", None)]


def test_arguments_in_another_form_are_torchs_to_judge(
    begin: Callable[[str], Callable[[], list[Call]]],
) -> None:
    calls = begin("gloo")
    group: Any = dist.distributed_c10d._get_default_group()
    group.allreduce(torch.ones(1)).wait()
    group.broadcast(torch.ones(1), root=0).wait()
    group.barrier().wait()
    some = torch.ones(1)
    refused: list[Callable[[], Any]] = [
        lambda: group.allreduce([1], dist.AllreduceOptions()),
        lambda: group.allreduce(some, dist.AllreduceOptions()),
        lambda: group.allgather([some], some, c10d.AllgatherOptions()),
        lambda: group._allgather_base([some], some, c10d.AllgatherOptions()),
        lambda: group._allgather_base(some, [some], c10d.AllgatherOptions()),
        lambda: group.alltoall_base(some, some, [0.5], [], dist.AllToAllOptions()),
        lambda: group.send(some, 0, 0),
        lambda: group.send([some], 0, "tag"),
    ]
    for call in refused:
        with pytest.raises(TypeError, match=r"(?s)ProcessGroup.*Invoked with"):
            call()
    assert entered() == set()
    assert [(it.kind, it.number) for it in calls()] == [("all_reduce", 2), ("broadcast", 3), ("barrier", 4)]


def test_options_that_do_not_say_who_waits_go_torchs_way(
    begin: Callable[[str], Callable[[], list[Call]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of an older torch."""
    bare = vars(ProcessGroup)["allreduce"]
    monkeypatch.delattr(c10d.AllreduceOptions, "asyncOp")
    begin("gloo")
    assert vars(ProcessGroup)["allreduce"] is bare
    assert vars(ProcessGroup)["broadcast"] is not bare


def test_methods_are_as_they_were_once_the_hook_is_removed(
    begin: Callable[[str], Callable[[], list[Call]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(vars(ProcessGroup))
    # So that it is undone in the end.
    monkeypatch.setattr(ProcessGroup, "broadcast", before["broadcast"])
    calls = begin("gloo")
    assert vars(ProcessGroup)["allreduce"] is not before["allreduce"]
    ours = vars(ProcessGroup)["broadcast"]
    monkeypatch.setattr(ProcessGroup, "broadcast", lambda self, *args: ours(self, *args))
    theirs = vars(ProcessGroup)["broadcast"]
    hook.remove()
    assert vars(ProcessGroup)["broadcast"] is theirs
    dist.broadcast(torch.ones(1), 0)
    dist.all_reduce(torch.ones(1))
    assert calls() == []
    assert {**vars(ProcessGroup), "broadcast": before["broadcast"]} == before


def test_a_backend_is_kept_for_no_longer_than_its_group(
    begin: Callable[[str], Callable[[], list[Call]]],
) -> None:
    begin("gloo")
    group: Any = dist.new_group([0])
    dist.all_reduce(torch.ones(1), group=group)
    backend = weakref.ref(backend_entered(group))
    assert backend() is not None
    dist.destroy_process_group(group)
    del group
    gc.collect()
    assert backend() is None


def test_a_backend_that_a_group_gets_later_is_entered(
    begin: Callable[[str], Callable[[], list[Call]]],
) -> None:
    calls = begin("gloo")
    group: Any = dist.distributed_c10d._get_default_group()
    dist.all_reduce(torch.ones(1))
    first = backend_entered(group)
    later = dist.ProcessGroupGloo(HashStore(), 0, 1, timedelta(seconds=30))
    group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM, later)
    dist.all_reduce(torch.ones(1))
    second = backend_entered(group)
    assert second is later
    assert second is not first
    assert second is group._get_backend(torch.device("cpu"))
    assert [it.kind for it in calls()] == ["all_reduce"] * 2
