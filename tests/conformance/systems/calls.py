"""What the adapters of several systems need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tests.conformance.clients.client import CallArguments
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import Stage
from tests.conformance.values import plain

from rankbridge import Group

Replay: TypeAlias = Callable[[Case, Stage], Iterator[Moment]]
"""Replays a case and gives what is to be compared."""

NOT_CALLED = ("idle", "not called", "MPI root is a GROUP rank", "src=0 is not in this group")
"""How the records begin that say of a rank that it was not called."""


def recorded_of(case: Case, rank: int) -> Answer:
    """What a rank answered, with values as Python values."""
    answer = case.data["per_rank"][rank]
    return {"ok": plain(answer["ok"])} if "ok" in answer else answer


def was_called(case: Case, rank: int) -> bool:
    """Whether a rank was called at all."""
    answer = case.data["per_rank"][rank]
    return not (isinstance(answer.get("ok"), str) and answer["ok"].startswith(NOT_CALLED))


def one_each(case: Case, answers: Mapping[int, Answer], method: str = "") -> Iterator[Moment]:
    """Compares one answer of each rank that was called; the others were recorded as not called."""
    for rank in case.ranks:
        if not was_called(case, rank):
            assert rank not in answers
            continue
        yield Moment(
            step="0",
            rank=rank,
            recorded=[recorded_of(case, rank)],
            answer=answers[rank],
            method=method or case.name,
            inputs=case.inputs_of(rank),
        )


def each_group(
    case: Case,
    stage: Stage,
    groups: Sequence[Group],
    method: str,
    give: Callable[[Group, int], CallArguments],
) -> dict[int, Answer]:
    """Calls a method of each group whose ranks were called, and gives all answers."""
    answers: dict[int, Answer] = {}
    for group in groups:
        called = [rank for rank in group.ranks if was_called(case, rank)]
        if called:
            answers |= stage.together(method, {rank: give(group, rank) for rank in called}, group)
    return answers


def no_arguments(_: Group, __: int) -> CallArguments:
    """Gives nothing."""
    return (), {}


def in_place(answers: Mapping[int, Answer], tensors: Mapping[int, Any]) -> dict[int, Answer]:
    """Answers as of systems that return nothing and change their tensor, which is in `tensors` as it is afterwards."""
    return {
        rank: {"ok": {"returned": None, "tensor": tensors[rank]}} if "ok" in answer else answer
        for rank, answer in answers.items()
    }
