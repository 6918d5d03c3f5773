"""What Prometheus reads of a gang, and the dashboard that shows it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.processes import stop
from tests.support.waiting import until

import rankbridge

DOCS = Path(__file__).resolve().parents[2] / "docs"
TIMEOUT_S = 60
Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    options = [*PATIENT, "--metrics", "127.0.0.1:0"]
    with up(tmp_path_factory.mktemp("metrics"), 3, options=options) as running:
        yield running


def scraped(url: str) -> Values:
    with urlopen(url, timeout=TIMEOUT_S) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert len({it.name for it in families}) == len(families)
    return {(it.name, frozenset(it.labels.items())): it.value for each in families for it in each.samples}


def url(gang: RunningGang) -> str:
    return str(
        json.loads((Path(gang.targets[0].removeprefix("unix:")).parent / "gang.json").read_text())["metrics"]
    )


def value(values: Values, name: str, **labels: object) -> float:
    return values[name, frozenset((key, str(it)) for key, it in labels.items())]


def test_operations_are_counted_by_rank_group_and_kind(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        before = scraped(url(gang))
        driver.new_group("pair", [0, 2])
        for _ in range(3):
            driver.barrier()
        driver.barrier(group="pair")
        refs = driver.put([np.ones(4, np.float32)] * 3)
        with pytest.raises(rankbridge.RankBridgeError):
            driver.all_reduce([refs[0], refs[1], driver[2].put(np.ones(5, np.float32))])
        after = scraped(url(gang))

        def more(name: str, **labels: object) -> float:
            key = name, frozenset((key, str(it)) for key, it in labels.items())
            return after.get(key, 0.0) - before.get(key, 0.0)

        for rank in range(3):
            assert (
                more("rankbridge_collective_duration_seconds_count", rank=rank, group="world", op="barrier")
                == 3
            )
            assert (
                more(
                    "rankbridge_collective_duration_seconds_bucket",
                    rank=rank,
                    group="world",
                    op="barrier",
                    le="+Inf",
                )
                == 3
            )
            seconds = more(
                "rankbridge_collective_duration_seconds_sum", rank=rank, group="world", op="barrier"
            )
            waited = more("rankbridge_collective_wait_seconds_total", rank=rank, group="world", op="barrier")
            assert 0 < waited <= seconds < TIMEOUT_S
            assert (
                more(
                    "rankbridge_operation_failures_total",
                    rank=rank,
                    group="world",
                    op="all_reduce",
                    code="MISMATCH",
                )
                == 1
            )
        pair = [
            more("rankbridge_collective_duration_seconds_count", rank=it, group="pair", op="barrier")
            for it in range(3)
        ]
        assert pair == [1, 0, 1]
        assert [more("rankbridge_verdicts_total", rank=it, kind="mismatch") for it in range(3)] == [1, 0, 0]
        assert [value(after, "rankbridge_refs", rank=it) for it in range(3)] == [1, 1, 2]
        assert value(after, "rankbridge_tensor_bytes", rank=2) == 36
        assert value(after, "rankbridge_generation", rank=0) == 1


def test_verdicts_that_are_asked_for_are_counted_by_the_rank_that_gives_them(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        before = scraped(url(gang))
        kind = driver.diagnose().kind
        after = scraped(url(gang))
    key = "rankbridge_diagnoses_total", frozenset({("rank", "0"), ("kind", kind)})
    assert after[key] - before.get(key, 0.0) == 1


def test_who_came_last_has_what_the_others_have_waited_for_it(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        group = driver.new_group("late", [1, 0, 2])
        waiting = [driver[rank].start("barrier", group=group, operation_id="it") for rank in (0, 1)]
        # Rank 1 is the group's first.
        until(lambda: [set(it.arrived) for it in driver[1].pending().admissions] == [{0, 1}])
        (admission,) = driver[1].pending().admissions
        driver[2].barrier(group=group, operation_id="it")
        for it in waiting:
            it.result()
        found = {
            labels: value
            for (name, labels), value in scraped(url(gang)).items()
            if name == "rankbridge_collective_waited_for_seconds_total" and ("group", "late") in labels
        }
    (labels,) = found
    assert dict(labels) == {"rank": "1", "group": "late", "op": "barrier", "last": "2"}
    # Two have waited.
    assert 0 < admission.waited < found[labels] < 2 * TIMEOUT_S


def test_what_is_pending_has_an_age(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        driver[1].submit("barrier", operation_id="alone", timeout=60)
        until(lambda: len(driver[1].pending().operations) == 1)
        values = scraped(url(gang))
        assert 0 < value(values, "rankbridge_collective_pending_seconds", rank=1, group="world") < TIMEOUT_S
        assert value(values, "rankbridge_operations_pending", rank=1) == 1
        assert driver[1].cancel("alone")
        values = scraped(url(gang))
        assert value(values, "rankbridge_operations_pending", rank=1) == 0


def test_a_client_reads_the_same_as_messages(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        (family,) = [it for it in driver[1].metrics() if it.name == "rankbridge_generation"]
        assert (family.kind, [(it.labels, it.value) for it in family.samples]) == ("gauge", [({}, 1.0)])
        assert [[it.name for it in each] for each in driver.metrics()] == [
            [it.name for it in driver[0].metrics()]
        ] * 3


@pytest.mark.sampled
def test_lost_and_stopped_ranks_are_down_and_the_others_are_read(tmp_path: Path) -> None:
    options = ["--metrics", "127.0.0.1:0", "--on-rank-exit", "leave", "--heartbeat-interval", "60"]
    with up(tmp_path, 3, options=options) as gang:
        until(lambda: _up(scraped(url(gang))) == [1, 1, 1])
        os.kill(gang.pids[0], signal.SIGKILL)
        stop(gang.pids[1])
        seen: list[Values] = []

        def are_seen() -> bool:
            seen.append(scraped(url(gang)))
            return _up(seen[-1]) == [0, 0, 1]

        try:
            # On a busy machine the one that runs may answer too late, too.
            until(are_seen)
        finally:
            os.kill(gang.pids[1], signal.SIGCONT)
        assert value(seen[-1], "rankbridge_build_info", rank=2, version=_version(gang), backend="gloo") == 1


def _up(values: Values) -> list[float]:
    return [value(values, "rankbridge_rank_up", rank=it) for it in range(3)]


def _version(gang: RunningGang) -> str:
    with rankbridge.connect(gang.description["ranks"][2]["endpoints"][:1], session=False) as driver:
        return driver[0].status().version


def test_a_gang_that_counts_nothing_says_what_it_holds(fake4: RunningGang) -> None:
    command = [RANKBRIDGE, "metrics", "--listen", "127.0.0.1:0", "--endpoints", str(fake4.endpoints_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as exporter:
        assert exporter.stdout
        at = exporter.stdout.readline().split()[1]
        values = scraped(at)
        exporter.send_signal(signal.SIGINT)
        assert exporter.wait(TIMEOUT_S) == 130
    assert value(values, "rankbridge_rank_up", rank=3) == 1
    assert value(values, "rankbridge_generation_formed", rank=3) == 1
    assert not [name for name, _ in values if "duration" in name]


def test_an_address_that_is_taken_is_named(gang: RunningGang, tmp_path: Path) -> None:
    taken = url(gang).removeprefix("http://").removesuffix("/metrics")
    done = subprocess.run(
        [RANKBRIDGE, "up", "--size", "1", "--backend", "fake", "--metrics", taken],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 1
    assert f"no metrics can be served at {taken}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_dashboard_asks_for_what_there_is(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        driver.barrier()
        driver.diagnose()
        pending = driver[1].submit("barrier", operation_id="seen", timeout=60)
        until(lambda: len(driver[1].pending().operations) == 1)
        values = scraped(url(gang))
        driver[1].cancel(pending)
    labels: dict[str, set[str]] = {}
    for name, its in values:
        labels.setdefault(name, set()).update(key for key, _ in its)
    dashboard: Mapping[str, Any] = json.loads((DOCS / "grafana" / "rankbridge.json").read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating"} <= set(dashboard)
    assert len({it["id"] for it in dashboard["panels"]}) == len(dashboard["panels"]) == 12
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            (name,) = re.findall(r"rankbridge_\w+", target["expr"])
            # Of failures there may be none yet.
            known = labels.get(name, {"rank", "group", "op", "code"} if "failures" in name else set())
            asked = re.findall(r"by \(([^)]*)\)", target["expr"]) + re.findall(
                r"{{(\w+)}}", target["legendFormat"]
            )
            wanted = {label.strip() for each in asked for label in each.split(",")}
            assert wanted <= known, (panel["title"], name, wanted - known)


def test_the_page_has_every_name(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        names = {it.name for it in driver[0].metrics()} | {"rankbridge_rank_up"}
    page = (DOCS / "metrics.md").read_text()
    assert {it.removesuffix("_total") for it in re.findall(r"`(rankbridge_\w+)`", page)} == names
