"""Files that are read again when they change."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from rankbridge_server.core import reread
from rankbridge_server.core.reread import LOOK_S, Reread


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    it = Clock()
    monkeypatch.setattr(reread, "time", it)
    return it


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "number"
    path.write_text("1")
    return path


def replace(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def test_a_file_is_looked_at_once_a_second(clock: Clock, file: Path) -> None:
    number = Reread([file], lambda: int(file.read_text()))
    replace(file, "2")
    assert number() == 1
    clock.now += LOOK_S
    assert number() == 2
    replace(file, "3")
    assert number() == 2
    number.look()
    assert number() == 3


def test_what_cannot_be_loaded_changes_nothing_and_is_logged_once(
    clock: Clock, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    number = Reread([file], lambda: int(file.read_text()))
    with caplog.at_level(logging.WARNING, logger="rankbridge"):
        replace(file, "nonsense")
        for _ in range(3):
            clock.now += LOOK_S
            assert number() == 1
        file.unlink()
        clock.now += LOOK_S
        assert number() == 1
    assert len(caplog.messages) == 2
    assert "nonsense" in caplog.messages[0]
    file.write_text("4")
    clock.now += LOOK_S
    assert number() == 4


def test_what_is_not_there_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Reread([tmp_path / "none"], lambda: (tmp_path / "none").read_text())
