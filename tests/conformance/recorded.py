"""The records: what other systems were recorded to do, case by case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

Json = Any


@dataclass(frozen=True, eq=False)
class Case:
    """One case: the inputs, and for each rank what the system answered there.

    Attributes:
        suite: Name of its file, without ".json".
        place: Its place in the file.
        name: Its name; several cases of a file may have the same.
        world: Ranks that it needs.
        data: All that the file has of it.
        version: Which version of the system the file is of. Empty: the file does not say, or has several.
    """

    suite: str
    place: int
    name: str
    world: int
    data: Json
    version: str = ""

    def __str__(self) -> str:
        """Names the file, the case, its place and its inputs."""
        given = self.data.get("inputs", self.data.get("inputs_per_rank", [None])[:1])
        inputs = json.dumps(given, separators=(",", ":")).replace('"', "")
        return f"{self.suite}/{self.name}#{self.place}-w{self.world}-{inputs[:100]}"

    @property
    def ranks(self) -> range:
        """All ranks."""
        return range(self.world)

    @property
    def inputs(self) -> Json:
        """What was given to all ranks alike."""
        return self.data["inputs"]

    def inputs_of(self, rank: int) -> Mapping[str, Any]:
        """What a rank was given."""
        inputs: Mapping[str, Any]
        inputs = self.data["inputs_per_rank"][rank] if "inputs_per_rank" in self.data else self.data["inputs"]
        return inputs

    @property
    def answers(self) -> list[Json]:
        """What each rank answered; no rank has an error."""
        assert all("ok" in answer for answer in self.data["per_rank"]), f"{self} has errors"
        return [answer["ok"] for answer in self.data["per_rank"]]

    @property
    def refused(self) -> bool:
        """Whether every rank refused it."""
        errors = ["error" in answer for answer in self.data["per_rank"]]
        assert all(errors) or not any(errors)
        return all(errors)


def read(file: Path) -> tuple[Case, ...]:
    """Reads a file of cases."""
    held = json.loads(file.read_text())
    return tuple(
        Case(
            suite=file.stem,
            place=place,
            name=case["id"] if "id" in case else case["case"],
            world=case.get("world", 1),
            data=case,
            version=held.get("source", ""),
        )
        for place, case in enumerate(held["cases"])
    )


def read_all(folder: Path = DATA) -> dict[str, tuple[Case, ...]]:
    """Reads all files of a folder, by name."""
    return {file.stem: read(file) for file in sorted(folder.glob("*.json"))}


@cache
def cases(suite: str) -> tuple[Case, ...]:
    """All cases of a committed file."""
    return read(DATA / f"{suite}.json")
