"""What a run has found: what was wrong, and how long things took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Times:
    """Of one kind of fault, in seconds.

    `to_error`: from the fault to each error that a survivor was given. `to_whole`: from the fault to the next good
    operation on all ranks.
    """

    rounds: int = 0
    to_error: list[float] = field(default_factory=list)
    to_whole: list[float] = field(default_factory=list)


@dataclass
class Findings:
    """Everything that should be empty, and the times by kind of fault. `where` goes before each finding."""

    wrong: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    operations: int = 0
    where: str = ""

    @property
    def held(self) -> bool:
        """Whether all is as it must be."""
        return not (self.wrong or self.hangs or self.errors or self.leaks)

    def wrong_result(self, what: str) -> None:
        """A value that is not the right one, or a tensor that changed and must not."""
        self.wrong.append(f"{self.where}: {what}")

    def hang(self, what: str) -> None:
        """A call that had no answer when its time was over."""
        self.hangs.append(f"{self.where}: {what}")

    def wrong_error(self, what: str) -> None:
        """An error that is not the right one, or does not say whose fault it is."""
        self.errors.append(f"{self.where}: {what}")

    def leak(self, what: str) -> None:
        """Something of a rank that grew and stayed."""
        self.leaks.append(f"{self.where}: {what}")
