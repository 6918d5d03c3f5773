"""`rankbridge status`: ranks, groups and refs of a gang, as tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.printable import printable
from .gangs import NoGang, add_endpoints, complain, connected
from .progress import progress

if TYPE_CHECKING:
    from rankbridge import RankStatus


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "status",
        help="show a gang's ranks, groups and refs",
        description="Show a gang's ranks, groups and refs. Ends with 1 when a rank cannot be reached or its "
        "generation is over.",
    )
    add_endpoints(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from rankbridge import RankBridgeError

    try:
        with connected(options) as gang, progress("asking the ranks"):
            statuses = gang.status()
    except (NoGang, RankBridgeError) as error:
        return complain("status", error)
    print(table(("rank", "pid", "host", "backend", "generation", "state", "pending"), _ranks(statuses)))
    print()
    print(table(("group", "ranks", "generation", "operations by rank"), _groups(statuses)))
    print()
    print(table(("session", "refs by rank", "bytes by rank"), _sessions(statuses)))
    over = [it for it in statuses if it.generation_error]
    for it in over:
        print(f"\nrank {it.rank}: {printable(str(it.generation_error))}")
    return 1 if over else 0


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows in columns as wide as they need."""
    lines = [list(head), *([printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _ranks(statuses: Sequence[RankStatus]) -> list[Sequence[object]]:
    return [
        (it.rank, it.pid, it.host, it.backend, it.generation, it.generation_state, it.pending_operations)
        for it in statuses
    ]


def _groups(statuses: Sequence[RankStatus]) -> list[Sequence[object]]:
    # Only members know whether a group has ended.
    groups = [group for it in statuses for group in it.groups if group.rank_in_group is not None]
    rows: list[Sequence[object]] = []
    for name in sorted({group.name for group in groups}):
        views = [group for group in groups if group.name == name]
        counts = [str(view.sequence) for view in views]
        ranks = " ".join(map(str, views[0].ranks))
        rows.append((name, ranks, views[0].generation, " ".join(counts)))
    return rows


def _sessions(statuses: Sequence[RankStatus]) -> list[Sequence[object]]:
    usages = [{usage.session_id: usage for usage in it.sessions} for it in statuses]
    names = sorted({name for usage in usages for name in usage})
    return [
        (
            name or "(shared)",
            " ".join(str(usage[name].refs) if name in usage else "-" for usage in usages),
            " ".join(str(usage[name].bytes) if name in usage else "-" for usage in usages),
        )
        for name in names
    ]
