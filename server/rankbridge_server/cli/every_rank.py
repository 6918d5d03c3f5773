"""Asking every rank of a gang at once, each as far as it answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rankbridge import Gang, Rank, RankBridgeError

T = TypeVar("T")


def every_rank(gang: Gang, ask: Callable[[Rank], T]) -> tuple[dict[int, T], dict[int, RankBridgeError]]:
    """The answers by rank, and the errors of the ranks that gave none."""
    from rankbridge import RankBridgeError

    answers: dict[int, T] = {}
    failures: dict[int, RankBridgeError] = {}

    def one(rank: int) -> None:
        try:
            answers[rank] = ask(gang[rank])
        except RankBridgeError as error:
            failures[rank] = error

    with ThreadPoolExecutor(len(gang)) as threads:
        list(threads.map(one, range(len(gang))))
    return {rank: answers[rank] for rank in sorted(answers)}, {
        rank: failures[rank] for rank in sorted(failures)
    }
