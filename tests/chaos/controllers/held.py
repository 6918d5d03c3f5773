"""What the Elixir controller holds, as its runtime tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tests.chaos.controllers.process import ElixirProcess
from tests.chaos.findings import Findings

from rankbridge.harness.usage import SETTLE_S, until


@dataclass(frozen=True)
class Held:
    """Elixir processes; and ports, which are its sockets and open files."""

    processes: int
    ports: int

    @classmethod
    def by(cls, elixir: ElixirProcess) -> Self:
        """What it holds now. Raises NoAnswerError."""
        return cls(**elixir.ask("held"))

    def count_leaks(self, elixir: ElixirProcess, findings: Findings, seconds: float = SETTLE_S) -> Held:
        """Finds what it holds more than this, after `seconds` at the latest; gives what it holds then."""
        now = self

        def down() -> bool:
            nonlocal now
            now = Held.by(elixir)
            return now.processes <= self.processes and now.ports <= self.ports

        if not until(down, seconds):
            findings.leak(f"the Elixir controller held {self}, and holds {now}")
        return now
