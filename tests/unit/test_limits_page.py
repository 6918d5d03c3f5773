"""docs/limits.md: each number is the one in the code, and each option is one of the command line."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from rankbridge_server.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text()
ROWS = re.findall(r"^\| (?P<what>.+?) \| (?P<limit>.+?) \| (?P<where>`.+?`) \|$", PAGE, re.MULTILINE)
CONSTANTS = [(limit, where.strip("`")) for _, limit, where in ROWS if not where.startswith("`--")]
OPTIONS = [option for _, _, where in ROWS for option in re.findall(r"`(--[\w-]+)`", where)]


@pytest.mark.parametrize(("limit", "where"), CONSTANTS, ids=[where for _, where in CONSTANTS])
def test_a_number_is_the_one_in_the_code(limit: str, where: str) -> None:
    module, _, name = where.rpartition(".")
    assert getattr(import_module(f"rankbridge_server.{module}"), name) == int(limit.replace(",", ""))


def test_options_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("up", "rank"):
        assert main([command, "--help"]) == 0
        help_text = capsys.readouterr().out
        assert len(OPTIONS) == 7
        assert [option for option in OPTIONS if option not in help_text] == []
