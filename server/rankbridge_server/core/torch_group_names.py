"""Groups of torch.distributed, in words for people."""

from __future__ import annotations

from collections.abc import Sequence

from .rank_intervals import rank_intervals


def shown_name(description: str, ranks: Sequence[int], world_size: int) -> str:
    """What its script calls a group, or whose it is: "world", "dp", "group[0-1, 4]". `ranks`: in the job."""
    # What torch calls those to which nobody has given a name.
    if description not in ("", "undefined", "default_pg"):
        return description
    if description == "default_pg" or len(ranks) == world_size > 1:
        return "world"
    return f"group[{rank_intervals(ranks).split(' ', 1)[1]}]"
