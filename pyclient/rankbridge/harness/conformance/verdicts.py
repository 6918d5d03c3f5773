"""What came of a case, in a word."""

from __future__ import annotations

import re

from rankbridge.errors import ErrorCode, RankBridgeError
from rankbridge.harness.running import Result

RIGHT, WRONG, RAISES, HANGS, DIES, UNSUPPORTED, NOT_RUN = (
    "right",
    "wrong value",
    "raises",
    "hangs",
    "dies",
    "unsupported",
    "not run",
)
BAD = (WRONG, RAISES, HANGS, DIES)
ALL = (RIGHT, *BAD, UNSUPPORTED, NOT_RUN)

_LATE = re.compile("did not return|time(d )?-?out", re.IGNORECASE)
_OF_ENGINE = (ErrorCode.BACKEND_FAILED, ErrorCode.ABORTED)
_GONE = (ErrorCode.PEER_LOST, ErrorCode.STALE_GENERATION)


def verdict_of(result: Result) -> str:
    """Gives the word for a result.

    The ranks that one has failed may wait for it until their own timeout: what one raises says more.
    """
    if result.status == "skipped":
        return UNSUPPORTED
    if result.status == "ok":
        return RIGHT
    errors = [it.error for it in result.failures if it.error is not None]
    unformed = [it.text for it in result.failures if it.word == "gang"]
    if any(it.code is ErrorCode.DEADLINE_EXCEEDED or _is_late(it) for it in errors):
        return HANGS
    if any(it.code in _GONE for it in errors):
        return DIES
    if errors:
        return RAISES
    if unformed:
        # The case itself was right; the next generation was not formed.
        return HANGS if any(map(_LATE.search, unformed)) else RAISES
    return NOT_RUN if any(it.word == "fault" for it in result.failures) else WRONG


def _is_late(error: RankBridgeError) -> bool:
    return error.code in _OF_ENGINE and _LATE.search(str(error)) is not None
