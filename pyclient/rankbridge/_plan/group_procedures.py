"""The procedures of groups made together, and of meshes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import CLOSE_TIMEOUT, GangCore, all_values, groups_known, of_gang
from rankbridge._plan.groups import Group, Place, listed
from rankbridge._plan.mesh import Mesh
from rankbridge._plan.procedures import Procedure
from rankbridge._plan.status import RankStatus
from rankbridge.errors import (
    GenerationError,
    GroupExistsError,
    InvalidArgumentError,
    Outcome,
    RankBridgeError,
    RankOutOfRangeError,
    UnavailableError,
    UnknownGroupError,
    gang_error,
)

GroupLike = Group | tuple[str, Iterable[int]]
"""A group to make: its description, or its name and ranks."""


def describing(gang: GangCore[Any], name: str) -> Procedure[Group]:
    """Asks every rank, and describes one group with what those that answer tell."""
    name = name or "world"
    outcomes: list[Outcome[RankStatus]] = yield _statuses(gang)
    reported = [outcome.value for outcome in outcomes if outcome.value is not None]
    if not reported:
        raise gang_error(outcomes)
    known = groups_known(status.groups for status in reported)
    if name not in known:
        why = f"no rank that answers is a member of a group {name!r}"
        expected = f"one of {', '.join(known)}"
        raise _refused("group", why, expected, repr(name), cls=UnknownGroupError, group=name)
    places = {outcome.rank: place_of(outcome.value) for outcome in outcomes if outcome.value is not None}
    return replace(known[name], places=tuple(places.get(rank) for rank in known[name].ranks))


def making(
    gang: GangCore[Any], groups: Iterable[GroupLike], *, timeout: float | None, generation: int
) -> Procedure[list[Group]]:
    """Makes all of several groups, or none."""
    wanted = [_description(gang, group) for group in groups]
    _check_names([name for name, _ in wanted])
    _check_free(all_values((yield _statuses(gang))), [name for name, _ in wanted])
    return (yield from _make(gang, wanted, timeout, generation))


def making_mesh(
    gang: GangCore[Any], mesh: Mesh, *, local: bool, timeout: float | None, generation: int
) -> Procedure[Mesh]:
    """Makes the groups of a mesh: all of them, or none."""
    check_ranks(gang, f"mesh {mesh.name!r}", mesh.ranks)
    statuses: list[RankStatus] = all_values((yield _statuses(gang)))
    mesh = _placed(mesh, statuses, local=local)
    wanted = [_description(gang, group) for group in mesh.groups()]
    _check_free(statuses, [name for name, _ in wanted])
    made = yield from _make(gang, wanted, timeout, generation)
    return replace(mesh, backend=made[0].backend, generation=made[0].generation)


def finding_mesh(gang: GangCore[Any], mesh: Mesh, *, local: bool) -> Procedure[Mesh]:
    """Checks that the groups of a mesh are there."""
    check_ranks(gang, f"mesh {mesh.name!r}", mesh.ranks)
    statuses: list[RankStatus] = all_values((yield _statuses(gang)))
    mesh = _placed(mesh, statuses, local=local)
    known = groups_known(status.groups for status in statuses)
    wanted = mesh.groups()
    missing = [group.name for group in wanted if group.name not in known]
    if missing:
        why = f"mesh {mesh.name!r}: {len(missing)} of its {len(wanted)} groups are not there"
        expected = _some([group.name for group in wanted])
        raise _refused("mesh", why, expected, f"not {_some(missing)}", cls=UnknownGroupError)
    other = [group for group in wanted if known[group.name].ranks != group.ranks]
    if other:
        raise _refused(
            "mesh",
            f"mesh {mesh.name!r}: {len(other)} of its {len(wanted)} groups have other members",
            expected=f"{other[0].name} of ranks {listed(other[0].ranks)}",
            got=f"ranks {listed(known[other[0].name].ranks)}",
        )
    seen = known[wanted[0].name]
    return replace(mesh, backend=seen.backend, generation=seen.generation)


def ending(
    gang: GangCore[Any], groups: Iterable[str | Group], *, timeout: float | None
) -> Procedure[list[Group]]:
    """Ends those of several groups that exist; goes on after one that cannot be ended, and raises at the end."""
    names = list(dict.fromkeys(ops.group_name(group) for group in groups))
    if "world" in names or "" in names:
        why = "group 'world' ends with its generation"
        raise _refused("destroy_groups", why, "other groups", "'world'", group="world")
    statuses: list[RankStatus] = all_values((yield _statuses(gang)))
    known = groups_known(status.groups for status in statuses)
    ended: list[Group] = []
    failed: list[tuple[str, RankBridgeError]] = []
    for group in [known[name] for name in names if name in known]:
        outcomes: list[Outcome[Group]] = yield _destroys(gang, group.name, group.ranks, timeout)
        if any(outcome.error is not None for outcome in outcomes):
            failed.append((group.name, gang_error(outcomes)))
        else:
            ended.append(of_gang(all_values(outcomes)[0]))
    if failed:
        error = failed[0][1]
        error.add_note(f"Groups that were not ended: {_some([name for name, _ in failed])}.")
        raise error
    return ended


def _make(
    gang: GangCore[Any], wanted: Sequence[tuple[str, tuple[int, ...]]], timeout: float | None, generation: int
) -> Procedure[list[Group]]:
    # One after the other, and each on every rank before the next: they all pass through the lane of "world".
    made: list[Group] = []
    for name, ranks in wanted:
        try:
            outcomes: list[Outcome[Group]] = yield gang._on_members(
                gang._all(), ops.new_group, name, ranks, timeout=timeout, generation=generation
            )
            made.append(of_gang(all_values(outcomes)[0]))
        except GeneratorExit:
            raise
        except BaseException as error:
            half = [(group.name, group.ranks) for group in made]
            if not isinstance(error, RankBridgeError) or error.indefinite:
                half.append((name, ranks))
            try:
                left = yield from _unmake(gang, half)
            except RankBridgeError:
                left = [group for group, _ in half]
            if left:
                error.add_note(
                    f"Groups that were made before this, and may be left: {_some(left)}. destroy_groups ends them, "
                    "in the next generation if this one is over."
                )
            raise
    return made


def _unmake(gang: GangCore[Any], half: Sequence[tuple[str, tuple[int, ...]]]) -> Procedure[list[str]]:
    """Ends groups as far as that can be done, and gives the names of those that may be left."""
    left: list[str] = []
    over = False
    for name, ranks in reversed(half):
        if over:
            left.append(name)
            continue
        outcomes: list[Outcome[Group]] = yield _destroys(gang, name, ranks, min(gang.timeout, CLOSE_TIMEOUT))
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if any(not isinstance(error, UnknownGroupError) for error in errors):
            left.append(name)
        over = any(isinstance(error, GenerationError | UnavailableError) for error in errors)
    return left


def _destroys(
    gang: GangCore[Any], name: str, ranks: Iterable[int], timeout: float | None
) -> Sequence[Call[Group]]:
    return gang._on_members(ranks, ops.destroy_group, name, timeout=timeout)


def _statuses(gang: GangCore[Any]) -> list[Call[Any]]:
    return list(gang._on(gang._all(), ops.status))


def place_of(status: RankStatus) -> Place:
    """Gives where a rank runs, as it tells."""
    return Place(host=status.host, local_rank=status.local_rank, fs_local_rank=status.fs_local_rank)


def _placed(mesh: Mesh, statuses: Sequence[RankStatus], *, local: bool) -> Mesh:
    places = [place_of(status) for status in statuses]
    return Mesh.plan(
        mesh.shape,
        mesh.ranks,
        name=mesh.name,
        flattened=dict(mesh.flattened),
        local=local,
        places=[places[rank] for rank in mesh.ranks],
    )


def _description(gang: GangCore[Any], group: GroupLike) -> tuple[str, tuple[int, ...]]:
    name, ranks = (group.name, group.ranks) if isinstance(group, Group) else (group[0], tuple(group[1]))
    check_ranks(gang, f"group {name!r}", ranks)
    if not 0 < len(name.encode()) <= 128 or not ranks or len(set(ranks)) != len(ranks):
        raise _refused(
            "new_groups",
            "not a group that can be made",
            expected="a name of 1 to 128 bytes, one rank at least, each once",
            got=f"{name!r} of ranks {listed(ranks)}",
            group=name,
        )
    return name, ranks


def check_ranks(gang: GangCore[Any], what: str, ranks: Sequence[int]) -> None:
    """Checks that ranks are in the gang.

    Raises:
        RankOutOfRangeError: Some are not.
    """
    outside = [rank for rank in ranks if not 0 <= rank < len(gang)]
    if outside:
        why, expected = f"{what} names ranks outside the gang", f"0 to {len(gang) - 1}"
        raise _refused("new_groups", why, expected, listed(outside), cls=RankOutOfRangeError)


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        twice = _some([name for name in names if names.count(name) > 1])
        raise _refused("new_groups", "several groups have one name", "each name once", twice)


def _check_free(statuses: Iterable[RankStatus], names: Sequence[str]) -> None:
    known = groups_known(status.groups for status in statuses)
    taken = [name for name in names if name in known]
    if taken:
        why = f"{len(taken)} of {len(names)} groups exist already; none was made"
        got = _some(taken)
        raise _refused("new_groups", why, "names of no group", got, cls=GroupExistsError, group=taken[0])


def _refused(
    operation: str,
    message: str,
    expected: str,
    got: str,
    *,
    cls: type[RankBridgeError] = InvalidArgumentError,
    group: str = "",
) -> RankBridgeError:
    return cls(message, phase="check", group=group, operation=operation, expected=expected, got=got)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(map(repr, names[:8])) + more
