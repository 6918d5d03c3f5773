"""What explains a difference between an answer and what was recorded: the entries of a table.

Every entry says which differences it explains, and what the bridge must have answered instead: it is checked for each
of them. There are two tables: deviations, and translations.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from tests.conformance.compare import ABSENT, Difference, between
from tests.conformance.errors import text
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.rules import CONDITIONS, VALUES


@dataclass(frozen=True, kw_only=True)
class Expect:
    """What the bridge must answer instead. Exactly one is set.

    Attributes:
        error: Codes, one of which the answer's error must have.
        value: A value.
        absent: That it does not tell this at all.
        rule: Name of a function of `rules.VALUES`, which computes the right value.
    """

    error: tuple[str, ...] = ()
    value: Any = ABSENT
    absent: bool = False
    rule: str = ""

    def wrong(self, case: Case, moment: Moment, difference: Difference) -> str | None:
        """Says what is wrong with an answer; None: nothing is."""
        if self.error:
            error = moment.answer.get("error", {})
            return None if error.get("code") in self.error else f"expected an error {'/'.join(self.error)}"
        got = difference.got
        if difference.path == "":
            if "ok" not in moment.answer:
                return "expected a value"
            got = moment.answer["ok"]
        if self.absent:
            expected: Any = ABSENT
        else:
            expected = VALUES[self.rule](case, moment, difference) if self.rule else self.value
        found = list(between(expected, got, difference.path or "ok"))
        return None if not found else f"the right one is {expected!r}"


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One entry.

    Attributes:
        id: Names it.
        systems: Whose behaviour it is, for people.
        does: What the system does.
        bridge: What the bridge does.
        why: Why it does.
        expect: How that is checked.
        files: Names of the files whose cases it is for, as patterns.
        cases: Names of the cases, as patterns.
        methods: Names of what is called, as patterns.
        paths: Where the differences are, as patterns.
        recorded: Pattern of what was recorded: "ok", "hang", "exit", "error Type: message".
        inputs: What a rank must have been given, by name: a value, or a list of possible ones.
        when: Name of a condition of `rules.CONDITIONS`.
    """

    id: str
    systems: str
    does: str
    bridge: str
    why: str
    expect: Expect
    files: tuple[str, ...]
    cases: tuple[str, ...] = ("*",)
    methods: tuple[str, ...] = ("*",)
    paths: tuple[str, ...] = ("*",)
    recorded: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    when: str = ""

    def explains(self, case: Case, moment: Moment, difference: Difference) -> bool:
        """Whether it is about this difference."""
        return (
            _matches(case.suite, self.files)
            and _matches(case.name, self.cases)
            and _matches(moment.method, self.methods)
            and _matches(difference.path, self.paths)
            and re.search(self.recorded, _kind(moment.recorded[-1])) is not None
            and all(_among(moment.inputs.get(key, ABSENT), wanted) for key, wanted in self.inputs.items())
            and (not self.when or CONDITIONS[self.when](case, moment))
        )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _among(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else bool(value == wanted)


def _kind(recorded: Answer) -> str:
    if "ok" in recorded:
        return "ok"
    if "error" in recorded:
        return f"error {text(recorded['error'])}"
    return "hang" if "hang" in recorded else "exit"


E = TypeVar("E", bound=Explanation)


def read_table(file: Path, name: str, entry_of: type[E]) -> tuple[E, ...]:
    """Reads the table of a name from a TOML file, whose only one it is.

    Raises:
        AssertionError: An entry is not as its class wants it, or names a condition or a value that is not there.
        TypeError: An entry has a key that its class does not know, or lacks one.
    """
    held = tomllib.loads(file.read_text())
    assert list(held) == [name], file
    return tuple(_entry(entry, entry_of) for entry in held[name])


def _value(written: Any) -> Any:
    # TOML has no null.
    if isinstance(written, dict):
        return {key: _value(value) for key, value in written.items()}
    return None if written == "none" else written


def _entry(entry: Mapping[str, Any], entry_of: type[E]) -> E:
    expect = dict(entry["expect"])
    if "error" in expect:
        expect["error"] = (expect["error"],) if isinstance(expect["error"], str) else tuple(expect["error"])
    if "value" in expect:
        expect["value"] = _value(expect["value"])
    assert len(expect) == 1, entry["id"]
    lists = {
        key: tuple(value) for key, value in entry.items() if key in ("files", "cases", "methods", "paths")
    }
    assert entry.get("when", "") in ("", *CONDITIONS), entry["id"]
    assert expect.get("rule", "") in ("", *VALUES), entry["id"]
    return entry_of(**{**entry, **lists, "expect": Expect(**expect)})
