"""A controller's trace goes on through every rank, and comes to a collector of OpenTelemetry."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from opentelemetry.sdk.trace import TracerProvider
from tests.conftest import PATIENT
from tests.support.collector import Collector, Span
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.waiting import until

import rankbridge

SPANS: list[Span] = []


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    collector = Collector(SPANS.append)
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
        environ.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        with up(tmp_path_factory.mktemp("traces"), 3, options=PATIENT, own=True) as running:
            yield running
    collector.close()


def of_trace(trace: str) -> list[Span]:
    return sorted((it for it in SPANS if it["trace"] == trace), key=lambda it: str(it["rankbridge.rank"]))


@pytest.mark.parametrize("calls", ["gang", "ranks"])
def test_each_rank_has_a_span_below_the_controllers(
    gang: RunningGang, calls: Literal["gang", "ranks"]
) -> None:
    tracer = TracerProvider().get_tracer("controller")
    with rankbridge.connect(gang.description, calls=calls) as driver:
        refs = driver.put([np.ones(2, np.float32)] * 3)
        driver.barrier(operation_id=f"before-{calls}")
        with tracer.start_as_current_span("step") as span:
            driver.all_reduce(refs, operation_id=f"step-{calls}")
        context = span.get_span_context()
        trace = f"{context.trace_id:032x}"
        until(lambda: len(of_trace(trace)) == 3)
        for rank, it in enumerate(of_trace(trace)):
            assert it["name"] == "all_reduce world"
            assert it["parent"] == f"{context.span_id:016x}"
            assert (int(it["rankbridge.rank"]), it["rankbridge.group"]) == (rank, "world")
            assert it["rankbridge.operation_id"] == f"step-{calls}"
            assert (it["error"], it["events"]) == (False, ["entered the backend"])
            assert 0 < it["took"] < 60
    # A caller without a trace has none there.
    assert [it for it in SPANS if it["rankbridge.operation_id"] == f"before-{calls}"] == []


def test_a_failure_is_an_error_of_the_span(gang: RunningGang) -> None:
    tracer = TracerProvider().get_tracer("controller")
    with rankbridge.connect(gang.description) as driver:
        refs = [driver[rank].put(np.ones(2 + rank, np.float32)) for rank in range(3)]
        with tracer.start_as_current_span("step") as span, pytest.raises(rankbridge.RankBridgeError):
            driver.all_reduce(refs)
        trace = f"{span.get_span_context().trace_id:032x}"
        until(lambda: len(of_trace(trace)) == 3)
        assert [(it["error"], it["error.type"], it["events"]) for it in of_trace(trace)] == [
            (True, "MISMATCH", [])
        ] * 3
        # Each asked for something else than the first to arrive.
        sides = [
            [list(getattr(it.get(f"rankbridge.{name}"), "values", [])) for name in ("arrived", "disagrees")]
            for it in of_trace(trace)
        ]
        assert [[len(ranks) for ranks in each] for each in sides] == [[1, 2]] * 3


def test_what_is_no_trace_is_ignored(gang: RunningGang) -> None:
    import grpc

    from rankbridge.v1 import collective_service_pb2 as pb
    from rankbridge.v1.collective_service_pb2_grpc import CollectiveServiceStub

    with grpc.insecure_channel(gang.targets[0]) as channel, rankbridge.connect(gang.description) as driver:
        group = driver.new_group("alone", [0])
        for text in (
            "nonsense",
            "00-" + "0" * 32 + "-" + "0" * 16 + "-01",
            "ff-" + "1" * 32 + "-" + "1" * 16 + "-01",
        ):
            request = pb.BarrierRequest()
            request.call.group, request.call.traceparent = group.name, text
            assert not CollectiveServiceStub(channel).Barrier(request, timeout=60).HasField("error")


def test_traces_that_cannot_be_sent_are_refused_at_the_start(tmp_path: Path) -> None:
    without = "import sys; sys.modules['opentelemetry.sdk'] = None"
    program = f"{without}; from rankbridge_server.cli import main; sys.exit(main())"
    done = subprocess.run(
        [Path(RANKBRIDGE).with_name("python"), "-c", program, "up", "--size", "1", "--backend", "fake"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'rankbridge[otel]'" in done.stderr
