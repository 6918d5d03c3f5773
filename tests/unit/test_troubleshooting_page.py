"""docs/troubleshooting.md: it has every error code, and names no code, option or page that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rankbridge_server.cli import main
from rankbridge_server.core.errors import ErrorCode

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "troubleshooting.md").read_text()
OF_GRPC = {"UNAVAILABLE", "UNAUTHENTICATED", "PERMISSION_DENIED"}


def test_it_has_every_error_code_and_no_other() -> None:
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+|ABORTED|CANCELLED|INTERNAL|MISMATCH)(?:[ `])", PAGE))
    environment = {"RANKBRIDGE_TOKEN_FILE"}
    assert named - OF_GRPC - environment == {code.name for code in ErrorCode} - {"UNSPECIFIED"}


def test_its_options_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for command in ("up", "rank", "status"):
        assert main([command, "--help"]) == 0
        texts.append(capsys.readouterr().out)
    options = set(re.findall(r"(--[a-z][a-z-]+)", PAGE)) - {"--ipc"}
    assert [option for option in options if not any(option in text for text in texts)] == []


def test_its_links_lead_somewhere() -> None:
    pages = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(pages) >= 8
    assert [page for page in pages if not (DOCS / page).exists()] == []
