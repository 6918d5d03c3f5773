"""What must not reach a backend, and what it must survive: hazards, and ranks that die."""

from __future__ import annotations

from collections.abc import Iterator

from rankbridge.harness.conformance.orders import ADMITTED_MS, STOPPED_MS
from rankbridge.harness.conformance.probe import SIZE, Json, Probe, probe, right, seeded

_ODD = 2
_TENSORS = {"x": seeded("float32", 8), "short": seeded("float32", 4), "ints": seeded("int32", 8)}
_GOOD = right("all_reduce", of="x", op="sum")
_DIFFERENT: dict[str, tuple[Json, Json]] = {
    "another shape": ({"call": "all_reduce", "of": "x", "op": "sum"}, {"of": "short"}),
    "another dtype": ({"call": "all_reduce", "of": "x", "op": "sum"}, {"of": "ints"}),
    "another op": ({"call": "all_reduce", "of": "x", "op": "sum"}, {"op": "max"}),
    "another source": ({"call": "broadcast", "of": "x"}, {"src_rank_in_group": 1}),
    "another destination": ({"call": "gather", "of": "x", "dst_rank_in_group": 0}, {"dst_rank_in_group": 3}),
}
_WAITING = ["PEER_LOST", "STALE_GENERATION"]
_INSIDE = [*_WAITING, "BACKEND_FAILED", "ABORTED"]


def faults() -> Iterator[Probe]:
    """Gives all of them."""
    sides = [[rank for rank in range(SIZE) if rank != _ODD], [_ODD]]
    for what, (call, odd) in _DIFFERENT.items():
        expect = {"error": "MISMATCH", "indefinite": False, "sides": sides, "unchanged": ["x"]}
        steps = [{**call, "but": {str(_ODD): odd}, "expect": expect}, _GOOD]
        yield _probe(call["call"], f"a rank asks for {what}", steps)
    missing = {"error": "PEER_MISSING", "names": {"missing": [_ODD]}, "indefinite": False}
    call = {"call": "all_reduce", "of": "x", "op": "sum", "absent": [_ODD], "timeout_ms": 2000}
    yield _probe("all_reduce", "a rank does not come", [{**call, "expect": missing}, _GOOD])
    for rank in range(SIZE):
        yield _killed_while_waiting(rank)
    for rank in range(1, SIZE - 1):
        yield _killed_inside(rank)


def _probe(operation: str, what: str, steps: list[Json]) -> Probe:
    return probe("faults", operation, steps, what=what, op="sum", tensors=_TENSORS, operations=["all_reduce"])


def _killed_while_waiting(rank: int) -> Probe:
    absent = (rank + 1) % SIZE
    call = {
        "call": "all_reduce",
        "of": "x",
        "op": "sum",
        "absent": [absent],
        "fault": {"kill": [rank], "after_ms": 100},
    }
    return _after(call, [rank], f"rank {rank} is killed while others wait", _WAITING)


def _killed_inside(rank: int) -> Probe:
    """The last rank is stopped and does not enter, so that the others surely are inside when one is killed.

    It is replaced as well: a rank that is stopped when others are lost keeps them waiting.
    """
    last = SIZE - 1
    call = {
        "call": "all_reduce",
        "of": "x",
        "op": "sum",
        "fault": [
            {"delay_ms": {"0": ADMITTED_MS}},
            {"stop": [last], "after_ms": STOPPED_MS},
            {"kill": [rank], "after_ms": ADMITTED_MS + 100},
        ],
    }
    return _after(call, [rank, last], f"rank {rank} is killed inside the backend", _INSIDE)


def _after(call: Json, gone: list[int], what: str, codes: list[str]) -> Probe:
    """All others learn it, and the next generation has everybody."""
    absent = call.get("absent", [])
    error = {str(rank): codes for rank in range(SIZE) if rank not in (*gone, *absent)}
    formed: Json = {"form": True, "expect": {"replaced": gone, "kept": ["x"]}}
    return _probe("all_reduce", what, [{**call, "expect": {"error": error}}, formed, right("barrier")])
