"""The caller's place in a trace, as W3C Trace Context writes it."""

from __future__ import annotations

import sys


def traceparent() -> str:
    """The active span of OpenTelemetry; empty: there is none, or the program has not imported OpenTelemetry."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return ""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
