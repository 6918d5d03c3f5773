"""Both fronts offer the same, and both offer every operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import rankbridge
from rankbridge._plan.operations import OPERATIONS
from rankbridge.compat import olmo, torchgfn
from rankbridge.compat.aio import olmo as aio_olmo, torchgfn as aio_torchgfn


def _methods(cls: type) -> dict[str, Callable[..., Any]]:
    return {name: member for name, member in inspect.getmembers(cls, callable) if not name.startswith("_")}


def _parameters(method: Callable[..., Any]) -> list[tuple[str, Any, Any, str]]:
    parameters = inspect.signature(method).parameters.values()
    # A gang, where one is taken, is of the front's own.
    annotations = [str(each.annotation).removeprefix("Async") for each in parameters]
    return [
        (each.name, each.kind, each.default, annotation)
        for each, annotation in zip(parameters, annotations, strict=True)
    ]


PAIRS = [
    (rankbridge.Gang, rankbridge.AsyncGang),
    (rankbridge.Rank, rankbridge.AsyncRank),
    (rankbridge.Pending, rankbridge.AsyncPending),
    (rankbridge.Submitted, rankbridge.AsyncSubmitted),
    (rankbridge.GangStream, rankbridge.AsyncGangStream),
    (rankbridge.Streamed, rankbridge.AsyncStreamed),
    (rankbridge.Work, rankbridge.AsyncWork),
    (rankbridge.Queue, rankbridge.AsyncQueue),
    (rankbridge.Events, rankbridge.AsyncEvents),
    (rankbridge.RecordWatch, rankbridge.AsyncRecordWatch),
    (rankbridge.GroupCoordinator, rankbridge.AsyncGroupCoordinator),
]


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_both_fronts_have_the_same_methods_with_the_same_arguments(
    blocking: type, asynchronous: type
) -> None:
    ours, theirs = _methods(blocking), _methods(asynchronous)
    assert ours.keys() == theirs.keys()
    assert ours
    for name, method in ours.items():
        assert _parameters(method) == _parameters(theirs[name]), name


@pytest.mark.parametrize(("blocking", "asynchronous"), [(olmo, aio_olmo), (torchgfn, aio_torchgfn)])
def test_both_fronts_have_the_same_names_of_other_systems(
    blocking: ModuleType, asynchronous: ModuleType
) -> None:
    assert blocking.__all__ == asynchronous.__all__
    for name in blocking.__all__:
        theirs = getattr(asynchronous, name)
        assert _parameters(getattr(blocking, name)) == _parameters(theirs)
        assert inspect.iscoroutinefunction(theirs) or name == "do_n_at_a_time"


def test_connect_takes_the_same_in_both_fronts() -> None:
    assert _parameters(rankbridge.connect) == _parameters(rankbridge.aconnect)


@pytest.mark.parametrize(
    "cls",
    [
        rankbridge.AsyncGang,
        rankbridge.AsyncRank,
        rankbridge.AsyncSubmitted,
        rankbridge.AsyncGangStream,
        rankbridge.AsyncWork,
        rankbridge.AsyncQueue,
        rankbridge.AsyncEvents,
        rankbridge.AsyncGroupCoordinator,
    ],
    ids=lambda cls: cls.__name__,
)
def test_everything_that_waits_is_a_coroutine_in_the_asyncio_front(cls: type) -> None:
    at_once = {name for name, method in _methods(cls).items() if not inspect.iscoroutinefunction(method)}
    assert at_once <= {"session", "start", "stream", "graph_capture", "member", "function"}


def test_every_operation_is_a_method_of_a_rank() -> None:
    only_of_a_gang = {"form"}
    not_declared_alike = {"describe_group", "list_refs", "close_session", "call_function"}
    by_another_name = {"describe_group": "groups", "run_program": "run", "call_function": "call"}
    for name, operation in OPERATIONS.items():
        if name in only_of_a_gang:
            continue
        method = getattr(rankbridge.Rank, by_another_name.get(name, name))
        declared = [each for each in _parameters(operation) if each[0] != "scope"]
        own = _parameters(method)[1:]
        if name not in not_declared_alike:
            assert [each[:3] for each in declared] == [each[:3] for each in own], name


def test_the_public_names_are_there() -> None:
    public = {
        name: it
        for name, it in vars(rankbridge).items()
        if not name.startswith("_") and not isinstance(it, ModuleType)
    }
    for name, it in public.items():
        if isinstance(it, type) and (blocking := public.get(name.removeprefix("Async"))) is not it:
            assert blocking is not None, name
    assert {"connect", "aconnect", "Gang", "AsyncGang", "RankBridgeError", "zeros"} <= set(public)
