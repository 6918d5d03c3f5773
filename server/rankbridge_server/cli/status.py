"""`rankbridge status`: ranks, groups, refs and pending operations of a gang."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .gangs import NoGang, complain, connected, gang_options
from .options import JSON, Command, Options
from .progress import progress
from .survey import Survey, clock, survey

if TYPE_CHECKING:
    from rich.console import Group

    from rankbridge import RankStatus

TIMEOUT_S = 3.0


def _run(options: Options) -> int:
    from rankbridge import RankBridgeError

    try:
        with connected(options) as gang, progress("asking the ranks"):
            found = survey(gang)
    except (NoGang, RankBridgeError) as error:
        return complain("status", error)
    if options.as_json:
        print(json.dumps(_as_json(found)))
    else:
        from .tables import show

        show(page(found))
    return 0 if found.is_whole else 1


def page(found: Survey) -> Group:
    """Tables of ranks, groups, sessions and pending operations, and why ranks do not work."""
    from .survey_parts import pending_table, troubles
    from .tables import paragraphs, table

    return paragraphs(
        [
            table(
                ("rank", "pid", "host", "backend", "generation", "state", "since", "pending"), _ranks(found)
            ),
            table(("group", "ranks", "generation", "operations by rank"), _groups(found.statuses)),
            table(("session", "refs by rank", "bytes by rank"), _sessions(found)),
            pending_table(found),
            *troubles(found),
        ]
    )


def _ranks(found: Survey) -> list[Sequence[object]]:
    answered = {it.rank: it for it in found.statuses}
    rows: list[Sequence[object]] = []
    for rank in sorted({*answered, *found.failures}):
        if (it := answered.get(rank)) is None:
            rows.append((rank, "", "", "", "", "not reached", clock(found.lost_since(rank)), ""))
        else:
            generation = (it.generation, it.generation_state, clock(it.generation_since))
            rows.append((rank, it.pid, it.host, it.backend, *generation, it.pending_operations))
    return rows


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


def _sessions(found: Survey) -> list[Sequence[object]]:
    usages = [{usage.session_id: usage for usage in it.sessions} for it in found.statuses]
    names = sorted({name for usage in usages for name in usage})
    return [
        (
            name or "(shared)",
            " ".join(str(usage[name].refs) if name in usage else "-" for usage in usages),
            " ".join(str(usage[name].bytes) if name in usage else "-" for usage in usages),
        )
        for name in names
    ]


def _as_json(found: Survey) -> dict[str, Any]:
    ranks: list[dict[str, Any]] = [
        {
            **{name: getattr(it, name) for name in ("rank", "pid", "host", "backend", "generation")},
            "state": it.generation_state,
            "since": it.generation_since,
            "error": None if it.generation_error is None else str(it.generation_error),
            "groups": [
                {"group": group.name, "ranks": list(group.ranks), "operations": group.sequence}
                for group in it.groups
                if group.rank_in_group is not None
            ],
            "sessions": [asdict(usage) for usage in it.sessions],
            "pending": it.pending_operations,
        }
        for it in found.statuses
    ]
    ranks += [
        {"rank": rank, "state": "not reached", "since": found.lost_since(rank), "error": str(it)}
        for rank, it in found.failures.items()
    ]
    return {
        "whole": found.is_whole,
        "ranks": sorted(ranks, key=lambda it: int(it["rank"])),
        "pending": [
            {**asdict(it), "at": {str(rank): at for rank, at in it.at.items()}} for it in found.pending
        ],
    }


COMMAND = Command(
    "status",
    _run,
    [
        JSON,
        *gang_options(TIMEOUT_S),
    ],
    help="Show a gang's ranks, groups, refs, and the operations that are pending: on which ranks, and for whom they "
    "wait. A rank that does not answer in time has a row that says since when. Ends with 1 when a rank cannot be "
    "reached or its generation is over.",
)
