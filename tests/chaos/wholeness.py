"""A controller that mends its gang by itself, and what a whole gang is."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np
from tests.chaos.checks import Allowed, described, equal
from tests.chaos.controllers.controller import Controller
from tests.chaos.findings import Findings
from tests.chaos.newcomers import kept, welcome
from tests.chaos.pending import GangBrokenError
from tests.chaos.scene import CALL_TIMEOUT_S, PAIR, PATIENCE_S, Begun, Scene

from rankbridge import RankBridgeError, Ref

WHOLE_TIMEOUT_S = 30.0
# Before the next try.
_PAUSE_S = 0.01


def is_whole(scene: Scene, struck: float) -> None:
    """Requires that the gang is whole as it is, without a forming."""
    _one_reduction(scene)
    scene.findings.whole_after(time.monotonic() - struck)
    _look_around(scene, replaced=())


def finish(scene: Scene, begun: Begun, allowed: Mapping[int, Allowed], struck: float) -> None:
    """Waits for an operation's end, requires that the gang is whole then, and judges the operation."""
    outcomes = scene.collect(begun, struck)
    is_whole(scene, struck)
    scene.judge(begun, outcomes, allowed)


def make_whole(scene: Scene, struck: float, survivor: int, *, replaced: Collection[int] = ()) -> None:
    """Forms the next generation by way of a survivor's caller, until an operation succeeds on all ranks.

    Args:
        scene: The gang.
        struck: When the fault came, of `time.monotonic`.
        survivor: Who forms it.
        replaced: Ranks whose processes may be new.

    Raises:
        GangBrokenError: It is not whole in time.
    """
    driver = scene.caller(survivor)
    callers = [it for it, _ in scene.by_caller(range(scene.size)) if it is not driver]

    def form() -> None:
        driver.form(survivor)
        _rejoin(callers)
        _one_reduction(scene)

    scene.retried += _until_done(form, scene.findings)
    scene.formed += 1
    scene.findings.whole_after(time.monotonic() - struck)
    # Those who look on have time.
    others = [it for it in scene.controllers.values() if it is not driver and it not in callers]
    _until_done(lambda: _rejoin(others), scene.findings)
    _look_around(scene, replaced=replaced)


def _until_done(do: Callable[[], None], findings: Findings) -> int:
    """Does something until it succeeds; gives how often it failed before. Raises GangBrokenError."""
    deadline = time.monotonic() + WHOLE_TIMEOUT_S
    failed = 0
    while True:
        try:
            do()
            return failed
        except RankBridgeError as error:
            failed += 1
            if time.monotonic() > deadline:
                findings.hang(f"not whole after {WHOLE_TIMEOUT_S:.0f} s: {error}")
                raise GangBrokenError(str(error)) from error
            time.sleep(_PAUSE_S)


def _rejoin(controllers: Iterable[Controller]) -> None:
    for it in controllers:
        it.rejoin()


def _one_reduction(scene: Scene) -> None:
    refs = scene.put({rank: np.array([1, rank], np.int64) for rank in range(scene.size)})
    try:
        results = _together(scene, "all_reduce", "world", refs)
        expected = np.array([scene.size, sum(range(scene.size))], np.int64)
        for rank, result in results.items():
            if not equal(got := scene.fetch(result), expected):
                scene.findings.wrong_result(f"rank {rank} got {described(got)} when whole again")
        scene.release(results)
    finally:
        scene.release(refs)


def _together(scene: Scene, kind: str, group: str, refs: Mapping[int, Ref] | None) -> dict[int, Ref]:
    """A collective on all members that must succeed: one call of its only client, or calls of each for its ranks."""
    members = scene.groups[group]
    clients = scene.by_caller(members)
    if len(clients) == 1:
        ordered = None if refs is None else [refs[rank] for rank in members]
        given = clients[0][0].call_all(kind, ordered, group=group, ranks=members, timeout=CALL_TIMEOUT_S)
        return dict(zip(members, given, strict=refs is not None))
    operation_id = uuid.uuid4().hex
    flights = [
        scene.start(rank, kind, None if refs is None else refs[rank], group, operation_id, CALL_TIMEOUT_S)
        for rank in members
    ]
    outcomes = [it.outcome(CALL_TIMEOUT_S + PATIENCE_S) for it in flights]
    for it in outcomes:
        if it.error is not None:
            raise it.error
    return {it.rank: it.value for it in outcomes if it.value is not None}


def _look_around(scene: Scene, replaced: Collection[int]) -> None:
    pids = [status.pid for status in scene.gang.status()]
    new = [rank for rank, pid in enumerate(pids) if pid != scene.pids[rank]]
    for rank in new:
        if rank not in replaced:
            scene.findings.wrong_error(f"the process of rank {rank} was not touched, and is another")
    for rank in range(scene.size):
        if rank not in new and not equal(got := scene.fetch(scene.kept[rank]), kept(rank)):
            scene.findings.wrong_result(f"what rank {rank} keeps became {described(got)}")
    _together(scene, "barrier", PAIR, None)
    welcome(scene, new)
