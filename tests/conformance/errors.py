"""Which error codes of the bridge say what a recorded error said."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FITTING: tuple[tuple[str, tuple[str, ...]], ...] = (
    # A rank that is not there, or not in the group.
    (r"Invalid (src|dst) rank \(|invalid root rank|not part of group", ("RANK_OUT_OF_RANGE",)),
    (r"IndexError: list index out of range", ("RANK_OUT_OF_RANGE", "INVALID_ARGUMENT")),
    (r"less or equal to the world size set by init_process_group", ("RANK_OUT_OF_RANGE",)),
    (
        r"rank should not be the same|rank is the same as the current|Pair is not connected",
        ("INVALID_ARGUMENT",),
    ),
    (r"must not contain duplicate", ("INVALID_ARGUMENT",)),
    (r"`source_rank` must be 0", ("RANK_OUT_OF_RANGE",)),
    (r"FakeCollective is fake|Fake collective is fake", ("RANK_OUT_OF_RANGE",)),
    # Dimensions, sizes and shapes.
    (r"Invalid dim \(|only dim 0 all-gatherv is supported", ("INVALID_ARGUMENT",)),
    (r"invalid (tensor size|output tensor list)", ("INVALID_ARGUMENT",)),
    (
        r"compatible with all-gather|must match the (number of processes|size of tensor)",
        ("INVALID_ARGUMENT",),
    ),
    (r"AssertionError: \d+ != \d+", ("INVALID_ARGUMENT",)),
    (r"AssertionError: Expecting a dictionary", ("INVALID_ARGUMENT",)),
    (r"must be divisible by|do not fit|Not enough ranks|need at least", ("INVALID_ARGUMENT",)),
    (r"Can't pickle", ("INVALID_ARGUMENT",)),
    (r"'NoneType' object has no attribute 'data'", ("INVALID_ARGUMENT",)),
    # Reductions that do not exist.
    (
        r"non-integral dtype|Invalid scalar type|result type Float can't be cast|unsupported ScalarType|Invalid MPI_Op",
        ("UNSUPPORTED_DTYPE",),
    ),
    (r"Only (readers can dequeue|writers can enqueue)", ("INVALID_ARGUMENT",)),
    (r"No device communicator found", ("INVALID_ARGUMENT",)),
    (r"KeyError: '", ("INVALID_ARGUMENT",)),
    # A call that lacks an argument is refused by the language.
    (r"TypeError: .* missing \d+ required positional argument", ("TypeError", "INVALID_ARGUMENT")),
    # Members that do not do the same, or not in time.
    (r"Detected mismatch between collectives", ("MISMATCH",)),
    (r"Timed out waiting|failed to pass monitoredBarrier", ("PEER_MISSING", "MISMATCH")),
    (r"TimeoutError: ", ("PEER_MISSING",)),
    (r"RuntimeError: cancelled", ("ABORTED", "UNKNOWN_QUEUE", "CANCELLED")),
    (r"RuntimeError: boom", ("RuntimeError",)),
    (r"Connection (closed|reset) by peer", ("PEER_LOST", "STALE_GENERATION")),
    # A group that is no more.
    (r"'GroupCoordinator' object has no attribute '(cpu|device)_group'", ("UNKNOWN_GROUP",)),
    (r"Group \S+ is not found", ("UNKNOWN_GROUP",)),
    # What a rank is started with.
    (
        r"Unknown backend|Invalid backend|oneccl_bindings|Process group already initialized",
        ("REFUSED", "TypeError"),
    ),
    (r"AssertionError: $", ("INVALID_ARGUMENT", "RANK_OUT_OF_RANGE", "REFUSED", "LaunchError")),
    (r"Missing (env var|either)|local_rank must be provided|invalid literal for int", ("LaunchError",)),
    (r"IndexError|ZeroDivisionError", ("INVALID_ARGUMENT",)),
)
"""Patterns of `type: message`, and the codes that say the same. The first that is found counts."""


def text(error: Mapping[str, Any]) -> str:
    """A recorded error in one line."""
    return f"{error['type']}: {error['message']}"


def fits(recorded: Mapping[str, Any], code: str) -> bool:
    """Whether a code says what was recorded. An error that no pattern knows fits none."""
    line = text(recorded)
    for pattern, codes in FITTING:
        if re.search(pattern, line):
            return code in codes
    return False
