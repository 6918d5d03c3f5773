"""Reports on timings, against what torchgfn wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankbridge import InvalidArgumentError, StepImbalance, StepTime, report_load_imbalance, report_time_info

# What torchgfn logged, where it did not fail.
RECORDED = json.loads((Path(__file__).parent / "recorded_reports.json").read_text())
REPORTS: dict[str, Any] = {
    "report_time_info": report_time_info,
    "report_load_imbalance": report_load_imbalance,
}

TWO: list[dict[str, Any]] = [
    {"sample": [1.0, 2.0], "loss": [0.5]},
    {"sample": [3.0, 2.0], "loss": [1.5]},
]


def test_times_are_told_for_each_rank_and_over_all() -> None:
    report = report_time_info(TWO)
    assert report.ranks[1] == (
        StepTime(step="sample", mean=2.5, total=5.0),
        StepTime(step="loss", mean=1.5, total=1.5),
    )
    assert (report.maximum, report.average) == (
        {"sample": 5.0, "loss": 1.5},
        {"sample": 4.0, "loss": 1.0},
    )


def test_the_slowest_rank_of_each_iteration_makes_the_others_wait() -> None:
    assert report_load_imbalance(TWO).steps == (
        StepImbalance(step="sample", useful=4.0, waiting=1.0),
        StepImbalance(step="loss", useful=1.0, waiting=0.5),
    )


def test_steps_that_not_all_ranks_have_are_averaged_over_those_and_not_compared() -> None:
    timings = [{"a": 1.0, "mine": 2.0}, {"a": 2.0}]
    assert report_time_info(timings).average == {"a": 1.5, "mine": 2.0}
    assert report_load_imbalance(timings).steps == (
        StepImbalance(step="a", useful=1.5, waiting=0.5),
        StepImbalance(step="mine", useful=None, waiting=None),
    )


def test_reports_read_as_torchgfn_wrote_them() -> None:
    assert str(report_time_info([{"a": [1.0, 2.0]}])) == (
        "Timing information for each rank:\n"
        "Rank 0 timing information:\n"
        "  a: 1.5000 seconds (total: 3.0000 seconds)\n"
        "\nMaximum timing information:\n"
        "  a: 3.0000 seconds\n"
        "\nAverage timing information:\n"
        "  a: 3.0000 seconds"
    )
    imbalance = report_load_imbalance([{"a": [1.0], "b": [2.0]}, {"a": [2.0]}])
    assert imbalance.lines == (
        "Step Name                  Useful Work      Waiting",
        "-" * 80,
        "a                             1.5000s     0.5000s",
        "Time for Step - 'b' not found in all ranks, skipping...",
    )


def test_timings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rank 0 has no iteration of step 'a'"):
        report_time_info([{"a": []}])
    with pytest.raises(InvalidArgumentError, match="equally many iterations") as caught:
        report_load_imbalance([{"a": [1.0, 2.0]}, {"a": [1.0]}])
    assert caught.value.got == "[2, 1]"
    with pytest.raises(InvalidArgumentError, match="there are no timings"):
        report_load_imbalance([])
    assert report_load_imbalance([{}]).steps == ()


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['report']} {case['timings']}")
def test_recorded_reports(case: dict[str, Any]) -> None:
    assert list(REPORTS[case["report"]](case["timings"]).lines) == case["log"]
