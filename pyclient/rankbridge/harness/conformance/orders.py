"""The orders in which members enter the backend, and operations of several groups at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from rankbridge.harness.conformance.probe import SIZE, Json, Probe, probe, right, seeded
from rankbridge.harness.conformance.values import rooted

_OPERATIONS: dict[str, Json] = {
    "barrier": right("barrier"),
    "broadcast": rooted("broadcast", 1),
    "all_reduce": right("all_reduce", of="x", op="sum"),
    "all_gather": right("all_gather", of="x", dim=0),
}

STOPPED_MS = 150
ADMITTED_MS = 200
BETWEEN_MS = 60


def orders() -> Iterator[Probe]:
    """Gives all of them."""
    for operation, step in _OPERATIONS.items():
        op = step.get("op", "")
        x = {} if operation == "barrier" else {"x": seeded("float32", SIZE, 2)}
        for others in permutations(range(1, SIZE)):
            what = f"entered in the order 0 {' '.join(map(str, others))}"
            steps = [{**step, "fault": entering(others)}]
            yield probe("orders", operation, steps, what=what, op=op, tensors=x)
        for rank in range(SIZE):
            slow = [{**step, "fault": {"slow": [rank]}}] * 4
            yield probe("orders", operation, slow, what=f"rank {rank} is slow", op=op, tensors=x)
    yield _at_once()


def entering(others: tuple[int, ...]) -> list[Json]:
    """Gives faults that let rank 0 enter first, and the others in this order.

    They are called, and then stopped. Rank 0, the leader, is called last, and admits all. Whoever continues enters.
    """
    return [
        {"delay_ms": {"0": ADMITTED_MS}},
        {"stop": list(others), "after_ms": STOPPED_MS},
        *(
            {"cont": [rank], "after_ms": ADMITTED_MS + (place + 1) * BETWEEN_MS}
            for place, rank in enumerate(others)
        ),
    ]


def _at_once() -> Probe:
    begun: list[Json] = [
        {
            "name": f"{name} {count}",
            "call": "all_reduce",
            "of": "x",
            "op": "sum",
            "group": name,
            "wait": False,
        }
        for count in range(8)
        for name in ("there", "back")
    ]
    ended: list[Json] = [{"await": it["name"], "expect": {"ok": True}} for it in begun]
    return probe(
        "orders",
        "all_reduce",
        [*begun, *ended],
        what="in two groups at once",
        op="sum",
        tensors={"x": seeded("float32", 100)},
        groups={"there": list(range(SIZE)), "back": list(range(SIZE))[::-1]},
    )
