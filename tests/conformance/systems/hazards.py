"""torch.distributed on Gloo itself: what goes wrong there must be an error of the bridge, and the gang must go on."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tests.conformance import programs
from tests.conformance.clients.client import CallArguments
from tests.conformance.clients.python import attempt, failed
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import HOPELESS_S, Stage
from tests.conformance.systems import gfn
from tests.conformance.systems.calls import Replay
from tests.conformance.values import Tensor, plain

from rankbridge.compat import olmo

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
    given: dict[int, CallArguments] = {
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
    given: dict[int, CallArguments] = {
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


def other_operations(case: Case, stage: Stage) -> Iterator[Moment]:
    """Members call different operations, at the same time. Of one case the record does not say which."""
    other = "broadcast" if "bcast" in case.name else "all_gather"
    pending = {
        rank: stage.gang[rank].start(method, stage.put(rank, ones("float32", 1)))
        for rank, method in enumerate((other, "all_reduce"))
    }
    answers: dict[int, tuple[str, Answer]] = {}
    for rank, call in pending.items():
        answers[rank] = "op", attempt(call.result)
    yield from then_all(case, stage, answers)


def shape_mismatch_all_reduce(case: Case, stage: Stage) -> Iterator[Moment]:
    """Members bring different shapes."""
    yield from collective(case, stage, "all_reduce", [ones("float32", 2), ones("float32", 3)])


def shape_mismatch_broadcast(case: Case, stage: Stage) -> Iterator[Moment]:
    """A member expects another shape than the source's."""
    yield from collective(case, stage, "broadcast", [ones("float32", 2), ones("float32", 3)])


ROWS = {
    "float32": [[0.5, 1.5], [2.5, 3.5]],
    "bool": [[True, False], [False, True]],
    "uint8": [[row % 256] for row in range(300)],
}


def _rows(case: Case) -> Tensor:
    """What each rank brings: rows of the dtype that the name of the case tells."""
    _, dtype, *_ = case.name.split("_")
    return Tensor.of(dtype, ROWS[dtype])


def gather_rows(case: Case, stage: Stage) -> Iterator[Moment]:
    """Rows of a dtype that the recorded function cannot gather."""
    yield from collective(case, stage, "gather", [_rows(case)] * case.world, dim=0, ragged=True)


def gathered_rows(case: Case) -> Any:
    """What the first must have of it."""
    rows = _rows(case)
    return Tensor(rows.dtype, np.concatenate([rows.array] * case.world))


UNEVEN = (Tensor.of("float32", [1.0]), Tensor.of("float32", [2.0, 3.0]))


def uneven_all_gather(case: Case, stage: Stage) -> Iterator[Moment]:
    """Members bring tensors of different sizes, to be gathered in a list."""
    yield from collective(case, stage, "all_gather", UNEVEN, layout="list", ragged=True)


def bad_dst(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank sends to one that is not there."""
    answers: dict[int, tuple[str, Answer]] = {}
    for rank in case.ranks:
        args = (stage.put(rank, ones("uint8", 1)),)
        answers[rank] = "send", stage.one(rank, "send", args, {"dst_rank_in_group": case.world})
    yield from then_all(case, stage, answers)


def in_step(
    case: Case, stage: Stage, steps: Sequence[Sequence[tuple[str, CallArguments]]]
) -> Iterator[Moment]:
    """Each step is called on both ranks at once: for each rank its name, and what is given."""
    own: dict[int, list[tuple[str, Answer]]] = {rank: [] for rank in case.ranks}
    for each in steps:
        pending = {
            rank: stage.gang[rank].start(name.partition("_")[0], *args, timeout=HOPELESS_S, **options)
            for rank, (name, (args, options)) in enumerate(each)
        }
        for rank, (name, _) in enumerate(each):
            own[rank].append((name, stage.fetched(attempt(pending[rank].result))))
    yield from compared(case, own)


def _to(stage: Stage, rank: int, tag: int = 0) -> CallArguments:
    return (stage.put(rank, sent_by(rank)),), {"dst_rank_in_group": 1 - rank, "tag": tag}


def sent_by(rank: int) -> Tensor:
    """What a rank sends to the other."""
    return Tensor.of("float32", [rank + 1.0])


def _from(rank: int, tag: int = 0) -> CallArguments:
    return (), {"src_rank_in_group": 1 - rank, "tag": tag}


def ring_blocking_send(case: Case, stage: Stage) -> Iterator[Moment]:
    """Both send first, and receive then."""
    sends = [("send", _to(stage, rank)) for rank in case.ranks]
    yield from in_step(case, stage, [sends, [("recv", _from(rank)) for rank in case.ranks]])


def tags_out_of_order(case: Case, stage: Stage) -> Iterator[Moment]:
    """One sends with tags 1 and 0, the other receives with tags 0 and 1."""
    steps = [
        [(f"send_tag{1 - tag}", _to(stage, 0, 1 - tag)), (f"recv_tag{tag}", _from(1, tag))] for tag in (0, 1)
    ]
    yield from in_step(case, stage, steps)


def ring_isend(case: Case, stage: Stage) -> Iterator[Moment]:
    """Both begin to send, receive, and wait for what they have begun."""

    def program(rank: int) -> list[tuple[str, Answer]]:
        args, options = _to(stage, rank)
        work = stage.gang[rank].isend(*args, **options)
        received = stage.one(rank, "recv", *_from(rank))
        if "ok" in received:
            received = {"ok": received["ok"][0]}
        return [("isend", {"ok": None}), ("recv", received), ("wait", attempt(work.wait))]

    yield from compared(case, programs.run({rank: functools.partial(program, rank) for rank in case.ranks}))


def average_gradients_subset(case: Case, stage: Stage) -> Iterator[Moment]:
    """Two of three ranks average their gradients."""
    callers = [rank for rank, steps in enumerate(case.data["per_rank"]) if steps]
    answer = stage.new_groups({"subset": callers})
    assert "ok" in answer, answer
    maps = {
        rank: {name: stage.put(rank, tensor) for name, tensor in gfn.gradients(rank).items()}
        for rank in callers
    }
    given: dict[int, CallArguments] = {rank: ((own,), {}) for rank, own in maps.items()}
    answers = stage.together("average_gradients", given, stage.group("subset"))
    for rank, own in maps.items():
        after = {name: stage.client.get(ref) for name, ref in own.items()}
        answers[rank] = {"ok": after} if "ok" in answers[rank] else answers[rank]
    yield from compared(case, {rank: [("average_gradients", answers[rank])] for rank in callers})


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


def source_of(case: Case) -> float:
    """The value of the source: where a receiver has an int, a float or a bool."""
    return True if "bool" in case.name else 3.5


def sync_value(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source has a float or a bool, another member an int."""
    given: dict[int, CallArguments] = {
        rank: ((value,), {"src_rank_in_group": 0}) for rank, value in enumerate((source_of(case), 7))
    }
    answers = stage.together("synchronize_value", given, stage.gang.group("world"))
    yield from then_all(case, stage, {rank: ("synchronize_value", it) for rank, it in answers.items()})


def missing_rank(case: Case, stage: Stage) -> Iterator[Moment]:
    """One rank alone calls."""
    given: dict[int, CallArguments] = {0: ((stage.put(0, ones("float32", 1)),), {})}
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
    given: dict[int, CallArguments] = {rank: ((stage.put(rank, ones("float32", 1)),), {}) for rank in others}
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
        for turns in olmo.do_n_at_a_time(stage.gang, 1):
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
        "sync_value_*": sync_value,
        "ring_blocking_send": ring_blocking_send,
        "ring_isend": ring_isend,
        "tags_out_of_order": tags_out_of_order,
        "bad_dst": bad_dst,
        "olmo_all_gather_uneven": uneven_all_gather,
        "op_mismatch*": other_operations,
        "average_gradients_subset": average_gradients_subset,
        "missing_rank": missing_rank,
        "rank_killed": rank_killed,
        "gather_*": gather_rows,
        "do_n_f_raises": do_n_f_raises,
        "threads_cross_order": threads_cross_order,
    },
}
