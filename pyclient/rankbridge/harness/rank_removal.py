"""A scenario with a rank less: every rank that its words name is found by the vocabulary."""

from __future__ import annotations

from typing import Any

from rankbridge.harness.kinds import ByRank, Either, Kind, Many, Named, Record, Whole
from rankbridge.harness.problems import Findings
from rankbridge.harness.vocabulary import MOST_RANKS, SCENARIO

_GONE = object()


def without_rank(data: dict[str, Any], rank: int) -> dict[str, Any]:
    """Gives a scenario whose gang has one rank less; those above it count one less. What named it alone is gone."""
    made: dict[str, Any] = _walked(SCENARIO, data, rank)
    made["gang"]["size"] -= 1
    return made


def _walked(kind: Kind, value: Any, gone: int) -> Any:
    match kind, value:
        case Whole(low=0, high=high), int() if high == MOST_RANKS - 1:
            return _GONE if value == gone else value - (value > gone)
        case Many(), list():
            items = [_walked(kind.of, it, gone) for it in value]
            return [it for it in items if it is not _GONE]
        case Named(), dict():
            return _kept({key: _walked(kind.of, it, gone) for key, it in value.items()})
        case ByRank(), dict():
            others = {int(key): it for key, it in value.items() if int(key) != gone}
            return _kept({str(key - (key > gone)): _walked(kind.of, it, gone) for key, it in others.items()})
        case Record(), dict():
            words = kind.known(value)
            made = {
                key: _walked(words[key].kind, it, gone) if key in words else it for key, it in value.items()
            }
            # A call of a rank that is gone is gone.
            return _GONE if made.get("rank") is _GONE else _kept(made)
        case Either(), _:
            return _walked(_fitting(kind, value), value, gone)
    return value


def _kept(table: dict[str, Any]) -> dict[str, Any]:
    return {key: it for key, it in table.items() if it is not _GONE}


def _fitting(kind: Either, value: Any) -> Kind:
    """Gives the kind that takes a value."""
    for it in kind.kinds:
        found = Findings()
        it.check(value, (), found, True)
        if not found.problems:
            return it
    return kind.kinds[0]
