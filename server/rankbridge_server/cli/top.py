"""`rankbridge top`: what a gang does now, again and again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from .activity import LOOKED_AT, Activity, GroupActivity, RankActivity, look
from .gangs import NoGang, complain, connected, gang_options
from .options import JSON, Command, Option, Options
from .survey import clock

if TYPE_CHECKING:
    from rich.console import Group

    from rankbridge import Gang

TIMEOUT_S = 3.0
_GROUP = (
    "group",
    "ranks",
    "ops/s",
    "MB/s",
    "pending",
    "since",
    "waits for",
    "came last",
    "behind",
    "slowest",
    "took",
    "line",
)
_RANK = ("rank", "host", "pid", "generation", "state", "since", "pending", "ops/s", "came last")


def _run(options: Options) -> int:
    from rankbridge import RankBridgeError

    try:
        with connected(options) as gang:
            looks = _looks(gang, options.interval)
            if options.once:
                # Rates are of two looks.
                found = next(islice(looks, 1, None))
                _print(found, options.as_json)
                return 0 if found.found.is_whole else 1
            _follow(looks, options.as_json)
    except (NoGang, RankBridgeError) as error:
        return complain("top", error)
    return 0


def _looks(gang: Gang, interval: float) -> Iterator[Activity]:
    seen = None
    while True:
        yield (seen := look(gang, seen))
        time.sleep(interval)


def _follow(looks: Iterator[Activity], as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        for it in looks:
            _print(it, as_json)
        return
    from rich.live import Live

    with Live(auto_refresh=False, screen=True) as live:
        for it in looks:
            live.update(page(it), refresh=True)


def _print(it: Activity, as_json: bool) -> None:
    from .tables import show

    if as_json:
        print(json.dumps(_as_json(it)), flush=True)
    else:
        show(page(it))


def page(it: Activity) -> Group:
    """Tables of groups, ranks and pending operations, and why ranks do not work."""
    from .survey_parts import pending_table, troubles
    from .tables import paragraphs, table

    return paragraphs(
        [
            table(_GROUP, [_group(each) for each in it.groups]),
            table(_RANK, [_rank(each) for each in it.ranks]),
            pending_table(it.found),
            *troubles(it.found),
        ]
    )


def _group(it: GroupActivity) -> Sequence[object]:
    oldest = it.oldest
    waits_for = "" if oldest is None or oldest.missing is None else " ".join(map(str, oldest.missing))
    return (
        it.name,
        " ".join(map(str, it.ranks)),
        _or_dash(it.per_second, lambda rate: f"{rate:.1f}"),
        _or_dash(it.bytes_per_second, lambda rate: f"{rate / 1e6:.1f}"),
        it.pending,
        "" if oldest is None else f"{oldest.waited:.1f} s",
        waits_for,
        "-" if it.last is None else f"{it.last} ({it.last_in} of {it.of})",
        _or_dash(it.behind, _milliseconds),
        it.slowest or "-",
        _or_dash(it.took, _milliseconds),
        it.site,
    )


def _rank(it: RankActivity) -> Sequence[object]:
    return (
        it.rank,
        it.host,
        "" if it.pid is None else it.pid,
        "" if it.generation is None else it.generation,
        it.state,
        clock(it.since),
        "" if it.pending is None else it.pending,
        _or_dash(it.per_second, lambda rate: f"{rate:.1f}"),
        f"{it.last_in} of {it.of}",
    )


def _or_dash(value: float | None, say: Callable[[float], str]) -> str:
    return "-" if value is None else say(value)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _as_json(it: Activity) -> dict[str, Any]:
    return {
        "whole": it.found.is_whole,
        "groups": [asdict(each) for each in it.groups],
        "ranks": [asdict(each) for each in it.ranks],
        "failures": {str(rank): str(error) for rank, error in it.found.failures.items()},
    }


COMMAND = Command(
    "top",
    _run,
    [
        JSON,
        Option("--once", is_flag=True, help="look for one interval, print what there is, and end"),
        Option("--interval", type=float, default=1.0, metavar="S", help="seconds between two looks"),
        *gang_options(TIMEOUT_S),
    ],
    help="Show what a gang does, until interrupted: for each group, operations and bytes of a member's tensors in a "
    "second, what is pending, since when, and for whom it waits; which rank came last in the last "
    f"{LOOKED_AT} operations, and by how much; the slowest of them; and the states of ranks. In a terminal one page is "
    "kept up to date, elsewhere each look is printed. With --once, ends with 1 when a rank cannot be reached or its "
    "generation is over.",
)
