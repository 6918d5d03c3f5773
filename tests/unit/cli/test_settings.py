"""Settings that `up` and `rank` share."""

from __future__ import annotations

import math

import click
import pytest

from rankbridge_server.cli import main, rank, up


@pytest.mark.parametrize("command", [up.COMMAND, rank.COMMAND])
@pytest.mark.parametrize(("said", "seconds"), [([], 1.0), (["0.25"], 0.25), (["0"], math.inf)])
def test_stragglers_are_told_after_so_many_seconds_or_never(
    command: click.Command, said: list[str], seconds: float
) -> None:
    context = command.make_context("rankbridge", ["--straggler-after", *said] if said else [])
    assert context.params["straggler_after"] == seconds


@pytest.mark.parametrize("said", ["-1", "nan", "soon"])
def test_what_is_no_time_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", f"--straggler-after={said}"]) == 2
    assert "seconds, 0 or more" in capsys.readouterr().err
