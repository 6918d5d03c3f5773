"""torch.distributed on Gloo itself: what goes wrong there must be an error of the bridge, and the gang must go on."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tests.conformance import programs
from tests.conformance.clients.client import Given
from tests.conformance.clients.python import attempt, failed
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import HOPELESS_S, Stage
from tests.conformance.systems.calls import Replay
from tests.conformance.values import Tensor, plain

Steps = Mapping[int, Sequence[tuple[str, Answer]]]
"""By rank, the names of its steps and what it answered."""


def compared(case: Case, steps: Steps) -> Iterator[Moment]:
    """Compares each rank's steps; one whose process died had got as far as the first."""
    for rank, own in steps.items():
        recorded = case.data["per_rank"][rank]
        died = isinstance(recorded, Mapping)
        for place, (name, answer) in enumerate(own):
            if died:
                then: Answer = {"process_exit": recorded["rc"]}
            else:
                assert recorded[place]["step"] == name
                result = recorded[place]["result"]
                then = {"ok": plain(result["ok"])} if "ok" in result else result
            yield Moment(step=name, rank=rank, recorded=[then], answer=answer, method=name)


def afterwards(stage: Stage) -> dict[int, Answer]:
    """A collective of all ranks, which goes as if nothing had happened."""
    world = stage.gang.group("world")
    given: dict[int, Given] = {
        rank: ((stage.put(rank, Tensor.of("float32", [1.0])),), {}) for rank in world.ranks
    }
    return stage.together("all_reduce", given, world)


def then_all(case: Case, stage: Stage, first: Mapping[int, tuple[str, Answer]]) -> Iterator[Moment]:
    """Compares one step of each rank, and a collective after it."""
    after = afterwards(stage)
    yield from compared(
        case,
        {
            rank: [*([first[rank]] if rank in first else []), ("all_reduce_afterwards", after[rank])]
            for rank in case.ranks
        },
    )


def collective(
    case: Case, stage: Stage, method: str, tensors: Sequence[Tensor], **options: Any
) -> Iterator[Moment]:
    """A collective whose members bring these tensors."""
    given: dict[int, Given] = {
        rank: ((stage.put(rank, tensor),), options) for rank, tensor in enumerate(tensors)
    }
    answers = stage.together(method, given, stage.gang.group("world"))
    step = "gather_distributed_data" if method == "gather" else method
    yield from then_all(case, stage, {rank: (step, answer) for rank, answer in answers.items()})


def ones(dtype: str, count: int) -> Tensor:
    """A tensor of ones."""
    return Tensor.of(dtype, [1] * count)


def dtype_mismatch(case: Case, stage: Stage) -> Iterator[Moment]:
    """Members bring different dtypes."""
    tensors = [Tensor.of("float32", [1.5, 2.5]), Tensor.of("int32", [1, 2])]
    yield from collective(case, stage, "all_reduce", tensors)


def shape_mismatch_all_reduce(case: Case, stage: Stage) -> Iterator[Moment]:
    """Members bring different shapes."""
    yield from collective(case, stage, "all_reduce", [ones("float32", 2), ones("float32", 3)])


def shape_mismatch_broadcast(case: Case, stage: Stage) -> Iterator[Moment]:
    """A member expects another shape than the source's."""
    yield from collective(case, stage, "broadcast", [ones("float32", 2), ones("float32", 3)])


ROWS = {"float32": [[0.5, 1.5], [2.5, 3.5]], "bool": [[True, False], [False, True]]}


def gather_rows(case: Case, stage: Stage) -> Iterator[Moment]:
    """Rows of a dtype that the recorded function cannot gather."""
    dtype = "bool" if "bool" in case.name else "float32"
    tensors = [Tensor.of(dtype, ROWS[dtype])] * case.world
    yield from collective(case, stage, "gather", tensors, dim=0, ragged=True)


def gathered_rows(case: Case) -> Any:
    """What the first must have of it."""
    dtype = "bool" if "bool" in case.name else "float32"
    return Tensor.of(dtype, np.concatenate([np.asarray(ROWS[dtype])] * case.world))


def to_itself(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank sends to itself, or receives from itself."""
    sends = case.name == "self_send"
    answers: dict[int, tuple[str, Answer]] = {}
    for rank in case.ranks:
        if sends:
            args: tuple[Any, ...] = (stage.put(rank, ones("uint8", 1)),)
            answers[rank] = "send_self", stage.one(rank, "send", args, {"dst_rank_in_group": rank})
        else:
            answers[rank] = "recv_self", stage.one(rank, "recv", (), {"src_rank_in_group": rank})
    yield from then_all(case, stage, answers)


def isend_wait_twice(case: Case, stage: Stage) -> Iterator[Moment]:
    """A send is waited for twice."""

    def send() -> list[tuple[str, Answer]]:
        work = stage.gang[0].isend(stage.put(0, ones("uint8", 1)), dst_rank_in_group=1)
        return [
            ("wait1", attempt(work.wait)),
            ("is_complete", attempt(work.is_complete)),
            ("wait2", attempt(work.wait)),
        ]

    def receive() -> list[tuple[str, Answer]]:
        answer = stage.one(1, "recv", (), {"src_rank_in_group": 0})
        if "ok" in answer:
            value, source = answer["ok"]
            answer = {"ok": [source, value]}
        return [("recv", answer)]

    own = programs.run({0: send, 1: receive})
    after = afterwards(stage)
    yield from compared(
        case, {rank: [*own[rank], ("all_reduce_afterwards", after[rank])] for rank in case.ranks}
    )


def sync_value_int_vs_float(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source has a float, another member an int."""
    given: dict[int, Given] = {0: ((3.5,), {"src_rank_in_group": 0}), 1: ((7,), {"src_rank_in_group": 0})}
    answers = stage.together("synchronize_value", given, stage.gang.group("world"))
    yield from then_all(case, stage, {rank: ("synchronize_value", it) for rank, it in answers.items()})


def missing_rank(case: Case, stage: Stage) -> Iterator[Moment]:
    """One rank alone calls."""
    given: dict[int, Given] = {0: ((stage.put(0, ones("float32", 1)),), {})}
    answers = stage.together("all_reduce", given, stage.gang.group("world"), HOPELESS_S)
    yield from then_all(case, stage, {0: ("all_reduce", answers[0])})


def rank_killed(case: Case, stage: Stage) -> Iterator[Moment]:
    """A rank's process is killed while the others wait for it; the gang cannot be used afterwards as it is."""
    victim = case.world - 1
    others = range(victim)
    gang = stage.gang
    pending = {
        rank: gang[rank].start("all_reduce", stage.put(rank, ones("float32", 1)), operation_id=stage.name)
        for rank in others
    }
    os.kill(stage.gangs.running(case.world).pids[victim], signal.SIGKILL)
    lost: dict[int, Answer] = {}
    for rank, call in pending.items():
        error = call.exception()
        lost[rank] = {"ok": None} if error is None else failed(error)
    given: dict[int, Given] = {rank: ((stage.put(rank, ones("float32", 1)),), {}) for rank in others}
    after = stage.together("all_reduce", given, gang.group("world"), HOPELESS_S)
    steps = {rank: [("all_reduce", lost[rank]), ("all_reduce_afterwards", after[rank])] for rank in others}
    yield from compared(case, steps)
    # Beyond what was recorded: formed again, it goes on.
    gang.form(timeout=60)
    assert all(answer["ok"].array.tolist() == [case.world] for answer in afterwards(stage).values())


def do_n_f_raises(case: Case, stage: Stage) -> Iterator[Moment]:
    """What a rank does in its turn fails."""
    answers: dict[int, tuple[str, Answer]] = {}

    def take_turns() -> None:
        for turns in stage.gang.do_n_at_a_time(1):
            for turn in turns:
                with turn as rank:
                    answers[rank.rank] = "do_n_at_a_time", {"ok": None}
                    if rank.rank == case.world - 1:
                        raise RuntimeError("boom")

    try:
        take_turns()
    except RuntimeError as error:
        answers[case.world - 1] = "do_n_at_a_time", failed(error)
    yield from then_all(case, stage, answers)


def threads_cross_order(case: Case, stage: Stage) -> Iterator[Moment]:
    """Two calls come to two ranks in opposite order."""
    values = {"a": 1.0, "b": 100.0}
    pending: dict[tuple[int, str], Any] = {}
    for rank in case.ranks:
        for name in values if rank == 0 else reversed(values):
            ref = stage.put(rank, Tensor.of("float32", [values[name]] * 4))
            # Begun, so that the second comes when the first is there.
            stage.gang[rank].submit("all_reduce", ref, operation_id=f"{stage.name}-{name}")
            pending[rank, name] = f"{stage.name}-{name}"
    for rank in case.ranks:
        (recorded,) = case.data["per_rank"][rank]
        for name, (result, data) in recorded["result"].items():
            assert result == {"ok": None}
            ended = functools.partial(stage.gang[rank].await_operation, pending[rank, name])
            answer = stage.fetched(attempt(ended))
            then: Answer = {"ok": Tensor.of("float32", data)}
            yield Moment(step=name, rank=rank, recorded=[then], answer=answer, method="crossed")


REPLAYS: dict[str, dict[str, Replay]] = {
    "hazards": {
        "isend_wait_twice": isend_wait_twice,
        "self_send": to_itself,
        "recv_self": to_itself,
        "dtype_mismatch*": dtype_mismatch,
        "shape_mismatch_all_reduce": shape_mismatch_all_reduce,
        "shape_mismatch_broadcast": shape_mismatch_broadcast,
        "sync_value_int_vs_float": sync_value_int_vs_float,
        "missing_rank": missing_rank,
        "rank_killed": rank_killed,
        "gather_*": gather_rows,
        "do_n_f_raises": do_n_f_raises,
        "threads_cross_order": threads_cross_order,
    },
}
