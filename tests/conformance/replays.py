"""How each case is replayed: by file and name."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.conformance.recorded import Case
from tests.conformance.systems import gfn, gfn_layouts, gfn_p2p, hazards, olmo, optimus, vllm
from tests.conformance.systems.calls import Replay

REPLAYS: dict[str, dict[str, Replay]] = {
    **optimus.REPLAYS,
    **gfn.REPLAYS,
    **gfn_p2p.REPLAYS,
    **gfn_layouts.REPLAYS,
    **olmo.REPLAYS,
    **hazards.REPLAYS,
    **vllm.REPLAYS,
}
"""By file, patterns of names; the first that fits counts."""

WITH_ANY_CLIENT: dict[str, tuple[str, ...]] = {
    "optimus_ops": ("*",),
    "gfn_ops": ("barrier", "all_*", "broadcast*", "gather_*", "average_*"),
    "gfn_p2p": ("send_*", "in_order_*", "request_reply", "metadata_*", "fan_in_*", "buffer_manager_loop"),
    "olmo": ("barrier", "synchronize_*", "all_*", "broadcast_*", "upstream_*"),
}
"""By file, patterns of names: cases whose calls are made with whichever client replays, not with Python's alone."""


def with_any_client(case: Case) -> bool:
    """Whether the client that replays makes all calls of a case."""
    return any(fnmatchcase(case.name, pattern) for pattern in WITH_ANY_CLIENT.get(case.suite, ()))


def replay_of(case: Case) -> Replay | None:
    """Gives how a case is replayed. None: nobody knows."""
    for pattern, replay in REPLAYS.get(case.suite, {}).items():
        if fnmatchcase(case.name, pattern):
            return replay
    return None
