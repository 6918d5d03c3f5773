"""Classes that look like vLLM's GroupCoordinator, in a process with a default group of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from rankbridge_server.core.caller import Caller
from rankbridge_server.core.record.record import Record
from rankbridge_server.core.record.script_calls import ScriptCalls
from rankbridge_server.doctor.evidence import Call
from rankbridge_server.job import recorded_calls
from rankbridge_server.job.outside import rings
from rankbridge_server.job.watch import hook
from rankbridge_server.job.watch.ring import Ring


def a_class() -> type[Any]:
    """One of its own for each test: it is changed."""

    class GroupCoordinator:
        def __init__(self, name: str, ranks: Sequence[int] | None, rank_in_group: int = 0) -> None:
            self.unique_name, self.ranks, self.rank_in_group = name, ranks, rank_in_group
            self.device_group = dist.new_group([0])

        def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
            return self._all_reduce_out_place(input_)

        def _all_reduce_out_place(self, input_: torch.Tensor) -> torch.Tensor:
            return 2 * input_

        def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
            return torch.cat([input_] * 2, dim)

        def broadcast(self, input_: torch.Tensor, src: int = 0) -> torch.Tensor:
            dist.broadcast(input_, 0)
            return input_

        def barrier(self) -> None:
            raise RuntimeError("the members do not come")

        def send(self, tensor: torch.Tensor, dst: int | None = None) -> None:
            """To the next."""

        def recv_object(self, src: int) -> None:
            """From a rank."""

    return GroupCoordinator


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Any]]:
    """The class, in a module that is there when a coordinator is made."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    hook.install(lambda rank, size: Ring.create(tmp_path, rank, size))
    module: Any = ModuleType("some.distributed.parallel_state")
    module.GroupCoordinator = a_class()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module.GroupCoordinator
    hook.remove()
    dist.destroy_process_group()


def calls(folder: Path) -> list[Call]:
    """What was recorded; nothing if no call was."""
    return [it for record in rings.in_directory(folder) for it in record.calls]


def test_a_method_that_calls_another_is_one_call(kind: type[Any], tmp_path: Path) -> None:
    tp = kind("tp:0", [3, 5])
    assert tp.all_reduce(torch.ones(2)).tolist() == [2, 2]
    tp.broadcast(torch.ones(4), src=1)
    first, outer, inner = calls(tmp_path)
    assert (first.kind, first.group, first.number, first.shapes) == ("all_reduce", "tp:0@3", 1, ((2,),))
    assert (outer.kind, outer.group, outer.number, outer.root) == ("broadcast", "tp:0@3", 2, 5)
    assert (inner.kind, inner.number, inner.root) == ("broadcast", 1, 0)
    assert inner.group != outer.group
    assert (first.done, outer.done) == (True, True)


@pytest.fixture
def record() -> Iterator[Record]:
    """That of a rank, which has what this process calls."""
    made = Record(64)
    end = recorded_calls.begin(ScriptCalls(made, lambda: (3, 1)))
    yield made
    end()


def test_the_record_of_a_rank_has_them_too(kind: type[Any], record: Record, tmp_path: Path) -> None:
    tp = kind("tp:0", [3, 5])
    tp.all_reduce(torch.ones(2))
    tp.broadcast(torch.ones(4), src=1)
    tp.send(torch.ones(2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="do not come"):
        tp.barrier()
    found = [it for it in record.entries() if it.place.group == "tp:0"]
    assert [(it.contract, it.number, it.place.operation_id) for it in found] == [
        ("all_reduce dtype=float32 shape=[2]", 1, "tp:0@3 1"),
        ("broadcast dtype=float32 shape=[4] src_rank_in_group=1", 2, "tp:0@3 2"),
        ("send dtype=int64 shape=[2] peer=5 tag=0", 1, ""),
        ("barrier", 3, "tp:0@3 3"),
    ]
    assert [it.message for it in found] == ["", "", "", "RuntimeError: the members do not come"]
    assert {it.caller for it in found} == {Caller.SCRIPT}
    assert len(calls(tmp_path)) == 5


def test_what_is_under_way_is_in_the_record_of_a_rank(kind: type[Any]) -> None:
    script_calls = ScriptCalls(Record(64), lambda: (3, 1))
    end = recorded_calls.begin(script_calls)
    seen: list[tuple[str, str]] = []

    def look(self: Any, input_: torch.Tensor) -> torch.Tensor:
        seen.extend((it.place.operation, it.place.group) for it in script_calls.under_way())
        return input_

    kind._all_reduce_out_place = look
    kind("tp:0", [3, 5]).all_reduce(torch.ones(2))
    end()
    kind("tp:0", [3, 5]).all_gather(torch.ones(2))
    assert seen == [("all_reduce", "tp:0")]
    assert script_calls.under_way() == []
    assert script_calls.coordinators["tp:0"].ranks == [3, 5]


def test_calls_of_a_coordinator_of_the_same_name_before_are_told_apart(kind: type[Any]) -> None:
    made = Record(64)
    script_calls = ScriptCalls(made, lambda: (3, 1))
    end = recorded_calls.begin(script_calls)
    first, second = kind("tp:0", [3, 5]), kind("tp:0", [3, 4])
    for tp in (first, first, second):
        tp.all_reduce(torch.ones(2))
    end()
    group = script_calls.coordinators["tp:0"]
    assert group.ranks == [3, 4]
    assert [(it.number, it.called >= group.since) for it in made.entries()] == [
        (1, False), (2, False), (1, True),
    ]  # fmt: skip


def test_a_peer_that_is_not_said_is_the_next(kind: type[Any], tmp_path: Path) -> None:
    pp = kind("pp:0", (1, 4, 7), rank_in_group=2)
    pp.send(torch.ones(2))
    pp.send(torch.ones(2), 1)
    pp.send(torch.ones(2), dst=1)
    pp.recv_object(src=0)
    assert [(it.kind, it.peer, it.number, it.tag) for it in calls(tmp_path)] == [
        ("send", 1, 1, 0), ("send", 4, 1, 0), ("send", 4, 2, 0), ("recv_object", 1, 1, 0),
    ]  # fmt: skip


def test_a_call_that_raises_has_returned(kind: type[Any], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="do not come"):
        kind("tp:0", [0, 1]).barrier()
    (call,) = calls(tmp_path)
    assert call.returned_at is not None
    assert call.done is None
    (record,) = rings.in_directory(tmp_path)
    assert record.waiting_since is None


@pytest.mark.parametrize(
    ("name", "ranks"), [("tp:0", [0]), ("tp:0", None), (7, [0, 1]), ("tp:0", ["a", "b"])]
)
def test_what_does_not_look_like_a_coordinator_of_several_ranks_is_not_recorded(
    kind: type[Any], tmp_path: Path, name: Any, ranks: Any
) -> None:
    assert kind(name, ranks).all_reduce(torch.ones(1)).tolist() == [2]
    assert calls(tmp_path) == []


def test_what_dynamo_compiles_is_the_bare_method(kind: type[Any], tmp_path: Path) -> None:
    tp = kind("tp:0", [0, 1])

    def step(it: torch.Tensor) -> torch.Tensor:
        doubled: torch.Tensor = tp.all_reduce(it + 1)
        return doubled

    compiled: Any = torch.compile(step, fullgraph=True, backend="eager")
    assert compiled(torch.ones(1)).tolist() == [4]
    assert calls(tmp_path) == []


def test_the_class_is_as_it_was_once_the_hook_is_removed(kind: type[Any]) -> None:
    make = dist.distributed_c10d._new_group_with_tag
    bare = vars(kind)["all_reduce"]
    kind("tp:0", [0, 1])
    assert vars(kind)["all_reduce"] is not bare
    hook.remove()
    assert vars(kind)["all_reduce"] is bare
    assert dist.distributed_c10d._new_group_with_tag is not make
