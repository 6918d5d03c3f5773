"""From files to cases: a scenario with one combination of its matrix, checked whole before anything runs."""

from __future__ import annotations

import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from rankbridge.harness.consistency import check_consistency, check_load
from rankbridge.harness.gangs import load_paths
from rankbridge.harness.kinds import Record, shown
from rankbridge.harness.points import point_of
from rankbridge.harness.positions import Positions, line_and_column, positions_in_json, positions_in_toml
from rankbridge.harness.problems import BadScenario, Findings, Path, Problem, nearest
from rankbridge.harness.vocabulary import MOST_CASES, SCENARIO

MOST_BYTES = 1 << 20
"""Longest file."""

DEFAULT_TIMEOUT_MS = 10_000
_PROCESS_FAULTS = frozenset({"kill", "stop", "cont", "slow", "drop_link", "partition"})


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with one combination of its matrix.

    Attributes:
        name: The scenario's name, and the combination.
        file: Name of its file.
        data: The scenario, as vocabulary.py has it, without references but `$rank`.
        lines: Line of each step.
        chosen: The combination.
    """

    name: str
    file: str
    data: Mapping[str, Any]
    lines: Sequence[int]
    chosen: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Ranks in its gang."""
        return int(self.data["gang"]["size"])

    @property
    def backend(self) -> str:
        """What moves its data. Fake where nothing happens to processes, which it has but one of."""
        given = self.data["gang"].get("backend")
        processes = any(_PROCESS_FAULTS & it.keys() for it in faults_of(self.data))
        return str(given or ("gloo" if processes or self.load else "fake"))

    @property
    def load(self) -> tuple[str, ...]:
        """Modules with functions: names, and absolute paths of files."""
        return load_paths(self.data["gang"].get("load", ()), FilePath(self.file).parent)

    @property
    def limits(self) -> Mapping[str, int]:
        """Quotas of its ranks."""
        limits: Mapping[str, int] = self.data["gang"].get("limits", {})
        return limits

    @property
    def points(self) -> bool:
        """Whether faults come at collectives of functions."""
        return any(point_of(it.get("at", "")) for it in faults_of(self.data))

    @property
    def repeat(self) -> int:
        """How often it runs."""
        return int(self.data.get("repeat", 1))

    @property
    def timeout_ms(self) -> int:
        """Longest time of a call that has none of its own."""
        return int(self.data.get("timeout_ms", DEFAULT_TIMEOUT_MS))


def faults_of(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Gives every fault of a scenario."""
    for step in data["step"]:
        yield from faults_in(step)


def faults_in(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Gives the faults of a step."""
    given = step.get("fault", [])
    return [given] if isinstance(given, dict) else list(given)


def load(files: Sequence[str]) -> list[Case]:
    """Reads files, and checks them.

    Raises:
        BadScenario: Any of them cannot be run: with every problem of every file.
    """
    cases: list[Case] = []
    problems: list[Problem] = []
    for file in files:
        try:
            cases += cases_in(read(file), file)
        except BadScenario as error:
            problems += error.problems
    if problems:
        raise BadScenario(problems)
    if len(cases) > MOST_CASES:
        raise BadScenario([Problem((), f"{len(cases):,} cases; at most {MOST_CASES:,}")])
    return cases


def read(file: str) -> str:
    """Reads a file.

    Raises:
        BadScenario: It is not there, too long, or no text.
    """
    try:
        with FilePath(file).open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadScenario([Problem((), error.strerror or str(error), file)]) from error
    if len(content) > MOST_BYTES:
        raise BadScenario([Problem((), f"longer than {MOST_BYTES:,} bytes", file)])
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadScenario([Problem((), "no UTF-8", file, line, 1)]) from error


def cases_in(text: str, file: str) -> list[Case]:
    """Gives the cases of a scenario, JSON if the file's name ends so, else TOML.

    Raises:
        BadScenario: It cannot be run.
    """
    data, positions = parsed(text, file)
    found = Findings()
    cases = _combinations(data, found)
    for _, resolved in [] if found.problems else cases:
        check_load(resolved["gang"].get("load", ()), FilePath(file).parent, ("gang", "load"), found)
    _raise(found, positions, file)
    lines = [positions.of(("step", place))[0] for place in range(len(data["step"]))]
    return [
        Case(f"{data['name']}{_named(chosen)}", file, resolved, lines, chosen) for chosen, resolved in cases
    ]


def checked(record: Record, data: Any, positions: Positions, file: str) -> None:
    """Checks a file that is a table of known words.

    Raises:
        BadScenario: It is not, with everything that is wrong.
    """
    found = Findings()
    record.check(data, (), found, False)
    _raise(found, positions, file)


def _raise(found: Findings, positions: Positions, file: str) -> None:
    if found.problems:
        located = [
            replace(it, file=file, line=line, column=column)
            for it in found.problems.values()
            for line, column in [positions.of(it.path)]
        ]
        raise BadScenario(sorted(located, key=lambda it: (it.line, it.column)))


def parsed(text: str, file: str) -> tuple[Any, Positions]:
    """Parses a text, JSON if the file's name ends so, else TOML; gives where everything stands in it, too.

    Raises:
        BadScenario: It is neither.
    """
    try:
        if not file.endswith(".json"):
            return tomllib.loads(text), positions_in_toml(text)
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadScenario([Problem((), error.msg, file, error.lineno, error.colno)]) from error
    except tomllib.TOMLDecodeError as error:
        raise BadScenario([_toml_problem(str(error), text, file)]) from error
    except RecursionError as error:
        raise BadScenario([Problem((), "nested too deep", file)]) from error
    positions = positions_in_json(text)
    if positions.twice:
        twice = [Problem(it, f"`{it[-1]}` stands twice", file, *positions.of(it)) for it in positions.twice]
        raise BadScenario(twice)
    return data, positions


def _toml_problem(message: str, text: str, file: str) -> Problem:
    place = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if place is None:
        line, column = line_and_column(text, len(text))
        return Problem((), message.removesuffix(" (at end of document)"), file, line, column)
    said = message[: place.start()]
    if "Cannot overwrite" in said or "Cannot declare" in said:
        said += ": a name stands twice"
    return Problem((), said, file, int(place[1]), int(place[2]))


def _combinations(data: Any, found: Findings) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Gives combinations, with the scenario of each. Notes what is wrong, and gives nothing then."""
    matrix = data.get("matrix", {}) if isinstance(data, dict) else {}
    if isinstance(matrix, dict):
        _check_matrix(matrix, found)
    if matrix and not found.problems:
        SCENARIO.words["matrix"].kind.check(matrix, ("matrix",), found, False)
    if found.problems:
        return []
    repeat = data.get("repeat", 1) if isinstance(data, dict) else 1
    count = math.prod(map(len, matrix.values())) * (repeat if isinstance(repeat, int) else 1)
    if count > MOST_CASES:
        found.add(("matrix" if matrix else "repeat",), f"{count:,} cases; at most {MOST_CASES:,}")
        return []
    cases = []
    for values in itertools.product(*matrix.values()):
        chosen = dict(zip(matrix, values, strict=True))
        before = len(found.problems)
        resolved = _resolved(data, chosen, (), found)
        if len(found.problems) == before:
            SCENARIO.check(resolved, (), found, False)
        if len(found.problems) == before:
            check_consistency(resolved, found)
        cases.append((chosen, resolved))
        if len(found.problems) > 20:
            break
    return cases


def _check_matrix(matrix: Mapping[str, Any], found: Findings) -> None:
    for name, values in matrix.items():
        at: Path = ("matrix", name)
        if name == "rank":
            found.add(at, "`rank` is each rank's own")
        if not re.fullmatch("[a-z_][a-z0-9_]*", name):
            found.add(at, f"{shown(name)} is no name: small letters, digits and underscores")
        for place, value in enumerate(values) if isinstance(values, list) else ():
            if isinstance(value, str) and value.startswith("$"):
                found.add((*at, place), f"a value of the matrix is itself none of its names: {shown(value)}")
            if any(value == other and type(value) is type(other) for other in values[:place]):
                found.add((*at, place), f"{shown(value)} stands twice")


def _resolved(value: Any, chosen: Mapping[str, Any], at: Path, found: Findings) -> Any:
    """Gives a value with what references stand for. `$rank` stays; `$size` is the gang's, unless the matrix has one."""
    match value:
        case dict():
            if not at and isinstance(value.get("gang"), dict):
                gang = _resolved(value["gang"], chosen, ("gang",), found)
                chosen = {"size": gang.get("size"), **chosen}
            return {
                key: it if (*at, key) == ("matrix",) else _resolved(it, chosen, (*at, key), found)
                for key, it in value.items()
            }
        case list():
            return [_resolved(it, chosen, (*at, place), found) for place, it in enumerate(value)]
        case str() if value.startswith("$") and value != "$rank":
            if value[1:] in chosen:
                return chosen[value[1:]]
            known = [f"${it}" for it in (*chosen, "rank", "size")]
            found.add(at, f"the matrix has no `{value}`{nearest(value, known)}")
    return value


def _named(chosen: Mapping[str, Any]) -> str:
    if not chosen:
        return ""
    return f" [{' '.join(f'{name}={value}' for name, value in chosen.items())}]"
