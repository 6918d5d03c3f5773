"""Replays with the Python client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.conformance.clients.client import Given
from tests.conformance.moments import Answer
from tests.conformance.values import Tensor

from rankbridge import Gang, GangError, Pending, RankBridgeError, Ref


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
        try:
            result = getattr(self.gang, method)(*args, group=group, **options)
        except GangError as error:
            return {
                outcome.rank: {"ok": outcome.value} if outcome.error is None else failed(outcome.error)
                for outcome in error.outcomes
            }
        except (RankBridgeError, TypeError) as error:
            return {rank: failed(error) for rank in members}
        values = [None] * len(members) if result is None else result
        return {rank: {"ok": value} for rank, value in zip(members, values, strict=True)}

    def each(
        self, method: str, given: Mapping[int, Given], group: str, timeout: float | None = None
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
