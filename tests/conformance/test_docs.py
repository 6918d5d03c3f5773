"""The documentation's examples do what they say, its tables name what is here, what is written from data is fresh."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.conformance import deviations, page, tables, translations
from tests.conformance.test_recorded_cases import SUITES
from tests.support.gangs import up

DOCS = Path(__file__).parents[2] / "docs"


def test_the_python_example_prints_what_it_says(tmp_path: Path) -> None:
    text = (DOCS / "groups_and_meshes.md").read_text()
    (program,) = re.findall(r"<!-- python example: begin -->\n```python\n(.*?)```", text, re.DOTALL)
    expected = re.findall(r"print\(.*\)  # (.*)", program)
    assert len(expected) == program.count("print(") > 5
    with up(tmp_path, 4, "fake") as gang:
        gang.endpoints_file.rename(tmp_path / "endpoints.json")
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


def test_every_suite_is_named_in_the_documentation() -> None:
    text = (DOCS / "conformance.md").read_text()
    named = re.findall(r"^\| ([a-z0-9_, ]+) \| .* \| .* \|$", text, re.MULTILINE)
    assert sorted(name for names in named for name in names.split(", ") if name in SUITES) == sorted(SUITES)


def test_what_is_written_from_the_tables_is_fresh() -> None:
    written = page.pages()
    assert set(written) == {page.DEVIATIONS, page.CONFORMANCE}
    assert {path: path.read_text() for path in written} == written
    assert page.main(["--check"]) == 0


def test_every_entry_is_on_its_page_with_its_reason() -> None:
    by_page = {page.DEVIATIONS: deviations.read(), page.CONFORMANCE: translations.read()}
    for path, entries in by_page.items():
        text = path.read_text()
        assert [entry.id for entry in entries if f"{entry.bridge} | {entry.why} |" not in text] == []


def test_a_page_that_is_not_what_the_table_says_is_written_anew() -> None:
    (entry, *others) = translations.read()
    stale = page.conformance_page(page.CONFORMANCE.read_text(), others)
    assert entry.does not in stale
    assert page.conformance_page(stale, [entry, *others]) == page.CONFORMANCE.read_text()


def test_no_two_entries_have_one_name() -> None:
    names = [entry.id for entry in tables.read()]
    assert sorted(set(names)) == sorted(names)
