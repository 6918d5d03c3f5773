"""The hook at torch's dispatcher, in a process with a default group of its own."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, Work

from rankbridge.harness.usage import until
from rankbridge_server.job.contracts import contract_of
from rankbridge_server.job.watch import hook
from rankbridge_server.job.watch.next_call import NextCall
from rankbridge_server.job.watch.operators import OPERATORS
from rankbridge_server.job.watch.ring import Ring

SECONDS = 30.0

GATHER_SINGLE: Any = vars(dist).get("gather_single")


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    hook.remove()
    dist.destroy_process_group()


def test_what_is_hooked_is_as_it_was_once_the_hook_is_removed(group: None) -> None:
    seen: list[str] = []
    bare = vars(Work)["wait"]
    hook.call_before(lambda call: seen.append(call.kind))
    assert vars(Work)["wait"] is not bare
    dist.all_reduce(torch.ones(1))
    hook.remove()
    assert vars(Work)["wait"] is bare
    dist.all_reduce(torch.ones(1))
    assert seen == ["all_reduce"]


def test_a_group_has_the_name_that_its_script_gave_it_or_that_of_torch(group: None) -> None:
    seen: list[str] = []
    hook.call_before(lambda call: seen.append(call.group))
    plain, named = dist.new_group([0]), dist.new_group([0], group_desc="dp")
    for it in (None, plain, named):
        dist.all_reduce(torch.ones(1), group=it)
    assert seen == ["world", f"group_{plain.group_name}", "dp"]


NUMBERS: list[tuple[Any, int]] = [
    (dist.ReduceOp.SUM, 0),
    (dist.ReduceOp.PRODUCT, 2),
    (dist.ReduceOp.MIN, 3),
    (dist.ReduceOp.MAX, 4),
    (dist.ReduceOp.BOR, 6),
    (dist.ReduceOp(dist.ReduceOp.MAX), 4),
]


def test_group_and_op_are_those_of_the_call_whoever_makes_it(group: None) -> None:
    seen: list[tuple[str, str, int]] = []
    hook.call_before(lambda call: seen.append((call.kind, call.group, call.op)))
    groups: list[tuple[str, Any]] = [("world", None), ("dp", dist.new_group([0], group_desc="dp"))]
    for name, it in groups:
        raw = it or dist.distributed_c10d._get_default_group()
        for op, number in NUMBERS:
            tensor = torch.ones(1, dtype=torch.int64)
            dist.all_reduce(tensor, op, group=it)
            dist.reduce(tensor, 0, op, group=it)
            dist.reduce_scatter(torch.ones_like(tensor), [tensor], op, group=it)
            raw.allreduce([tensor], op).wait()
            kinds = ("all_reduce", "reduce", "reduce_scatter", "all_reduce")
            assert seen == [(kind, name, number) for kind in kinds]
            seen.clear()


def test_every_collective_of_this_torch_is_seen() -> None:
    operators = {it for it in torch._C._dispatch_get_all_op_names() if it.startswith("c10d::")}
    # No rank waits for another in that.
    assert operators - {"c10d::check_for_nan"} <= {f"c10d::{it}" for it in OPERATORS}


@pytest.mark.skipif(GATHER_SINGLE is None, reason="torch 2.14 is the first to have it")
def test_a_gather_into_one_tensor_is_seen(group: None) -> None:
    seen: list[NextCall] = []
    hook.call_before(seen.append)
    with pytest.raises(RuntimeError, match="gloo does not support gather_single"):
        GATHER_SINGLE(torch.ones(2), torch.empty(2))
    assert [contract_of(it) for it in seen] == [
        "gather_into_tensor dtype=float32 shape=[2] dst_rank_in_group=0"
    ]


def test_a_wait_that_somebody_else_has_wrapped_stays(group: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hook.call_before(lambda call: None)
    ours = vars(Work)["wait"]
    monkeypatch.setattr(Work, "wait", lambda self: ours(self))
    theirs = vars(Work)["wait"]
    hook.remove()
    assert vars(Work)["wait"] is theirs
    dist.barrier()


def test_a_call_is_over_when_its_wait_is(group: None) -> None:
    over: list[tuple[str, BaseException | None]] = []

    def follow(call: NextCall) -> None:
        call.then(lambda error: over.append((call.kind, error)))

    end = hook.call_before(follow)
    work = dist.all_reduce(torch.ones(1), async_op=True)
    assert work is not None
    dist.barrier()
    assert over == [("barrier", None)]
    work.wait()
    work.wait()
    assert over == [("barrier", None), ("all_reduce", None)]
    dropped = dist.all_reduce(torch.ones(1), async_op=True)
    del dropped
    dist.monitored_barrier()
    assert over[2:] == [("monitored_barrier", None)]
    recorder = hook._recorder
    assert recorder is not None
    assert len(recorder.followed) == 0
    end()
    dist.barrier()
    assert len(over) == 3


@pytest.fixture
def without_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("asks", ["the record", "before", "what follows", "admit"])
def test_a_call_keeps_no_tensor_until_garbage_is_collected(
    group: None, without_collection: None, tmp_path: Path, asks: str
) -> None:
    if asks == "before":
        hook.call_before(lambda call: None)
    elif asks == "what follows":
        hook.call_before(lambda call: call.then(lambda error: call.forgotten()))
    else:
        admit = (lambda call, enter: enter(None)) if asks == "admit" else None
        hook.install(lambda rank, size: Ring.create(tmp_path, rank, size), admit)
    kept = []
    for call in (dist.all_reduce, partial(dist.broadcast, src=0), partial(dist.all_reduce, async_op=True)):
        tensor = torch.ones(1)
        work = call(tensor)
        if work is not None:
            work.wait()
        kept.append(weakref.ref(tensor))
        del tensor, work
    # Gloo's thread lets go of a call's tensors after it has said that the call is done.
    assert until(lambda: [it() for it in kept] == [None, None, None], SECONDS)


def test_a_call_that_raises_is_over(group: None) -> None:
    errors: list[BaseException | None] = []
    hook.call_before(lambda call: call.then(errors.append))
    with pytest.raises((RuntimeError, ValueError), match="root"):
        dist.distributed_c10d._get_default_group().broadcast([torch.ones(1)], _root(7))
    assert [type(it) for it in errors] == [RuntimeError]


def _root(rank: int) -> dist.BroadcastOptions:
    options = dist.BroadcastOptions()
    options.rootRank = rank
    return options
