"""Scores of runs, kept in a file as they come: a table can be made of several calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.diagnose.score import Score

Row = dict[str, Score]
"""By who was scored."""


class Results:
    """What is known, by a run's name. Thread-safe. `path`: None: nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[str, Row] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                name, row = json.loads(line)
                self._known[name] = {who: Score(**it) for who, it in row.items()}

    def of(self, name: str, run: Callable[[], Row]) -> Row:
        """What the file has of a run; else what it gives now."""
        if name not in self._known:
            row = run()
            with self._lock:
                self._known[name] = row
                if self._path is not None:
                    with self._path.open("a") as file:
                        file.write(json.dumps([name, {who: asdict(it) for who, it in row.items()}]) + "\n")
        return self._known[name]
