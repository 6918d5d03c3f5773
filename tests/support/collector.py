"""A collector of OpenTelemetry: takes spans over OTLP, and prints each as a line of JSON.

python -m tests.support.collector    prints "ready PORT" first; ends when standard input is closed
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

Span = dict[str, Any]


def _plain(span: Any) -> Span:
    values = {
        it.key: getattr(it.value, it.value.WhichOneof("value") or "string_value") for it in span.attributes
    }
    return {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "took": (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        "error": span.status.code == span.status.STATUS_CODE_ERROR,
        "events": [it.name for it in span.events],
        **values,
    }


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Calls `take` with each span."""

    def __init__(self, take: Callable[[Span], object]) -> None:
        self._take = take
        self._server = grpc.server(ThreadPoolExecutor(4))
        add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
        add(self, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def Export(self, request: Any, context: Any) -> Any:
        """Takes spans."""
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self._take(_plain(span))
        return trace_service_pb2.ExportTraceServiceResponse()

    def close(self) -> None:
        """Ends it."""
        self._server.stop(None).wait()


def main() -> None:
    """Collects until standard input is closed."""
    # In one piece each: several threads print.
    collector = Collector(lambda span: os.write(1, json.dumps(span).encode() + b"\n"))
    print(f"ready {collector.port}", flush=True)
    sys.stdin.read()
    collector.close()


if __name__ == "__main__":
    main()
