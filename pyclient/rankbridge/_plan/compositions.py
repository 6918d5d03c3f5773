"""The procedures of what other systems have names for, out of the collectives there are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.dtypes import dtype_of
from rankbridge._plan.gang_core import GangCore, all_values
from rankbridge._plan.groups import Group
from rankbridge._plan.procedures import Procedure, doing_several, members_of
from rankbridge._plan.ref import Ref
from rankbridge._plan.tensor import checked_shape
from rankbridge.errors import InvalidArgumentError, Outcome


def averaging(gang: GangCore[Any], given: Any, options: dict[str, Any]) -> Procedure[Any]:
    """Averages refs, a map of refs, or a map of each member, in place; gives the same form."""
    if isinstance(given, Mapping):
        names = list(given)
        averaged = yield from _averaged(gang, [given[name] for name in names], options)
        return dict(zip(names, averaged, strict=True))
    if not any(isinstance(each, Mapping) for each in given):
        (refs,) = yield from _averaged(gang, [given], options)
        return refs
    names = _same_names(given)
    averaged = yield from _averaged(gang, [[own[name] for own in given] for name in names], options)
    return [
        {name: refs[place] for name, refs in zip(names, averaged, strict=True)} for place in range(len(given))
    ]


def preparing_buffers(
    gang: GangCore[Any], description: Sequence[Mapping[str, Any]], group: str | Group, device: str
) -> Procedure[list[dict[str, Ref]]]:
    """Makes on each member a buffer for each dtype, as large as the largest parameter of it; all of them, or none."""
    largest: dict[str, int] = {}
    for parameter in description:
        dtype, shape = _parameter(parameter)
        largest[dtype] = max(largest.get(dtype, 0), math.prod(shape))
    members = yield from members_of(gang, group)
    calls: list[Call[Ref]] = [
        ops.create(gang._scope(rank), dtype, size, device=device)
        for rank in members
        for dtype, size in largest.items()
    ]
    outcomes: list[Outcome[Ref]] = yield list(calls)
    if any(outcome.error is not None for outcome in outcomes):
        made = [outcome.value for outcome in outcomes if outcome.value is not None]
        yield list(gang._releases(made))
    refs = iter(all_values(outcomes))
    return [{dtype: next(refs) for dtype in largest} for _ in members]


def _averaged(
    gang: GangCore[Any], lists: Sequence[Sequence[Ref]], options: dict[str, Any]
) -> Procedure[list[list[Ref]]]:
    # Names that share a tensor, as tied weights do, have it averaged once.
    by_ids = {_ids(refs): refs for refs in lists}
    if not by_ids:
        return []
    reduces = [("all_reduce", refs, {"op": "avg", "in_place": True}) for refs in by_ids.values()]
    results = yield from doing_several(gang, "coalesce", reduces, options)
    averaged = dict(zip(by_ids, results, strict=True))
    return [averaged[_ids(refs)] for refs in lists]


def _ids(refs: Sequence[object]) -> tuple[object, ...]:
    return tuple(ref.id if isinstance(ref, Ref) else None for ref in refs)


def _same_names(maps: Sequence[Any]) -> list[Any]:
    first = maps[0]
    for place, own in enumerate(maps):
        if not isinstance(own, Mapping) or own.keys() != first.keys():
            missing = "no map" if not isinstance(own, Mapping) else str(sorted(map(repr, own)))
            raise InvalidArgumentError(
                "the members' maps have different names",
                operation="average",
                expected=f"those of rank_in_group 0: {sorted(map(repr, first))}",
                got=f"at rank_in_group {place}: {missing}",
            )
    return list(first)


def _parameter(parameter: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    try:
        _, dtype, shape = parameter["name"], parameter["dtype"], parameter["shape"]
    except (KeyError, TypeError) as error:
        raise InvalidArgumentError(
            "not a description of a parameter",
            operation="prepare_communication_buffer_for_model",
            expected="name, shape and dtype of each parameter",
            got=repr(parameter),
        ) from error
    return dtype_of(dtype).name, checked_shape(shape)
