"""A scenario that fails, made smaller for as long as it fails the same way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from rankbridge.harness.cases import faults_in
from rankbridge.harness.rank_removal import without_rank

Data = dict[str, Any]
Path = tuple[str | int, ...]

MOST_TRIES = 1000
_INSIDE = tuple(f"first {it}" for it in ("all_reduce", "broadcast", "all_gather_into_tensor", "barrier"))
"""Points that are tried where a function is called."""


def shrink(data: Data, fails: Callable[[Data], bool]) -> Data:
    """Gives the smallest scenario that was found.

    Points take the place of times first, because times do not repeat; then steps, faults, expectations, ranks,
    elements and delays are taken away, one at a time, again and again until nothing more can be.

    Args:
        data: A scenario that fails.
        fails: Tells whether another one fails the same way. One that cannot be run does not.
    """
    tries = 0
    for ways in (_points, _smaller):
        begun = ""
        while begun != repr(data) and tries < MOST_TRIES:
            begun = repr(data)
            for way in ways(data):
                candidate = way(copy.deepcopy(data))
                if candidate is None or repr(candidate) == repr(data):
                    continue
                tries += 1
                if tries > MOST_TRIES:
                    break
                if fails(candidate):
                    data = candidate
    return _tidy(data)


def _tidy(data: Data) -> Data:
    """Leaves out tables that have become empty."""
    for holder in (data, *data["step"]):
        for word in ("groups", "tensors", "but", "expect"):
            if holder.get(word) == {}:
                del holder[word]
    return data


Way = Callable[[Data], Data | None]
"""Makes a scenario smaller, which it may change; None: what it would take away is not there any more."""


def _points(data: Data) -> Iterator[Way]:
    """Ways to let faults come at points, or at once."""
    for step, fault in _faults(data):
        inside = _INSIDE if data["step"][step].get("call") == "call_function" else ()
        for point in (*inside, "waiting", "entered", None):
            yield lambda it, step=step, fault=fault, point=point: _at(it, step, fault, point)  # type: ignore[misc]


def _faults(data: Data) -> list[tuple[int, int]]:
    return [(place, number) for place, it in enumerate(data["step"]) for number in range(len(faults_in(it)))]


def _at(data: Data, step: int, number: int, point: str | None) -> Data | None:
    faults = faults_in(data["step"][step]) if step < len(data["step"]) else []
    if number >= len(faults) or "after_ms" not in faults[number]:
        return None
    fault = dict(faults[number])
    del fault["after_ms"]
    if point is not None:
        fault["at"] = point
    return _with_fault(data, step, number, [fault])


def _with_fault(data: Data, step: int, number: int, by: list[Data]) -> Data:
    faults = [dict(it) for it in faults_in(data["step"][step])]
    faults[number : number + 1] = by
    if faults:
        data["step"][step]["fault"] = faults[0] if len(faults) == 1 else faults
    else:
        del data["step"][step]["fault"]
    return data


def _smaller(data: Data) -> Iterator[Way]:
    """Ways to take something away, what is largest first; the last steps first, as what follows a failure never ran."""
    count = len(data["step"])
    if count > 3:
        yield lambda it: _without_steps(it, count // 2, count)
        yield lambda it: _without_steps(it, 0, count // 2)
    for place in reversed(range(count)):
        yield lambda it, place=place: _without_steps(it, place, place + 1)  # type: ignore[misc]
    for rank in reversed(range(data["gang"]["size"])):
        yield lambda it, rank=rank: _without_rank(it, rank)  # type: ignore[misc]
    for path in _removable(data):
        yield lambda it, path=path: _without(it, path)  # type: ignore[misc]
    for path, values in _lesser(data):
        for value in values:
            yield lambda it, path=path, value=value: _replaced(it, path, value)  # type: ignore[misc]


def _without_steps(data: Data, first: int, last: int) -> Data | None:
    if last > len(data["step"]) or last - first == len(data["step"]):
        return None
    del data["step"][first:last]
    return data


def _without_rank(data: Data, rank: int) -> Data | None:
    return without_rank(data, rank) if 1 < data["gang"]["size"] > rank else None


def _removable(data: Data) -> list[Path]:
    """Where something stands that may be left out."""
    found: list[Path] = [(it,) for it in ("seed", "needs", "timeout_ms") if it in data]
    for place, step in enumerate(data["step"]):
        at: Path = ("step", place)
        found += [(*at, "expect", it) for it in step.get("expect", {})]
        given = step.get("fault")
        found += [(*at, "fault", it) for it in range(len(given))] if isinstance(given, list) else []
        found += [(*at, "but", it) for it in step.get("but", {})]
        found += [(*at, "each", it) for it in reversed(range(len(step.get("each", ()))))]
        words = ("fault", "but", "absent", "as", "name", "in_place", "op", "timeout_ms", "expect", "wait")
        found += [(*at, it) for it in words if it in step]
    found += [("tensors", name) for name in data.get("tensors", {})]
    found += [("groups", name) for name in data.get("groups", {})]
    return found


def _lesser(data: Data) -> Iterator[tuple[Path, list[Any]]]:
    """Where something stands that may be less, and what it may be, the least first."""
    for name, tensor in data.get("tensors", {}).items():
        at: Path = ("tensors", name)
        shape = tensor["shape"] if isinstance(tensor["shape"], list) else []
        yield (*at, "shape"), [[], [1], shape[1:], shape[:-1]]
        for place, size in enumerate(shape):
            if isinstance(size, int):
                yield (*at, "shape", place), [1, size // 2, size - 1] if size > 1 else []
        yield (*at, "dtype"), ["float32"]
        yield (*at, "fill"), ["rank"] if isinstance(tensor.get("fill"), dict) else []
    for place, step in enumerate(data["step"]):
        for number, fault in enumerate(faults_in(step)):
            inside: Path = (
                ("step", place, "fault")
                if isinstance(step["fault"], dict)
                else ("step", place, "fault", number)
            )
            for rank, late in fault.get("delay_ms", {}).items():
                yield (*inside, "delay_ms", rank), [0, late // 2]
            if after := fault.get("after_ms"):
                yield (*inside, "after_ms"), [0, after // 2]


def _find(data: Data, path: Path) -> Any:
    found: Any = data
    for key in path:
        try:
            found = found[key]
        except (LookupError, TypeError):
            return None
    return found


def _without(data: Data, path: Path) -> Data | None:
    holder = _find(data, path[:-1])
    if holder is None or _find(data, path) is None:
        return None
    del holder[path[-1]]
    return data


def _replaced(data: Data, path: Path, value: Any) -> Data | None:
    if _find(data, path) is None:
        return None
    _find(data, path[:-1])[path[-1]] = value
    return data
