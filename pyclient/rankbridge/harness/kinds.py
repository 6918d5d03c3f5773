"""Kinds of values of the vocabulary: each checks a value, and says itself as JSON Schema and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rankbridge.harness.problems import Findings, Path, nearest

Json = dict[str, Any]

REFERENCE = {"type": "string", "pattern": "^\\$[a-z_][a-z0-9_]*$"}
"""In a file, in the place of a number, a flag or a choice: a name of the matrix, `$size` or `$rank`."""

RANK = "$rank"


class Kind(Protocol):
    """What a word can be."""

    def check(self, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        """Notes what is wrong with a value. `by_rank`: it may differ from rank to rank, by ``$rank``."""

    def schema(self) -> Json:
        """Gives it as JSON Schema."""

    def __str__(self) -> str:
        """Gives it in words."""


def scalar(check: Callable[[Any, object], str]) -> Callable[[Any, object, Path, Findings, bool], None]:
    """Makes `check` of what tells what is wrong with a value, with references taken care of."""

    def checked(self: Any, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        if value == RANK and by_rank:
            return
        if isinstance(value, str) and value.startswith("$"):
            text = "`$rank` differs from rank to rank, and this does not" if value == RANK else ""
            found.add(at, text or f"there is no `{value}`{nearest(value, (RANK, '$size'))}")
        elif problem := check(self, value):
            found.add(at, problem)

    return checked


@dataclass(frozen=True)
class Text:
    """A text."""

    longest: int = 200

    def _wrong(self, value: object) -> str:
        if not isinstance(value, str):
            return f"expected text, got {shown(value)}"
        return "" if 0 < len(value) <= self.longest else f"expected 1 to {self.longest} characters"

    check = scalar(_wrong)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"type": "string", "minLength": 1, "maxLength": self.longest}

    def __str__(self) -> str:
        """In words."""
        return "text"


@dataclass(frozen=True)
class Whole:
    """A whole number in a range."""

    low: int = -(2**31)
    high: int = 2**31 - 1

    def _wrong(self, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"expected a whole number, got {shown(value)}"
        return "" if self.low <= value <= self.high else f"expected {self}, got {value}"

    check = scalar(_wrong)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"anyOf": [{"type": "integer", "minimum": self.low, "maximum": self.high}, REFERENCE]}

    def __str__(self) -> str:
        """In words."""
        if self.low == self.high:
            return str(self.low)
        if self.low < 0:
            return "a whole number"
        return f"{self.low} or more" if self.high >= 2**31 - 1 else f"{self.low:,} to {self.high:,}"


@dataclass(frozen=True)
class Number:
    """A number."""

    def _wrong(self, value: object) -> str:
        ok = isinstance(value, (int, float)) and not isinstance(value, bool)
        return "" if ok else f"expected a number, got {shown(value)}"

    check = scalar(_wrong)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"anyOf": [{"type": "number"}, REFERENCE]}

    def __str__(self) -> str:
        """In words."""
        return "a number"


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def _wrong(self, value: object) -> str:
        return "" if isinstance(value, bool) else f"expected true or false, got {shown(value)}"

    check = scalar(_wrong)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"anyOf": [{"type": "boolean"}, REFERENCE]}

    def __str__(self) -> str:
        """In words."""
        return "true or false"


@dataclass(frozen=True)
class Choice:
    """One of several texts, or anything that begins with one of `prefixes`."""

    values: tuple[str, ...]
    what: str = ""
    prefixes: tuple[str, ...] = ()

    def _wrong(self, value: object) -> str:
        if isinstance(value, str) and (value in self.values or self._begins(value)):
            return ""
        listed = self.what or f"one of {', '.join(self.values)}"
        return f"expected {listed}, got {shown(value)}{nearest(value, self.values)}"

    def _begins(self, value: str) -> bool:
        return value.startswith(self.prefixes) and value not in self.prefixes

    check = scalar(_wrong)

    def schema(self) -> Json:
        """As JSON Schema."""
        more = [{"type": "string", "pattern": f"^{it}."} for it in self.prefixes]
        return {"anyOf": [{"enum": list(self.values)}, *more, REFERENCE]}

    def __str__(self) -> str:
        """In words."""
        return self.what or " or ".join(f'"{it}"' for it in self.values)


@dataclass(frozen=True)
class Anything:
    """Any value that JSON has."""

    def check(self, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        """Nothing is wrong, but dates, which JSON does not have."""
        if not isinstance(value, (str, int, float, bool, list, dict)) and value is not None:
            found.add(at, f"expected what JSON has, got {shown(value)}")
        for key, it in value.items() if isinstance(value, dict) else ():
            self.check(it, (*at, key), found, by_rank)
        for place, it in enumerate(value) if isinstance(value, list) else ():
            self.check(it, (*at, place), found, by_rank)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {}

    def __str__(self) -> str:
        """In words."""
        return "any value"


@dataclass(frozen=True)
class Many:
    """A list of one kind."""

    of: Kind
    least: int = 0
    most: int = 10_000

    def check(self, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        """Checks every item."""
        if not isinstance(value, list):
            found.add(at, f"expected a list, got {shown(value)}")
            return
        if not self.least <= len(value) <= self.most:
            found.add(at, f"expected a list of {self.least} to {self.most:,}, got {len(value):,}")
            return
        for place, it in enumerate(value):
            self.of.check(it, (*at, place), found, by_rank)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"type": "array", "items": self.of.schema(), "minItems": self.least, "maxItems": self.most}

    def __str__(self) -> str:
        """In words."""
        return f"a list: {self.of}"


@dataclass(frozen=True)
class Named:
    """A table whose keys the author chooses."""

    of: Kind
    what: str = "name"

    def check(self, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        """Checks every value, and that keys are names."""
        if not isinstance(value, dict):
            found.add(at, f"expected a table, got {shown(value)}")
            return
        for key, it in value.items():
            if not key or key.startswith("$") or len(key) > 100:
                found.add((*at, key), f"{shown(key)} is no {self.what}")
            self.of.check(it, (*at, key), found, by_rank)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"type": "object", "additionalProperties": self.of.schema()}

    def __str__(self) -> str:
        """In words."""
        return f"a table by {self.what}: {self.of}"


@dataclass(frozen=True)
class ByRank:
    """A table by rank."""

    of: Kind

    def check(self, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        """Checks every value, and that keys are ranks."""
        if not isinstance(value, dict):
            found.add(at, f"expected a table by rank, got {shown(value)}")
            return
        for key, it in value.items():
            if not key.isdecimal():
                found.add((*at, key), f"expected a rank, got {shown(key)}")
            self.of.check(it, (*at, key), found, by_rank)

    def schema(self) -> Json:
        """As JSON Schema."""
        return {
            "type": "object",
            "patternProperties": {"^[0-9]+$": self.of.schema()},
            "additionalProperties": False,
        }

    def __str__(self) -> str:
        """In words."""
        return f"by rank: {self.of}"


@dataclass(frozen=True)
class Either:
    """One of several kinds; the first that takes the value's type says what is wrong with it."""

    kinds: tuple[Kind, ...]

    def check(self, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        """Nothing is wrong if any kind takes it; else the kind with the fewest problems says why."""
        tried = []
        shape = type(value) if isinstance(value, (list, dict)) else None
        fitting = [it for it in self.kinds if _shape_of(it) is shape]
        if len(fitting) == 1:
            fitting[0].check(value, at, found, by_rank)
            return
        for kind in fitting:
            it = Findings()
            kind.check(value, at, it, by_rank)
            if not it.problems:
                return
            # A kind that takes it but for something inside is the one that was meant.
            depth = max(len(problem.path) for problem in it.problems.values())
            tried.append((depth, it))
        deepest = max((depth for depth, _ in tried), default=0)
        if deepest > len(at):
            best = next(it for depth, it in tried if depth == deepest)
            for problem in best.problems.values():
                found.add(problem.path, problem.text)
        else:
            found.add(at, f"expected {self}, got {shown(value)}")

    def schema(self) -> Json:
        """As JSON Schema."""
        return {"anyOf": [it.schema() for it in self.kinds]}

    def __str__(self) -> str:
        """In words."""
        return "; or ".join(map(str, self.kinds))


@dataclass(frozen=True)
class Word:
    """A word of a table.

    Attributes:
        kind: What it can be.
        help: What it means, in a sentence.
        required: It must be there.
        by_rank: It may differ from rank to rank, by ``$rank``.
    """

    kind: Kind
    help: str
    required: bool = False
    by_rank: bool = False


@dataclass(frozen=True)
class Record:
    """A table whose words are known.

    Attributes:
        name: Its name, for the page and for the schema.
        words: Its words.
        one_of: Of these words, exactly one is there.
        more: Further words by what one of them says: of a call, the arguments of its operation.
    """

    name: str
    words: Mapping[str, Word]
    one_of: tuple[str, ...] = ()
    by: str = ""
    more: Mapping[str, Mapping[str, Word]] = field(default_factory=dict)

    def check(self, value: object, at: Path, found: Findings, by_rank: bool) -> None:
        """Checks that all words are known, that those required are there, and every value."""
        if not isinstance(value, dict):
            found.add(at, f"expected a table ({self.name}), got {shown(value)}")
            return
        words = self.known(value)
        # Of what is not known, the words are not known either.
        undecided = self.by in value and value[self.by] not in [*self.more]
        for key, it in value.items():
            if key in words:
                words[key].kind.check(it, (*at, key), found, by_rank or words[key].by_rank)
            elif not undecided:
                where = f" of {value[self.by]}" if self.by in value and self.more else ""
                found.add((*at, key), f"unknown word `{key}` in {self.name}{where}{nearest(key, words)}")
        for name, word in words.items():
            if word.required and name not in value:
                found.add(at, f"{self.name} needs `{name}`")
        chosen = [it for it in self.one_of if it in value]
        if self.one_of and len(chosen) != 1:
            listed = ", ".join(f"`{it}`" for it in self.one_of)
            had = f"it has {' and '.join(f'`{it}`' for it in chosen)}" if chosen else "it has none"
            found.add(at, f"{self.name} has one of {listed}: {had}")

    def known(self, value: Mapping[str, Any]) -> Mapping[str, Word]:
        """Gives the words that go with a value."""
        said = value.get(self.by)
        return {**self.words, **self.more.get(said, {})} if isinstance(said, str) else self.words

    def schema(self) -> Json:
        """As JSON Schema: a reference; `definition` has it."""
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> Json:
        """Gives the table itself as JSON Schema."""
        made: Json = {
            "type": "object",
            "properties": {name: _described(word) for name, word in self.words.items()},
            "required": [name for name, word in self.words.items() if word.required],
        }
        if not self.more:
            made["additionalProperties"] = False
        else:
            made["allOf"] = [
                {
                    "if": {"properties": {self.by: {"const": said}}, "required": [self.by]},
                    "then": {
                        "properties": {name: _described(word) for name, word in words.items()},
                        "required": [name for name, word in words.items() if word.required],
                    },
                }
                for said, words in self.more.items()
            ]
            made["unevaluatedProperties"] = False
        if self.one_of:
            made["oneOf"] = [{"required": [it]} for it in self.one_of]
        return made

    def __str__(self) -> str:
        """In words."""
        return f"a table: {self.name}"


def _shape_of(kind: Kind) -> type | None:
    """Gives what a value of a kind is in a file: a table, a list, or neither."""
    match kind:
        case Record() | Named() | ByRank():
            return dict
        case Many():
            return list
    return None


def _described(word: Word) -> Json:
    return {**word.kind.schema(), "description": word.help}


def shown(value: object) -> str:
    """Gives a value for people, cut."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a table"
        case list():
            return "a list"
        case float() if not math.isfinite(value):
            return str(value)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def records_in(kind: Kind, found: dict[str, Record] | None = None) -> dict[str, Record]:
    """Gives every table that a kind leads to, by name, the outermost first."""
    found = {} if found is None else found
    inner: Sequence[Kind] = ()
    match kind:
        case Record():
            if kind.name in found:
                return found
            found[kind.name] = kind
            inner = [word.kind for words in (kind.words, *kind.more.values()) for word in words.values()]
        case Many() | Named() | ByRank():
            inner = [kind.of]
        case Either():
            inner = kind.kinds
    for it in inner:
        records_in(it, found)
    return found
