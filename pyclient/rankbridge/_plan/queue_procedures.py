"""The procedures of message queues: what all members of a group do together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import CLOSE_TIMEOUT, GangCore, all_values
from rankbridge._plan.groups import Group, check_place
from rankbridge._plan.operations import group_name
from rankbridge._plan.procedures import Procedure, members_of
from rankbridge._plan.queue import MadeQueue, QueueDescription
from rankbridge.errors import (
    InvalidArgumentError,
    Outcome,
    RankBridgeError,
    UnknownQueueError,
    gang_error,
)

T = TypeVar("T")


def making(gang: GangCore[Any], name: str, options: dict[str, Any]) -> Procedure[MadeQueue]:
    """Makes a queue on every member of a group. If one fails, those that have it end it again."""
    members = yield from members_of(gang, options.get("group", "world"))
    group = group_name(options.get("group", "world"))
    calls = gang._on_members(members, ops.new_queue, name, **options)
    half: Sequence[int] = members
    try:
        outcomes: list[Outcome[QueueDescription]] = yield list(calls)
        half = [it.rank for it in outcomes if it.error is None or it.error.indefinite]
        made = all_values(outcomes)
    except GeneratorExit:
        raise
    except BaseException:
        yield list(_ends(gang, half, name, group, min(gang.timeout, CLOSE_TIMEOUT)))
        raise
    return MadeQueue(made[0], tuple(members))


def making_for_one_reader(
    gang: GangCore[Any], name: str, options: dict[str, Any]
) -> Procedure[list[MadeQueue | None]]:
    """Makes a queue from each member to one reader: all of them, or none. By rank in group, none at the reader's.

    The options are those of `making`, but for `reader_rank_in_group`, which says who the reader is.
    """
    options = dict(options)
    reader: int = options.pop("reader_rank_in_group")
    group: str | Group = options.get("group", "world")
    members = yield from members_of(gang, group)
    check_place("new_queue", "reader_rank_in_group", reader, len(members), group_name(group))

    def one(place: int) -> Procedure[MadeQueue]:
        own = {**options, "writer_rank_in_group": place, "reader_ranks_in_group": [reader]}
        if own.get("operation_id"):
            # Each queue is an operation of its own.
            own["operation_id"] = f"{own['operation_id']}/{place}"
        return making(gang, f"{name}/{place}", own)

    made = yield from all_or_none(gang, [one(place) for place in range(len(members)) if place != reader])
    return [*made[:reader], None, *made[reader:]]


def all_or_none(gang: GangCore[Any], procedures: Iterable[Procedure[T]]) -> Procedure[list[T]]:
    """Makes one queue after the other, or one list of queues. If one fails, those that were made end again."""
    made: list[Any] = []
    try:
        for procedure in procedures:
            made.append((yield from procedure))
    except GeneratorExit:
        raise
    except BaseException:
        timeout = min(gang.timeout, CLOSE_TIMEOUT)
        for each in made:
            for queue in each if isinstance(each, list) else [each]:
                if queue is not None:
                    yield list(
                        _ends(gang, queue.ranks, queue.description.name, queue.description.group, timeout)
                    )
        raise
    return made


def finding(gang: GangCore[Any], name: str, group: str | Group) -> Procedure[MadeQueue]:
    """Asks the members of a group for a queue."""
    members = yield from members_of(gang, group)
    outcomes: list[Outcome[list[QueueDescription]]] = yield list(gang._on(members, ops.queues))
    within = group_name(group) or "world"
    for listed in all_values(outcomes):
        for queue in listed:
            if (queue.group, queue.name) == (within, name):
                return MadeQueue(queue, tuple(members))
    raise UnknownQueueError(
        f"no member of group {within!r} knows a queue {name!r}",
        group=within,
        operation="queue",
        got=repr(name),
    )


def dequeuing(
    gang: GangCore[Any], queue: MadeQueue, rank_in_group: int | None, options: dict[str, Any]
) -> Call[Any]:
    """Reads the next value, on the reader named or the only one.

    Raises:
        InvalidArgumentError: None is named, and there are several, or none.
    """
    readers = queue.description.reader_ranks_in_group
    if rank_in_group is None and len(readers) != 1:
        raise InvalidArgumentError(
            f"which reader of queue {queue.description.name!r} is meant?",
            group=queue.description.group,
            operation="dequeue",
            expected=f"rank_in_group, one of {list(readers)}",
            got="None",
        )
    place = readers[0] if rank_in_group is None else rank_in_group
    return ops.dequeue(_scope_at(gang, queue, place, "dequeue"), queue.description, **options)


def shutting_down(
    gang: GangCore[Any], queue: MadeQueue, rank_in_group: int | None, timeout: float | None
) -> Procedure[None]:
    """Ends a queue on one member, or on all that still have it."""
    description = queue.description
    if rank_in_group is not None:
        scope = _scope_at(gang, queue, rank_in_group, "shut_down")
        (outcome,) = yield [ops.shut_down_queue(scope, description, timeout=timeout)]
        if outcome.error is not None:
            raise outcome.error
        return
    outcomes: list[Outcome[Any]] = yield list(
        _ends(gang, queue.ranks, description.name, description.group, timeout)
    )
    errors: list[RankBridgeError] = [it.error for it in outcomes if it.error is not None]
    if not all(isinstance(error, UnknownQueueError) for error in errors):
        raise gang_error(outcomes)


def _ends(
    gang: GangCore[Any], ranks: Iterable[int], name: str, group: str, timeout: float | None
) -> list[Call[QueueDescription]]:
    return gang._on(ranks, ops.shut_down_queue, name, group=group, timeout=timeout)


def _scope_at(gang: GangCore[Any], queue: MadeQueue, place: int, operation: str) -> ops.Scope:
    check_place(operation, "rank_in_group", place, len(queue.ranks), queue.description.group)
    return gang._scope(queue.ranks[place])
