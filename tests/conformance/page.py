"""Writes what the documentation has of the tables: `python -m tests.conformance.page`.

From deviations all of docs/deviations.md, from translations a part of docs/conformance.md. With --check, says whether
it is so already.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from tests.conformance import deviations, translations
from tests.conformance.deviations import KINDS, Deviation
from tests.conformance.explanations import Explanation
from tests.conformance.translations import Translation

DOCS = Path(__file__).resolve().parents[2] / "docs"
DEVIATIONS = DOCS / "deviations.md"
CONFORMANCE = DOCS / "conformance.md"

HEAD = """# Deviations

Where the bridge does another thing than the systems that it was compared with ([conformance.md](conformance.md)): only
where what was recorded of them is a bug, a crash or a hang. Each row is checked: `make conformance` fails if the bridge
does anything but what stands here, and if no recorded case needs the row. What is only
[said in another way](conformance.md#said-in-another-way) is no deviation. Written by `python -m tests.conformance.page`
from [tests/conformance/deviations.toml](../tests/conformance/deviations.toml); change that.

What is the matter with the other system's behaviour:
"""

BEGIN = "<!-- translations: begin, written by `python -m tests.conformance.page` -->\n"
END = "<!-- translations: end -->\n"


def deviations_page(table: Sequence[Deviation]) -> str:
    """Writes the page of deviations."""
    entries = "".join(
        fill(f"- **{kind}**: {what}.", 120, subsequent_indent="  ") + "\n" for kind, what in KINDS.items()
    )
    lines = [HEAD, entries.removesuffix("\n")]
    titles = dict.fromkeys(_title(entry) for entry in table)
    for title in titles:
        lines += ["", f"## {title}", "", "| what it does | | the bridge | why |", "| --- | --- | --- | --- |"]
        lines += [_row(entry) for entry in table if _title(entry) == title]
    return "\n".join(lines) + "\n"


def _title(entry: Explanation) -> str:
    return entry.systems.replace(",", " ").split()[0]


def _row(entry: Deviation) -> str:
    whose = "" if entry.systems == _title(entry) else f"({entry.systems}) "
    return f"| {whose}{entry.does} | {entry.kind} | {entry.bridge} | {entry.why} |"


def translations_part(table: Sequence[Translation]) -> str:
    """Writes the table of translations, with the marks around it."""
    rows = [f"| {it.systems}: {it.does} | {it.bridge} | {it.why} |\n" for it in table]
    return "".join([BEGIN, "| there | here | why |\n", "| --- | --- | --- |\n", *rows, END])


def conformance_page(text: str, table: Sequence[Translation]) -> str:
    """Writes the table of translations into the page about conformance, which has its marks once."""
    part = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    assert len(part.findall(text)) == 1, CONFORMANCE
    return part.sub(lambda _: translations_part(table), text)


def pages() -> dict[Path, str]:
    """Gives what is to be in each file."""
    return {
        DEVIATIONS: deviations_page(deviations.read()),
        CONFORMANCE: conformance_page(CONFORMANCE.read_text(), translations.read()),
    }


def main(arguments: Sequence[str]) -> int:
    """Writes the pages, or checks them."""
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text() != text}
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is not what `python -m tests.conformance.page` writes")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
