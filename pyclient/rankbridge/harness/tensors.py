"""Tensors that a scenario names: on every rank a value, and what its elements were when last seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rankbridge import Gang, Ref, Tensor
from rankbridge.harness import fills

FETCH_TIMEOUT_S = 20.0


class Tensors:
    """Names, and what they stand for on every rank.

    Args:
        gang: Where they are; in its current session.
    """

    def __init__(self, gang: Gang) -> None:
        """Knows none."""
        self._gang = gang
        self._values: dict[str, dict[int, Any]] = {}
        self._seen: dict[tuple[str, int], Any] = {}

    def make(self, name: str, described: Mapping[str, Any], ranks: Iterable[int], seed: int) -> None:
        """Makes a tensor on some ranks."""
        for rank in ranks:
            self.put(name, rank, fills.made(described, rank, seed))

    def put(self, name: str, rank: int, tensor: Tensor) -> None:
        """Brings a tensor to a rank."""
        self.name(name, rank, self._gang[rank].put(tensor, timeout=FETCH_TIMEOUT_S))
        self._seen[name, rank] = tensor

    def name(self, name: str, rank: int, value: Any) -> None:
        """Gives a name to what a rank was given: a ref, several, or a value."""
        self._values.setdefault(name, {})[rank] = value
        self._seen.pop((name, rank), None)

    def ranks(self, name: str) -> list[int]:
        """Gives the ranks that have it."""
        return sorted(self._values.get(name, ()))

    def ref(self, name: str, rank: int) -> Ref:
        """Gives the ref of a rank's tensor.

        Raises:
            LookupError: The rank has none.
        """
        value = self._values.get(name, {}).get(rank)
        if not isinstance(value, Ref):
            raise LookupError(f"rank {rank} has no tensor {name!r}")
        return value

    def seen(self, name: str, rank: int) -> Any:
        """Gives the elements as they were when last seen; sees them now if they never were."""
        if (name, rank) not in self._seen:
            self._seen[name, rank] = self.now(name, rank)
        return self._seen[name, rank]

    def now(self, name: str, rank: int) -> Any:
        """Fetches the elements."""
        return self.fetched(self._values[name][rank])

    def forget(self, name: str, rank: int) -> None:
        """Forgets what was seen: it may have changed."""
        self._seen.pop((name, rank), None)

    def lost(self, rank: int) -> None:
        """Forgets what was on a rank whose process is gone."""
        for values in self._values.values():
            values.pop(rank, None)

    def fetched(self, value: Any) -> Any:
        """Gives what a rank gave, with tensors in the place of refs."""
        match value:
            case Ref():
                return self._gang.get(value, to="tensor", timeout=FETCH_TIMEOUT_S)
            case list():
                return [self.fetched(it) for it in value]
            case tuple():
                return tuple(self.fetched(it) for it in value)
            case dict():
                return {key: self.fetched(it) for key, it in value.items()}
        return value
