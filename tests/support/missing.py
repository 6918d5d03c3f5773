"""Errors about missing ranks, which say what these do."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.waiting import until

from rankbridge import Activity, PeerMissingError, RankBridgeError


def missing(error: RankBridgeError | None) -> dict[int, Activity]:
    """What the missing ranks do."""
    assert isinstance(error, PeerMissingError)
    assert not error.indefinite
    return {it.rank: it.activity for it in error.ranks if it.state == "missing" and it.activity is not None}


def once_all_say(fail: Callable[[], RankBridgeError | None]) -> RankBridgeError | None:
    """The error of a call in which missing ranks say what they do. On a busy machine one may be silent meanwhile."""
    errors: list[RankBridgeError | None] = []

    def all_say() -> bool:
        errors.append(fail())
        return "silent" not in {it.doing for it in missing(errors[-1]).values()}

    until(all_say)
    return errors[-1]
