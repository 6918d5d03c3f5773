"""Settings that `up` and `rank` share."""

from __future__ import annotations

import math

import pytest

from rankbridge_server.cli.main import parser


@pytest.mark.parametrize("command", ["up", "rank"])
@pytest.mark.parametrize(("said", "seconds"), [([], 1.0), (["0.25"], 0.25), (["0"], math.inf)])
def test_stragglers_are_told_after_so_many_seconds_or_never(
    command: str, said: list[str], seconds: float
) -> None:
    options = parser().parse_args([command, *(["--straggler-after", *said] if said else [])])
    assert options.straggler_after == seconds


@pytest.mark.parametrize("said", ["-1", "nan", "soon"])
def test_what_is_no_time_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["up", f"--straggler-after={said}"])
    assert "seconds, 0 or more" in capsys.readouterr().err
