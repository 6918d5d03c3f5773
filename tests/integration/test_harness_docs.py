"""docs/harness.md and docs/harness_language.md: every example does what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.gangs import RANKBRIDGE

from rankbridge.harness.known import load_known

pytestmark = pytest.mark.usefixtures("quick_gangs")

DOCS = Path(__file__).resolve().parents[2] / "docs"
SECONDS = 120


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_scenarios_of_the_page_pass_but_for_the_one_whose_output_it_shows(tmp_path: Path) -> None:
    loss, *passing, known = blocks("harness.md", "toml")
    (tmp_path / "loss.toml").write_text(loss)
    (tmp_path / "app.py").write_text(blocks("functions.md", "python")[0])
    for place, text in enumerate(passing):
        (tmp_path / f"{place}.toml").write_text(text)
    (tmp_path / "known.toml").write_text(known)
    assert load_known(str(tmp_path / "known.toml")).reason("gathering unequal rows [size=2 dtype=complex64]")

    def run(*files: str) -> subprocess.CompletedProcess[str]:
        command = [RANKBRIDGE, "test", *files]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)

    (shown,) = blocks("harness.md", "text")
    failed = run("loss.toml")
    assert (failed.returncode, re.sub(r"\([0-9a-f]{32}\)", "(ID)", failed.stdout)) == (1, shown)
    passed = run(*(f"{place}.toml" for place in range(len(passing))))
    assert (passed.returncode, passed.stdout.count("\nok ")) == (0, 7), passed.stdout


def test_the_tests_of_the_page_pass_in_pytest(tmp_path: Path) -> None:
    (text,) = blocks("harness.md", "python")
    (tmp_path / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
    assert "5 passed" in done.stdout, done.stdout


def test_the_session_of_the_page_is_answered_as_it_says() -> None:
    (requests,), (shown,) = blocks("harness_language.md", "json"), blocks("harness_language.md", "text")
    done = subprocess.run(
        [RANKBRIDGE, "drive"], input=requests, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0
    said = [_bare(json.loads(line)) for line in done.stdout.splitlines()]
    lines = [json.loads(line) for line in shown.splitlines()]
    (eighth,) = (it for it in said if it.get("id") == 8)
    assert set(eighth["ok"]["errors"]) == {"0", "1"}

    def by_id(answers: list[Any]) -> dict[Any, Any]:
        # Events come when they come.
        return {it.get("id", it.get("event")): it for it in answers}

    assert {key: it for key, it in by_id(said).items() if key != 8} == by_id(lines)


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = (
            "pid",
            "took_ms",
            "text",
            "message",
            "how",
            "replaced" if "event" in value else "",
            "endpoints",
        )
        return {key: _bare(it) for key, it in value.items() if key not in left_out}
    return [_bare(it) for it in value] if isinstance(value, list) else value


@pytest.mark.parametrize("language", ["bash", "node", "perl", "ruby", "go"])
def test_the_page_names_a_folder_of_each_helper(language: str) -> None:
    assert (DOCS.parent / "harness" / language).is_dir()
    assert language in (DOCS / "harness_language.md").read_text().lower()
