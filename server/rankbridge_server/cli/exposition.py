"""Metrics over HTTP, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ..core.address import Address
from .extras import server_extra
from .options import Option, address


class Sample(Protocol):
    """One value, of the core or of the client."""

    @property
    def suffix(self) -> str:
        """What its name has beyond its family's."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def value(self) -> float:
        """The value."""


class Family(Protocol):
    """Values of one name, of the core or of the client."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def kind(self) -> str:
        """What Prometheus calls its type."""

    @property
    def help(self) -> str:
        """What it is."""

    @property
    def samples(self) -> Iterable[Sample]:
        """The values."""


Collected = Iterable[tuple[Mapping[str, str], Iterable[Family]]]
"""Families, and labels that all values of them have: those of a rank."""


METRICS = Option(
    "--metrics",
    type=address,
    metavar="HOST:PORT",
    help="count operations, and serve metrics to Prometheus there, to whoever asks; port 0 for any",
)


def serve(at: Address, collect: Callable[[], Collected]) -> str:
    """Serves what `collect` gives from another thread; returns the URL. Raises OSError or NoServer."""
    with server_extra():
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

    class All(Collector):
        def collect(self) -> Iterable[Metric]:
            made: dict[str, Metric] = {}
            for labels, families in collect():
                for it in families:
                    if it.name not in made:
                        made[it.name] = Metric(it.name, it.help, it.kind)
                    for one in it.samples:
                        suffix = one.suffix or ("_total" if it.kind == "counter" else "")
                        made[it.name].add_sample(it.name + suffix, {**one.labels, **labels}, one.value)
            return made.values()

        def describe(self) -> Iterable[Metric]:
            """Nothing is known before ranks are asked."""
            return ()

    registry = CollectorRegistry()
    registry.register(All())
    server, _ = start_http_server(at.port or 0, at.host, registry)
    return f"http://{Address(at.host, server.server_port)}/metrics"
