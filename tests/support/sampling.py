"""Which cases of a large matrix the test suite runs: as many as it has time for, others with each commit."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

whole = False
"""Whether all cases are run, as `pytest --whole` asks."""


@cache
def seed() -> str:
    """What the cases are drawn by: the commit that is checked out. Where there is none, always the same."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "none"


def sample(of: Sequence[T], count: int) -> list[T]:
    """Draws `count` of them and returns these in their order. Returns all if there are no more, or `whole` is set."""
    if whole:
        return list(of)
    drawn = random.Random(seed()).sample(range(len(of)), min(count, len(of)))
    return [of[place] for place in sorted(drawn)]
