"""The gRPC server of one rank."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import grpc
from google.protobuf import descriptor_pool
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from rankbridge.v1 import (
    collective_service_pb2_grpc as collectives,
    object_service_pb2_grpc as objects,
    point_to_point_service_pb2_grpc as point_to_point,
)

from ..core.address import Address
from ..core.audit import Audit
from ..core.events import MAX_WATCHES
from ..core.functions.reports import MAX_READERS
from ..core.hold.holds import MAX_BREAKPOINTS
from ..core.rank import Rank
from ..core.record.record import MAX_WATCHES as MAX_RECORD_WATCHES
from ..core.tokens import Role, Tokens
from .audited import Audited
from .debug import DebugServicer, LookInside
from .functions import FunctionServicer
from .gang import PLAINLY, Dialling, GangServicer
from .gate import Gate, roles_of
from .graphs import GraphServicer
from .group import GroupServicer
from .hold import HoldServicer
from .observing import Observing
from .operation import OperationServicer
from .operations.derived import COLLECTIVES, OBJECTS, POINT_TO_POINT
from .operations.typed import servicer
from .queues import QueueServicer
from .rank import RankServicer
from .refs.service import RefServicer
from .refusing import Refusing
from .registration import register
from .state import packed_state
from .streams.executing import MAX_STREAMS
from .streams.local_streams import SUFFIX, LocalStreams
from .targets import is_unix, socket_path

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
# Every pending operation and every watcher holds a thread, made when it is needed. Above the operations that a rank
# accepts there is room for those that must always be answered.
SPARE_THREADS = 64
_OBSERVERS_THREADS = MAX_WATCHES + MAX_RECORD_WATCHES + 32
MAX_CONNECTIONS = 4096
"""Connections that each listener takes; it closes what comes beyond them."""
_IDLE_MS = 300_000
_HANDSHAKE_MS = 10_000
_LAST_S = 5.0

_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    ("grpc.max_connection_idle_ms", _IDLE_MS),
    ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
    # A bit for each compression, of which the first is none: a small message that is large in memory is refused before
    # anybody looks at its token.
    ("grpc.compression_enabled_algorithms_bitset", 1),
    # A port that is taken is an error, not a second server behind the first.
    ("grpc.so_reuseport", 0),
    # Clients may ask whether the server lives, also while they have no call.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
]

_PACKAGE = [
    "Collective",
    "Debug",
    "Function",
    "Gang",
    "Graph",
    "Group",
    "Hold",
    "Object",
    "Operation",
    "PointToPoint",
    "Queue",
    "Rank",
    "Ref",
]
ROLES = roles_of(descriptor_pool.Default().FindServiceByName(f"rankbridge.v1.{it}Service") for it in _PACKAGE)
"""The role that each method needs over TCP, where tokens are shown."""


class Server:
    """Serves one rank on all `listen` addresses: "unix:/path" or "host:port", port 0 for any.

    Beside each unix socket that has a path is one for streams without gRPC. With `serving`, what listens on TCP speaks
    TLS, and nothing else; `dialling`: how other sidecars are reached, to form. With `tokens`, who calls over TCP or an
    abstract unix socket shows one, or has a client certificate of a name in `certificates`; other unix sockets are for
    this user alone. `observed`: a unix socket at which callers may only observe, with threads of its own, so that it
    answers while all others are taken; whoever reaches it is let in. `look_inside`: as of `DebugServicer`. `endpoints`
    tells where, after construction, without `observed`. Raises OSError when an address cannot be had.
    """

    def __init__(
        self,
        rank: Rank,
        listen: Sequence[str],
        max_pending: int,
        *,
        serving: grpc.ServerCredentials | None = None,
        dialling: Dialling = PLAINLY,
        tokens: Callable[[], Tokens] | None = None,
        certificates: Mapping[str, Role] | None = None,
        audit: Audit | None = None,
        observed: str = "",
        look_inside: LookInside = lambda pid, states: (),
    ) -> None:
        streams = MAX_WATCHES + MAX_RECORD_WATCHES + MAX_READERS + MAX_STREAMS + MAX_BREAKPOINTS
        self._pool = ThreadPoolExecutor(max_pending + streams + SPARE_THREADS, thread_name_prefix="rpc")
        self._pools = [self._pool]
        self.endpoints: list[str] = []
        self._local: list[LocalStreams] = []
        self._health = health.HealthServicer()
        self._gang = GangServicer(rank, dialling)
        self._services: list[str] = []
        self._audit = audit
        self._look_inside = look_inside
        self._described = RankServicer(rank, self.endpoints, tokens)
        refusing = Refusing(rank.identity.rank, audit)
        self._by_unix = self._serving(rank, self._pool, [] if audit is None else [Audited(audit)])
        self._by_tcp = (
            self._by_unix
            if tokens is None
            else self._serving(
                rank, self._pool, [Gate(rank, tokens, ROLES, certificates or {}, refusing, audit)]
            )
        )
        self._servers = list(dict.fromkeys((self._by_unix, self._by_tcp)))
        for address in listen:
            self.endpoints.append(self._bind(address, serving))
        if observed:
            pool = ThreadPoolExecutor(_OBSERVERS_THREADS, thread_name_prefix="rpc-observers")
            self._pools.append(pool)
            observing = self._serving(rank, pool, [Observing(ROLES, refusing, audit)])
            self._servers.append(observing)
            _bind_socket(observing, observed, 0o660)

    def start(self) -> None:
        """Begin to serve; health says SERVING."""
        for server in self._servers:
            server.start()
        for local in self._local:
            local.start()
        for service in ("", *self._services):
            self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace: float) -> None:
        """Stop serving; calls that run have `grace` seconds to end, and streams of gang calls end with theirs."""
        self._health.enter_graceful_shutdown()
        self._gang.streams.end()
        stopped = [server.stop(grace) for server in self._servers]
        for local in self._local:
            local.stop(grace)
        for each in stopped:
            # A handler that does not end cannot keep the process.
            each.wait(grace + _LAST_S)
        for pool in self._pools:
            pool.shutdown(wait=False)

    def state(self, most: int) -> bytes:
        """What the rank is, as part of its evidence, for its record; in at most so many bytes."""
        return packed_state(self._described, most)

    def wait(self) -> None:
        """Return when the server has stopped."""
        for server in self._servers:
            server.wait_for_termination()

    def _serving(
        self, rank: Rank, pool: ThreadPoolExecutor, interceptors: list[grpc.ServerInterceptor]
    ) -> grpc.Server:
        server = grpc.server(pool, options=_OPTIONS, interceptors=interceptors)
        servicers = (
            servicer(rank, collectives.CollectiveServiceServicer, COLLECTIVES),
            servicer(rank, objects.ObjectServiceServicer, OBJECTS),
            servicer(rank, point_to_point.PointToPointServiceServicer, POINT_TO_POINT),
            self._gang,
            DebugServicer(rank, self._described, self._look_inside),
            FunctionServicer(rank),
            GraphServicer(rank),
            GroupServicer(rank),
            HoldServicer(rank),
            OperationServicer(rank),
            QueueServicer(rank),
            self._described,
            RefServicer(rank),
        )
        self._services = [register(it, server) for it in servicers]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        return server

    def _bind(self, address: str, serving: grpc.ServerCredentials | None) -> str:
        path = socket_path(address)
        if path:
            _bind_socket(self._by_unix, address, 0o600)
            # Where its path is too long, gRPC serves streams as well.
            with suppress(OSError):
                self._local.append(LocalStreams(self._gang.streams, path + SUFFIX, self._audit))
            return address
        try:
            # An abstract socket has no permissions: its callers show tokens.
            if is_unix(address) or serving is None:
                port = self._by_tcp.add_insecure_port(address)
            else:
                port = self._by_tcp.add_secure_port(address, serving)
        except RuntimeError as error:
            raise _not_bound(address, error) from error
        return address if is_unix(address) else str(Address.parse(address)._replace(port=port))


def _bind_socket(server: grpc.Server, address: str, mode: int) -> None:
    """Binds a unix socket that has a path. To connect to it is to write: `mode` says who may."""
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise _not_bound(address, error) from error
    os.chmod(socket_path(address), mode)


def _not_bound(address: str, error: Exception) -> OSError:
    return OSError(f"cannot listen on {address}: {error}")
