"""Traces of operations, sent to an OpenTelemetry collector."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.errors import RankState

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from ..core.task import Task

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class NoTraces(Exception):
    """The environment asks for traces, and what sends them is not installed."""


def asked_for() -> bool:
    """Whether the environment names a collector."""
    return any(os.environ.get(name) for name in _ENDPOINTS) and os.environ.get("OTEL_SDK_DISABLED") != "true"


def check() -> None:
    """Raises NoTraces if traces are asked for and cannot be had. Starts nothing."""
    if not asked_for():
        return
    try:
        import opentelemetry.exporter.otlp.proto.grpc
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as error:
        raise NoTraces(
            f"traces are asked for ({_ENDPOINTS[0]}), and {error.name} is not installed: "
            "pip install 'rankbridge[otel]'"
        ) from None


class Traces:
    """Sends a span for each operation whose caller has a trace. Not before ranks are forked: it has a thread."""

    def __init__(self, rank: int) -> None:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "rankbridge")})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("rankbridge")
        self._extract: Callable[[dict[str, str]], Context] = TraceContextTextMapPropagator().extract
        self._rank = rank

    def done(self, task: Task, traceparent: str) -> None:
        """Ends the span of an operation that is done. Quick: callers wait for it."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        place, end = task.place, time.time_ns()
        # The clock of spans is the wall's; durations are those of the clock that goes evenly.
        begin = end - round((time.monotonic() - task.began) * 1e9)
        span = self._tracer.start_span(
            f"{place.operation} {place.group}",
            context=self._extract({"traceparent": traceparent}),
            kind=SpanKind.SERVER,
            start_time=begin,
            attributes={
                "rankbridge.rank": self._rank,
                "rankbridge.group": place.group,
                "rankbridge.operation": place.operation,
                "rankbridge.operation_id": place.operation_id,
                "rankbridge.generation": place.generation,
            },
        )
        if task.entered:
            span.add_event("entered the backend", timestamp=begin + round((task.entered - task.began) * 1e9))
        if task.error is not None:
            failure = task.error.failure
            span.set_attribute("error.type", failure.code.name)
            span.set_status(Status(StatusCode.ERROR, failure.message))
            for state in RankState:
                if ranks := [it.rank for it in failure.ranks if it.state is state]:
                    span.set_attribute(f"rankbridge.{state.name.lower()}", ranks)
        span.end(end)

    def close(self) -> None:
        """Sends what was not sent yet."""
        self._provider.shutdown()
