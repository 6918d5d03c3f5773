"""Compares an answer with a recorded one; every difference has a path, so that the table can explain each by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.conformance.errors import fits
from tests.conformance.moments import Answer
from tests.conformance.values import Tensor


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()
"""Stands for what is not there."""


@dataclass(frozen=True)
class Difference:
    """What differs, and where: `path` is empty for the whole answer, else it begins "ok", "args_after" or "error"."""

    path: str
    recorded: Any
    got: Any

    def __str__(self) -> str:
        """Says both sides."""
        where = f"{self.path}: " if self.path else ""
        return f"{where}recorded {_shown(self.recorded)}, got {_shown(self.got)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def differences(recorded: Answer, answer: Answer) -> list[Difference]:
    """Gives all differences; none: the answer is what was recorded."""
    if "error" in recorded and "error" in answer:
        if fits(recorded["error"], answer["error"]["code"]):
            return []
        return [Difference("error", recorded["error"], answer["error"])]
    if "ok" not in recorded or "ok" not in answer:
        return [Difference("", recorded, answer)]
    found = list(between(recorded["ok"], answer["ok"], "ok"))
    found += between(recorded.get("args_after", {}), answer.get("args_after", {}), "args_after")
    return found


def between(recorded: Any, got: Any, path: str) -> Iterator[Difference]:
    """Gives the differences of two values."""
    if isinstance(recorded, Tensor) and isinstance(got, Tensor):
        if not recorded.close_to(got):
            yield Difference(path, recorded, got)
    elif isinstance(recorded, Mapping) and isinstance(got, Mapping):
        for key in [*recorded, *(key for key in got if key not in recorded)]:
            yield from between(recorded.get(key, ABSENT), got.get(key, ABSENT), f"{path}.{key}")
    elif isinstance(recorded, list | tuple) and type(recorded) is type(got) and len(recorded) == len(got):
        for place, (one, other) in enumerate(zip(recorded, got, strict=True)):
            yield from between(one, other, f"{path}.{place}")
    elif not _equal(recorded, got):
        yield Difference(path, recorded, got)


def _equal(recorded: Any, got: Any) -> bool:
    if recorded is ABSENT or got is ABSENT:
        return recorded is got
    if isinstance(recorded, float) and isinstance(got, float):
        # The order of a sum is the backend's.
        return math.isclose(recorded, got, rel_tol=1e-15) or (math.isnan(recorded) and math.isnan(got))
    if type(recorded) is not type(got):
        return False
    return not isinstance(recorded, Tensor) and bool(recorded == got)
