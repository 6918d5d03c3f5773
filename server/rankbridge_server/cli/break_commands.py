"""What can be done with the calls that a breakpoint holds: the words of `rankbridge break`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.rank_intervals import rank_intervals

if TYPE_CHECKING:
    from rankbridge import HeldCall, Hold, Inspection
    from rankbridge._plan.holding import HeldInput

_SHOWN = 8
"""Elements of each input that `inspect` shows."""
_NONE = "no call is held"
_TOGETHER_S = 10.0


class BadCommand(Exception):
    """A line that is not a command. The message lists the commands."""


class Answer(NamedTuple):
    """What a command gives: lines for people, and the same for programs."""

    lines: Sequence[str]
    content: Any


class _Command(NamedTuple):
    run: Callable[[Hold, str], Answer]
    usage: str
    help: str


def run(hold: Hold, line: str) -> Answer | None:
    """Runs a command. None: the breakpoint is to be removed. Raises BadCommand, RankBridgeError."""
    name, _, rest = line.strip().partition(" ")
    if name in ("quit", "q"):
        return None
    command = COMMANDS.get(_SHORT.get(name, name))
    if command is None:
        raise BadCommand(f"no command {name!r}; there are: {', '.join(COMMANDS)}, quit")
    return command.run(hold, rest.strip())


def _held(hold: Hold, rest: str) -> Answer:
    _nothing(rest)
    calls = hold.held()
    return Answer(held_lines(calls) or [_NONE], [asdict(it) for it in calls])


def _inspect(hold: Hold, rest: str) -> Answer:
    start, count = _slice(rest)
    looks = hold.inspect(start=start, count=count)
    return Answer(_alike(looks, lambda it: _inputs(it, start)), [_as_json(it) for it in looks])


def _where(hold: Hold, rest: str) -> Answer:
    _nothing(rest)
    looks = hold.inspect()
    return Answer(_alike(looks, _frames), [_as_json(it) for it in looks])


def _differ(hold: Hold, rest: str) -> Answer:
    words = rest.split()
    if len(words) not in (2, 3) or not all(it.isdecimal() for it in words):
        raise BadCommand("differ RANK RANK [INPUT]: which ranks, and which input, from 0")
    one, other, *place = map(int, words)
    at = hold.differs_at(one, other, place=place[0] if place else 0)
    said = "no element differs" if at is None else f"element {at} differs first"
    return Answer([f"ranks {one} and {other}: {said}"], {"ranks": [one, other], "element": at})


def _together(hold: Hold, rest: str) -> Answer:
    _nothing(rest)
    calls = hold.together(timeout=_TOGETHER_S)
    return Answer(held_lines(calls), [asdict(it) for it in calls])


def _let_go(how: Callable[[Hold, str], int], takes_text: bool) -> Callable[[Hold, str], Answer]:
    def command(hold: Hold, rest: str) -> Answer:
        if not takes_text:
            _nothing(rest)
        calls = how(hold, rest)
        return Answer([f"let go: {calls}"], {"let_go": calls})

    return command


def _help(hold: Hold, rest: str) -> Answer:
    _nothing(rest)
    width = max(len(it.usage) for it in COMMANDS.values())
    lines = [f"{it.usage:<{width}}  {it.help}" for it in COMMANDS.values()]
    lines.append(f"{'quit':<{width}}  remove the breakpoint; what it holds goes on")
    return Answer(lines, {"commands": [*COMMANDS, "quit"]})


COMMANDS = {
    "held": _Command(_held, "held", "the calls that are held"),
    "inspect": _Command(
        _inspect, "inspect [START:COUNT]", "their inputs: summaries, elements, which ranks have the same"
    ),
    "where": _Command(_where, "where", "the lines of the user's code that made them, with variables"),
    "differ": _Command(_differ, "differ RANK RANK [INPUT]", "the first element at which two ranks differ"),
    "together": _Command(
        _together, "together", "step ranks that are behind, until all are held at the same call"
    ),
    "continue": _Command(_let_go(lambda hold, _: hold.resume(), False), "continue", "let them go on"),
    "step": _Command(
        _let_go(lambda hold, _: hold.step(), False), "step", "let them go on, up to each rank's next call"
    ),
    "skip": _Command(_let_go(lambda hold, text: hold.skip(text), True), "skip [TEXT]", "do not make them"),
    "fail": _Command(_let_go(lambda hold, text: hold.fail(text), True), "fail [TEXT]", "let them fail"),
    "help": _Command(_help, "help", "this"),
}
"""The commands, by name; `quit` is beside them."""
_SHORT = {"c": "continue", "s": "step", "i": "inspect", "w": "where", "h": "held", "?": "help"}


def _nothing(rest: str) -> None:
    if rest:
        raise BadCommand(f"this command takes nothing more: {rest!r}")


def _slice(rest: str) -> tuple[int, int]:
    start, colon, count = rest.partition(":")
    if not rest:
        return 0, _SHOWN
    if not colon or not start.isdecimal() or not count.isdecimal():
        raise BadCommand("inspect [START:COUNT]: the first element, and how many")
    return int(start), int(count)


def held_lines(calls: Iterable[HeldCall]) -> list[str]:
    """Says which ranks hold what."""
    ranks: dict[str, list[int]] = {}
    for it in calls:
        ranks.setdefault(it.what, []).append(it.rank)
    return [
        f"{rank_intervals(them)} {'is' if len(them) == 1 else 'are'} {what}" for what, them in ranks.items()
    ]


def _alike(looks: Iterable[Inspection], said: Callable[[Inspection], Iterable[str]]) -> list[str]:
    """What there is to say of each rank, once for those of which it is the same."""
    ranks: dict[tuple[str, ...], list[int]] = {}
    for it in looks:
        ranks.setdefault(tuple(said(it)), []).append(it.call.rank)
    return [line for each, them in ranks.items() for line in (rank_intervals(them), *each)] or [_NONE]


def _inputs(it: Inspection, start: int) -> Iterator[str]:
    yield f"  {it.call.contract}"
    for place, each in enumerate(it.inputs):
        yield f"  input {place}: {each.spec}  {_summary(each)}"
        if each.slice is not None and each.slice.shape[0]:
            yield f"    from {start}: {_elements(each)}"
    if not it.inputs:
        yield "  no inputs"


def _summary(it: HeldInput) -> str:
    # Of two ranks whose summaries look alike, these say whether all elements are.
    parts = [f"norm {it.norm:.6g}", f"hash {it.hash[:8]}"]
    if it.min is not None and it.max is not None and it.mean is not None:
        parts += [f"{it.min:.6g} to {it.max:.6g}", f"mean {it.mean:.6g}"]
    parts += [f"{count} {name}" for count, name in ((it.nans, "NaN"), (it.infs, "Inf")) if count]
    return ", ".join(parts)


def _elements(it: HeldInput) -> str:
    assert it.slice is not None
    try:
        values = it.slice.numpy().tolist()
    except TypeError:
        values = [f"0x{value:x}" for value in it.slice.view_uint().tolist()]
    more = " ..." if it.elements > len(values) else ""
    return " ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in values) + more


def _frames(it: Inspection) -> Iterator[str]:
    if not it.frames:
        yield f"  {it.call.site or 'no line is known'}"
    for each in it.frames:
        yield f"  {each.frame.function} {each.frame.file}:{each.frame.line}"
        yield from (f"    {name} = {value}" for name, value in each.variables.items())


def _as_json(it: Inspection) -> dict[str, Any]:
    inputs = [
        {**asdict(replace(each, slice=None)), "slice": each.slice and _elements(each).split()}
        for each in it.inputs
    ]
    return {
        "call": asdict(it.call),
        "inputs": inputs,
        "frames": [{**asdict(each.frame), "variables": each.variables} for each in it.frames],
    }
