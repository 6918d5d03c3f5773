"""The Python client as a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from tests.chaos.controllers.controller import Controller, Flight
from tests.chaos.operations import Values

from rankbridge import Gang, Group, Ref, zeros

_LEASE_S = 30.0


class PythonController(Controller):
    """In this process, blocking."""

    name = "python"

    def __init__(self, gang: Gang) -> None:
        """Drives this gang."""
        self._gang = gang

    def put(self, values: Mapping[int, Values]) -> dict[int, Ref]:
        """See the base class."""
        ranks = Group(name="of these ranks", ranks=tuple(values))
        return dict(zip(values, self._gang.put(list(values.values()), group=ranks), strict=True))

    def fetch(self, ref: Ref) -> Values:
        """See the base class."""
        fetched = self._gang.get(ref)
        assert isinstance(fetched, np.ndarray)
        return fetched

    def create(self, rank: int, number: int) -> list[Ref]:
        """See the base class."""
        return [self._gang[rank].create("uint8", 1, init=zeros()) for _ in range(number)]

    def release(self, refs: Sequence[Ref]) -> None:
        """See the base class."""
        self._gang.release(refs)

    def start(
        self,
        rank: int,
        kind: str,
        ref: Ref | None,
        options: Mapping[str, Any],
        *,
        group: str,
        operation_id: str,
        timeout: float,
    ) -> Flight:
        """See the base class."""
        refs = () if ref is None else (ref,)
        return self._gang[rank].start(
            kind, *refs, group=group, operation_id=operation_id, timeout=timeout, **options
        )

    def call_all(
        self, kind: str, refs: Sequence[Ref] | None, *, group: str, ranks: Sequence[int], timeout: float
    ) -> list[Ref]:
        """See the base class."""
        call = getattr(self._gang, kind)
        members = Group(name=group, ranks=tuple(ranks))
        results: list[Ref] | None = call(*(() if refs is None else (refs,)), group=members, timeout=timeout)
        return results or []

    def await_operation(self, rank: int, operation_id: str, *, timeout: float) -> Ref | None:
        """See the base class."""
        outcome: Ref | None = self._gang[rank].await_operation(operation_id, timeout=timeout)
        return outcome

    def form(self, survivor: int) -> None:
        """See the base class."""
        self._gang.form(via_rank=survivor)

    def rejoin(self) -> None:
        """See the base class."""
        for rank in self._gang:
            rank.open_session(self._gang.session_id, lease=_LEASE_S)

    def session(self) -> AbstractContextManager[object]:
        """See the base class."""
        return self._gang.session()
