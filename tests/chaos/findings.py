"""What a run has found: what was wrong, and how long things took."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Times:
    """Of one kind of fault, or of one client, in seconds.

    `operations`: that were judged. `to_error`: from the fault to each error that a survivor was given. `to_whole`: from
    the fault to the next good operation on all ranks.
    """

    rounds: int = 0
    operations: int = 0
    to_error: list[float] = field(default_factory=list)
    to_whole: list[float] = field(default_factory=list)


@dataclass
class Findings:
    """Everything that should be empty, and the times.

    `times`: by kind of fault. `clients`: by who issued a round's operations: "python", "elixir" or "both". `calls`: of
    one rank's part of an operation, by client. `kind`, `client`: of the round at hand. `where`: goes before each
    finding.
    """

    wrong: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    clients: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    calls: Counter[str] = field(default_factory=Counter)
    kind: str = ""
    client: str = ""
    where: str = ""

    @property
    def held(self) -> bool:
        """Whether all is as it must be."""
        return not self.all

    @property
    def all(self) -> list[str]:
        """Everything that was found."""
        return [*self.wrong, *self.errors, *self.hangs, *self.leaks]

    @property
    def operations(self) -> int:
        """How many were judged."""
        return sum(it.operations for it in self.clients.values())

    def begin_round(self, kind: str, client: str, where: str) -> None:
        """What comes now is of this kind of fault, this client, this round."""
        self.kind, self.client, self.where = kind, client, where
        for it in self._now():
            it.rounds += 1

    def begin_operation(self) -> None:
        """An operation that will be judged."""
        for it in self._now():
            it.operations += 1

    def failed_after(self, seconds: float) -> None:
        """A survivor was given an error, so long after the fault."""
        for it in self._now():
            it.to_error.append(seconds)

    def whole_after(self, seconds: float) -> None:
        """An operation on all ranks was good again, so long after the fault."""
        for it in self._now():
            it.to_whole.append(seconds)

    def wrong_result(self, what: str) -> None:
        """A value that is not the right one, or a tensor that changed and must not."""
        self.wrong.append(f"{self.where}: {what}")

    def hang(self, what: str) -> None:
        """A call, or a controller, that gave no answer when its time was over."""
        self.hangs.append(f"{self.where}: {what}")

    def wrong_error(self, what: str) -> None:
        """An error that is not the right one, or does not say whose fault it is."""
        self.errors.append(f"{self.where}: {what}")

    def leak(self, what: str) -> None:
        """Something of a process that grew and stayed."""
        self.leaks.append(f"{self.where}: {what}")

    def _now(self) -> tuple[Times, Times]:
        return self.times[self.kind], self.clients[self.client]
