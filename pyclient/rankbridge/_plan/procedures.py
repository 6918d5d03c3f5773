"""Calls of several ranks that belong together, for the sync and the async front.

A procedure is a generator: it yields the calls of a round, which its front sends all at once, gets their outcomes, and
returns what it is for. It makes no I/O itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import GangCore, all_values, with_id
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group, check_place
from rankbridge._plan.operations import FirstArgument, group_name
from rankbridge.errors import InvalidArgumentError, Outcome, ProtocolError

T = TypeVar("T")

Procedure = Generator[Sequence[Call[Any]], list[Outcome[Any]], T]
"""Yields the calls of each round, gets their outcomes, returns a result."""

Finish = Callable[[list[Any]], list[Any] | None]
"""Makes a result of what every member gave, in group order."""


def calling(gang: GangCore[Any], operation: str, given: Any, options: dict[str, Any]) -> Procedure[list[Any]]:
    """Calls an operation on every member of its group, and gives their results in group order."""
    members = yield from members_for(gang, operation, given, options)
    build = ops.find_operation(operation)
    return all_values((yield member_calls(gang, operation, build, given, members, options)))


def members_of(gang: GangCore[Any], group: str | Group) -> Procedure[tuple[int, ...]]:
    """Gives a group's ranks in group order; asks a rank where only that one knows them."""
    known = gang._known_members(group)
    if known is not None:
        return known
    (outcome,) = yield [ops.describe_group(gang._scope(0), group_name(group))]
    if outcome.error is not None:
        raise outcome.error
    described: Any = outcome.value
    return tuple(described.ranks)


def members_for(
    gang: GangCore[Any], operation: str, given: Any, options: Mapping[str, Any]
) -> Procedure[tuple[int, ...]]:
    """Gives the members that an operation is called on, or nobody where what is given names them."""
    if _names_members(operation, given):
        return ()
    if isinstance(given, Graph) and "group" not in options:
        return given.ranks
    return (yield from members_of(gang, options.get("group", "world")))


def member_calls(
    gang: GangCore[Any],
    operation: str,
    build: Callable[..., Call[T]],
    given: Any,
    members: Sequence[int],
    options: dict[str, Any],
) -> Sequence[Call[T]]:
    """Makes the calls of an operation on all members, under one operation id.

    Args:
        gang: The gang.
        operation: Name of the operation.
        build: Its declaration, or one with the same arguments.
        given: What the gang's method of it is given first. None: nothing.
        members: What `members_for` gave.
        options: The other arguments of the gang's method.

    Raises:
        InvalidArgumentError: What is given is not what the operation takes, or does not fit the members.
    """
    options = dict(options)
    match ops.given(operation):
        case FirstArgument.NOTHING:
            if given is not None:
                raise TypeError(f"{operation} takes options alone")
            return gang._on_members(members, build, **options)
        case FirstArgument.REFS:
            return gang._on_refs(given, build, **options)
        case FirstArgument.SAME:
            return gang._on_members(members, build, given, **options)
        case FirstArgument.NEVER:
            raise InvalidArgumentError(
                "this is an operation of one rank",
                operation=operation,
                expected="a call of each rank on its own: gang[0]",
                got="a call of the gang",
            )
    if ops.given(operation) is FirstArgument.ARGUMENTS and given.alike:
        return gang._on_members_alike(members, build, given, **options)
    calls, options = options.pop("calls", None), with_id(options)
    match ops.given(operation):
        case FirstArgument.ARGUMENTS:
            own = [given.of(options["function"], members, place) for place in range(len(members))]
            each = [build(gang._scope(rank), it, **options) for rank, it in zip(members, own, strict=True)]
        case FirstArgument.EACH:
            pairs = gang._paired(members, ops.checked_list(operation, given), operation)
            each = [build(scope, value, **options) for scope, value in pairs]
        case FirstArgument.SOURCE:
            each = _from_source(gang, operation, build, given, members, options)
        case FirstArgument.CALLS:
            each = _coalesced(gang, build, given, members, options)
        case FirstArgument.PROGRAM:
            each = _described(gang, build, given, members, options)
    return gang._together(calls, each)


def _names_members(operation: str, given: Any) -> bool:
    kind = ops.given(operation)
    if kind is FirstArgument.CALLS:
        return any(ops.given(name) is FirstArgument.REFS for name, _, _ in ops.parts_of(given))
    if kind is FirstArgument.PROGRAM:
        return ops.checked_program(given)._first is not None
    return kind in (FirstArgument.REFS, FirstArgument.NEVER)


def _from_source(
    gang: GangCore[Any],
    operation: str,
    build: Callable[..., Call[T]],
    given: Any,
    members: Sequence[int],
    options: dict[str, Any],
) -> list[Call[T]]:
    source: int = options.get("src_rank_in_group", 0)
    group = group_name(options.get("group", "world"))
    check_place(operation, "src_rank_in_group", source, len(members), group)
    if operation == "scatter_object":
        given = ops.checked_list(operation, given)
        gang._paired(members, given, operation)
    elif operation == "broadcast_tensor_dict":
        given = ops.checked_tensor_dict(operation, given)
    ref = next(ops.refs_in(given), None) if operation == "broadcast_tensor_dict" else None
    if ref is not None and ref.rank != members[source]:
        raise InvalidArgumentError(
            "the refs are not the source's",
            group=group,
            operation=operation,
            expected=f"refs of rank {members[source]}",
            got=f"refs of rank {ref.rank}",
        )
    # What comes of refs belongs to their session, on the other members too.
    scopes = [gang._scope(rank, None if ref is None else ref.session_id) for rank in members]
    return [
        build(scope, given, **options) if place == source else build(scope, **options)
        for place, scope in enumerate(scopes)
    ]


def _coalesced(
    gang: GangCore[Any],
    build: Callable[..., Call[T]],
    given: Any,
    members: Sequence[int],
    options: dict[str, Any],
) -> list[Call[T]]:
    parts = ops.parts_of(given)
    group = options.get("group", "world")
    with_refs = [refs for name, refs, _ in parts if ops.given(name) is FirstArgument.REFS]
    if with_refs:
        members, *_ = [gang._checked_refs(refs, group, "coalesce") for refs in with_refs]
    if any(len(refs) != len(members) for refs in with_refs):
        raise InvalidArgumentError(
            "one ref of each member for each collective",
            group=group_name(group),
            operation="coalesce",
            expected=f"{len(members)} of each",
            got=str([len(refs) for refs in with_refs]),
        )
    shared = [ops.shares(name, own, len(members)) for name, _, own in parts]
    return [
        build(
            gang._scope(rank),
            [
                (name, None if refs is None else refs[place], shares[place])
                for (name, refs, _), shares in zip(parts, shared, strict=True)
            ],
            **options,
        )
        for place, rank in enumerate(members)
    ]


def _described(
    gang: GangCore[Any],
    build: Callable[..., Call[T]],
    given: Any,
    members: Sequence[int],
    options: dict[str, Any],
) -> list[Call[T]]:
    program = ops.checked_program(given)
    if program._first is not None:
        # All refs of a program are of the same members, and on each of one session.
        members = gang._checked_refs(program._first, options.get("group", "world"), "run_program")
    parts = ops.parts_of_members(program, len(members))
    return [build(gang._scope(rank), part, **options) for rank, part in zip(members, parts, strict=True)]


def doing_several(
    gang: GangCore[Any], operation: str, given: Any, options: dict[str, Any]
) -> Procedure[list[Any]]:
    """Coalesces collectives, runs a program or replays a graph: gives for each what the collective's method gives."""
    by_member = yield from calling(gang, operation, given, options)
    return finishing(operation, given)(by_member) or []


def finishing(operation: str, given: Any) -> Finish:
    """Gives what makes, of the members' results, what the gang's method of an operation gives."""
    if ops.given(operation) is FirstArgument.NOTHING:
        return lambda _: None
    if operation == "replay":
        return _by_recorded
    if ops.given(operation) is FirstArgument.PROGRAM:
        return _by_kept
    if ops.given(operation) is not FirstArgument.CALLS:
        return list
    kinds = [finishing(name, refs) for name, refs, _ in ops.parts_of(given)]

    def by_collective(by_member: list[Any]) -> list[Any]:
        return [kind([results[place] for results in by_member]) for place, kind in enumerate(kinds)]

    return by_collective


def anything(results: list[Any]) -> list[Any] | None:
    """Gives the members' results of an operation that is not known, None where no member got anything."""
    return results if any(result is not None for result in results) else None


def _by_recorded(by_member: list[Any]) -> list[Any]:
    if len({len(results) for results in by_member}) > 1:
        raise ProtocolError(
            "the members gave results of different numbers of collectives",
            expected="one of each collective from each member",
            got=str([len(results) for results in by_member]),
        )
    return [anything(list(results)) for results in zip(*by_member, strict=True)]


def _by_kept(by_member: list[Any]) -> list[Any]:
    return [list(results) for results in zip(*by_member, strict=True)]
