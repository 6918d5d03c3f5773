"""The vocabulary as JSON Schema, and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rankbridge.harness.kinds import Record, Word, records_in
from rankbridge.harness.operations import DECLARED
from rankbridge.harness.requests import DO, REQUEST
from rankbridge.harness.vocabulary import SCENARIO


def schema() -> dict[str, Any]:
    """Gives the JSON Schema of scenarios."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of `rankbridge test`",
        "description": "Written by scripts/scenarios.py from pyclient/rankbridge/harness/vocabulary.py.",
        "$ref": f"#/$defs/{SCENARIO.name}",
        "$defs": {name: it.definition() for name, it in records_in(SCENARIO).items()},
    }


def page() -> Iterator[str]:
    """Gives the page of words, line by line."""
    yield "# Words of scenarios"
    yield ""
    yield "Written by `scripts/scenarios.py` from `pyclient/rankbridge/harness/vocabulary.py`. [harness.md](harness.md)"
    yield "shows how they are used; [scenario.schema.json](scenario.schema.json) is the same as JSON Schema."
    yield ""
    yield "In a file, `$name` stands for a value of the matrix, `$size` for the gang's size, and where it says"
    yield "*by rank*, `$rank` for each rank's own number."
    for record in records_in(SCENARIO).values():
        if record.name != "other":
            yield from _table(record)
    yield ""
    yield "## arguments of calls"
    yield ""
    yield "Beside these words, a call has the arguments of its operation, by their names in"
    yield "[operations.md](operations.md); those of one rank stand in `each` and in `but`."
    yield ""
    yield "| operation | on all members | on one rank |"
    yield "| --- | --- | --- |"
    for name, it in DECLARED.items():
        of_all = ", ".join(f"`{word}`" for word in it.of_all) if it.of_group else "-"
        of_one = (
            "the same"
            if it.of_all == it.of_one and it.of_group
            else ", ".join(f"`{word}`" for word in it.of_one)
        )
        yield f"| `{name}` | {of_all} | {of_one} |"
    yield from _requests()


def _requests() -> Iterator[str]:
    yield ""
    yield "## Requests of the driver"
    yield ""
    yield "Of `rankbridge drive` ([harness_language.md](harness_language.md)). Every request has:"
    yield ""
    yield from _rows(REQUEST.words)
    for name, text in DO.items():
        yield ""
        yield f"### {name}"
        yield ""
        yield text
        if words := REQUEST.more[name]:
            yield ""
            yield from _rows(words)


def _table(record: Record) -> Iterator[str]:
    yield ""
    yield f"## {record.name}"
    yield ""
    if record.one_of:
        yield f"Exactly one of {', '.join(f'`{it}`' for it in record.one_of)}."
        yield ""
    yield from _rows(record.words)


def _rows(words: Mapping[str, Word]) -> Iterator[str]:
    yield "| word | value | |"
    yield "| --- | --- | --- |"
    for name, word in words.items():
        yield f"| `{name}` | {_value(word)} | {word.help} |"


def _value(word: Word) -> str:
    notes = [*(["required"] if word.required else []), *(["by rank"] if word.by_rank else [])]
    return f"{word.kind} (*{', '.join(notes)}*)" if notes else str(word.kind)
