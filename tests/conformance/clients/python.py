"""Replays with the Python client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.conformance.clients.client import CallArguments
from tests.conformance.moments import Answer
from tests.conformance.values import Tensor

from rankbridge import Gang, GangError, Group, GroupCoordinator, Pending, RankBridgeError, Ref
from rankbridge.compat import olmo, torchgfn

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "average_gradients": torchgfn.average_gradients,
    "average_models": torchgfn.average_models,
    "synchronize_flag": olmo.synchronize_flag,
    "synchronize_value": olmo.synchronize_value,
}
"""Names of other systems that are functions of a gang."""

OF_COORDINATORS = ("reduce_scatterv", "combine", "_all_gather_out_place", "_reduce_scatter_out_place")
"""Names of vLLM that only a group coordinator has."""


class PythonClient:
    """The Python client, blocking."""

    name = "python"

    def __init__(self, gang: Gang) -> None:
        """Takes a connection, and does not close it."""
        self.gang = gang

    def put(self, rank: int, tensor: Tensor) -> Ref:
        """See the protocol."""
        return self.gang[rank].put(tensor.for_bridge())

    def get(self, ref: Ref) -> Tensor:
        """See the protocol."""
        return Tensor.of_bridge(self.gang[ref.rank].get(ref, to="tensor"))

    def call(
        self,
        method: str,
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        group: str,
        members: Sequence[int],
    ) -> dict[int, Answer]:
        """See the protocol."""
        if method in FUNCTIONS:
            call: Callable[..., Any] = partial(FUNCTIONS[method], self.gang, group=group)
        elif method in OF_COORDINATORS:
            call = partial(self._coordinated, method, Group(name=group, ranks=tuple(members)))
        else:
            call = partial(getattr(self.gang, method), group=group)
        try:
            result = call(*args, **options)
        except GangError as error:
            return {
                outcome.rank: {"ok": outcome.value} if outcome.error is None else failed(outcome.error)
                for outcome in error.outcomes
            }
        except (RankBridgeError, TypeError) as error:
            return {rank: failed(error) for rank in members}
        values = [None] * len(members) if result is None else result
        return {rank: {"ok": value} for rank, value in zip(members, values, strict=True)}

    def _coordinated(
        self, method: str, group: Group, refs: Sequence[Ref], sizes: Sequence[int] | None = None, **own: Any
    ) -> list[Any]:
        """Calls a method of a group's coordinator, with what it takes and gives in group order."""
        given = {} if sizes is None else {"sizes": by_rank(self.gang, group, sizes)}
        coordinator = GroupCoordinator(self.gang, [group])
        result = getattr(coordinator, method)(by_rank(self.gang, group, refs), **given, **own)
        return [result[rank] for rank in group.ranks]

    def each(
        self, method: str, given: Mapping[int, CallArguments], group: str, timeout: float | None = None
    ) -> dict[int, Answer]:
        """See the protocol."""
        # Of calls that are made by one rank after the other, none knows the others' id.
        identity = {"operation_id": uuid.uuid4().hex} if len(given) > 1 else {}
        begun: dict[int, Pending[Any]] = {}
        answers: dict[int, Answer] = {}
        for rank, (args, options) in given.items():
            try:
                begun[rank] = self.gang[rank].start(
                    method, *args, group=group, timeout=timeout, **identity, **options
                )
            except (RankBridgeError, TypeError) as error:
                answers[rank] = failed(error)
        for rank, pending in begun.items():
            outcome = pending.outcome()
            answers[rank] = {"ok": outcome.value} if outcome.error is None else failed(outcome.error)
        return answers

    def new_groups(self, groups: Sequence[tuple[str, Sequence[int]]]) -> Answer:
        """See the protocol."""
        return attempt(lambda: self.gang.new_groups(groups))

    def destroy_groups(self, names: Sequence[str]) -> None:
        """See the protocol."""
        self.gang.destroy_groups(names)


def by_rank(gang: Gang, group: Group, values: Sequence[Any]) -> list[Any]:
    """A list in group order as one by rank of the gang; one of another length stays as it is."""
    if len(values) != len(group):
        return list(values)
    own = dict(zip(group.ranks, values, strict=True))
    return [own.get(rank) for rank in range(len(gang))]


def attempt(do: Callable[[], Any]) -> Answer:
    """What a call answers that is one for all ranks."""
    try:
        return {"ok": do()}
    except (RankBridgeError, TypeError) as error:
        return failed(error)


def failed(error: Exception) -> Answer:
    """An error as an answer."""
    code = str(error.code) if isinstance(error, RankBridgeError) else type(error).__name__
    indefinite = isinstance(error, RankBridgeError) and error.indefinite
    return {"error": {"code": code, "message": str(error), "indefinite": indefinite}}
