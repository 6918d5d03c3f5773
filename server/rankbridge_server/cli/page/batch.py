"""Operations of ranks as columns of numbers, with their texts beside them: what the page draws."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.printable import printable

if TYPE_CHECKING:
    from rankbridge import RecordedOperation

MOST_AT_ONCE = 10_000
"""Operations in a batch that has those of a quarter of a second."""
_MOST_TEXT = 500
_ABSENT = -1


class Slice(NamedTuple):
    """An operation on a rank. `number`: the same on all its ranks. `called`: by the clock of the page's host."""

    rank: int
    number: int
    called: float
    operation: RecordedOperation


def thinned(slices: list[Slice], most: int = MOST_AT_ONCE) -> tuple[list[Slice], int]:
    """At most so many, in their order, those that failed and the longest ones first; and how many are left out."""
    if len(slices) <= most:
        return slices, 0
    kept = sorted(range(len(slices)), key=lambda at: _weight(slices[at]), reverse=True)[:most]
    return [slices[at] for at in sorted(kept)], len(slices) - most


def columns(slices: Iterable[Slice], base: float) -> dict[str, Any]:
    """The slices by columns. Times in microseconds: `called` after `base`, the others after `called`; -1: not yet."""
    texts: dict[str, int] = {}

    def at(text: str) -> int:
        return texts.setdefault(text, len(texts))

    rows = [
        (
            it.rank,
            it.number,
            at(it.operation.group),
            at(it.operation.function or it.operation.operation),
            at(it.operation.contract),
            at(it.operation.site),
            at(_outcome(it.operation)),
            round((it.called - base) * 1e6),
            _after(it.operation.announced),
            _after(it.operation.entered),
            _after(it.operation.done),
        )
        for it in slices
    ]
    found: dict[str, Any] = dict(zip(_NAMES, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    return {"count": len(rows), "base": base, "texts": list(map(shown, texts)), **found}


_NAMES = (
    *("rank", "number", "group", "what", "contract", "site", "outcome"),
    *("called", "announced", "entered", "done"),
)


@lru_cache(maxsize=8192)
def shown(text: str) -> str:
    """A text from outside, made printable for the page."""
    return printable(text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "...")


def _outcome(it: RecordedOperation) -> str:
    """How it failed; empty: it did not."""
    return f"{it.code}: {it.message}" if it.code else ""


def _after(seconds: float | None) -> int:
    return _ABSENT if seconds is None else round(seconds * 1e6)


def _weight(it: Slice) -> tuple[bool, float]:
    return bool(it.operation.code), it.operation.done or 0.0
