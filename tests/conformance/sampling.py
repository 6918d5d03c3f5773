"""Which of the recorded cases the test suite replays: so many as it has time for, others with each commit."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@cache
def seed() -> str:
    """What the cases are drawn by: the commit that is checked out. Where there is none, always the same."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "none"


def sample(of: Sequence[T], count: int) -> list[T]:
    """Draws so many, or gives all if they are no more, in their order."""
    drawn = random.Random(seed()).sample(range(len(of)), min(count, len(of)))
    return [of[place] for place in sorted(drawn)]
