"""The gRPC server of one rank."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import ModuleType
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from rankbridge.v1 import (
    collective_service_pb2,
    collective_service_pb2_grpc,
    gang_service_pb2,
    gang_service_pb2_grpc,
    graph_service_pb2,
    graph_service_pb2_grpc,
    group_service_pb2,
    group_service_pb2_grpc,
    object_service_pb2,
    object_service_pb2_grpc,
    operation_service_pb2,
    operation_service_pb2_grpc,
    point_to_point_service_pb2,
    point_to_point_service_pb2_grpc,
    queue_service_pb2,
    queue_service_pb2_grpc,
    rank_service_pb2,
    rank_service_pb2_grpc,
    ref_service_pb2,
)

from ..core.address import Address
from ..core.events import MAX_WATCHES
from ..core.rank import Rank
from ..core.tokens import Tokens
from .gang import PLAINLY, Dialling, GangServicer
from .gate import Gate, roles_of
from .graphs import GraphServicer
from .group import GroupServicer
from .operation import OperationServicer
from .operations.derived import COLLECTIVES, OBJECTS, POINT_TO_POINT
from .operations.typed import servicer
from .operations.wire_operation import WireOperation
from .queues import QueueServicer
from .rank import RankServicer
from .refs import service as refs
from .streams.executing import MAX_STREAMS
from .streams.local_streams import SUFFIX, LocalStreams
from .targets import is_unix, socket_path

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
# Every pending operation and every watcher holds a thread, made when it is needed. Above the operations that a rank
# accepts there is room for those that must always be answered.
SPARE_THREADS = 64

_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
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

_DESCRIBED = [
    descriptor.services_by_name[name]
    for descriptor, name in (
        (collective_service_pb2.DESCRIPTOR, "CollectiveService"),
        (gang_service_pb2.DESCRIPTOR, "GangService"),
        (graph_service_pb2.DESCRIPTOR, "GraphService"),
        (group_service_pb2.DESCRIPTOR, "GroupService"),
        (object_service_pb2.DESCRIPTOR, "ObjectService"),
        (operation_service_pb2.DESCRIPTOR, "OperationService"),
        (point_to_point_service_pb2.DESCRIPTOR, "PointToPointService"),
        (queue_service_pb2.DESCRIPTOR, "QueueService"),
        (rank_service_pb2.DESCRIPTOR, "RankService"),
        (ref_service_pb2.DESCRIPTOR, "RefService"),
    )
]
_SERVICES = [service.full_name for service in _DESCRIBED]
ROLES = roles_of(_DESCRIBED)
"""The role that each method needs over TCP, where tokens are shown."""


_TYPED: list[
    tuple[type[Any], ModuleType, Mapping[str, WireOperation[Any, Any]], Callable[[Any, grpc.Server], None]]
] = [
    (
        collective_service_pb2_grpc.CollectiveServiceServicer,
        collective_service_pb2,
        COLLECTIVES,
        collective_service_pb2_grpc.add_CollectiveServiceServicer_to_server,
    ),
    (
        object_service_pb2_grpc.ObjectServiceServicer,
        object_service_pb2,
        OBJECTS,
        object_service_pb2_grpc.add_ObjectServiceServicer_to_server,
    ),
    (
        point_to_point_service_pb2_grpc.PointToPointServiceServicer,
        point_to_point_service_pb2,
        POINT_TO_POINT,
        point_to_point_service_pb2_grpc.add_PointToPointServiceServicer_to_server,
    ),
]
"""Services with a call for each operation of a table."""


class Server:
    """Serves one rank on all `listen` addresses: "unix:/path" or "host:port", port 0 for any.

    Beside each unix socket that has a path is one for streams without gRPC. With `serving`, what listens on TCP speaks
    TLS, and nothing else; `dialling`: how other sidecars are reached, to form. With `tokens`, who calls over TCP or an
    abstract unix socket shows one; other unix sockets are for this user alone. `endpoints` tells where, after
    construction. Raises OSError when an address cannot be had.
    """

    def __init__(
        self,
        rank: Rank,
        listen: Sequence[str],
        max_pending: int,
        *,
        serving: grpc.ServerCredentials | None = None,
        dialling: Dialling = PLAINLY,
        tokens: Tokens | None = None,
    ) -> None:
        self._pool = ThreadPoolExecutor(
            max_pending + MAX_WATCHES + MAX_STREAMS + SPARE_THREADS, thread_name_prefix="rpc"
        )
        self.endpoints: list[str] = []
        self._local: list[LocalStreams] = []
        self._health = health.HealthServicer()
        self._gang = GangServicer(rank, dialling)
        self._by_unix = self._serving(rank, [])
        self._by_tcp = self._by_unix if tokens is None else self._serving(rank, [Gate(tokens, ROLES)])
        self._servers = list(dict.fromkeys((self._by_unix, self._by_tcp)))
        for address in listen:
            self.endpoints.append(self._bind(address, serving))

    def start(self) -> None:
        """Begin to serve; health says SERVING."""
        for server in self._servers:
            server.start()
        for local in self._local:
            local.start()
        for service in ("", *_SERVICES):
            self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace: float) -> None:
        """Stop serving; calls that run have `grace` seconds to end, and streams of gang calls end with theirs."""
        self._health.enter_graceful_shutdown()
        self._gang.streams.end()
        stopped = [server.stop(grace) for server in self._servers]
        for local in self._local:
            local.stop(grace)
        for each in stopped:
            each.wait()

    def wait(self) -> None:
        """Return when the server has stopped."""
        for server in self._servers:
            server.wait_for_termination()

    def _serving(self, rank: Rank, interceptors: list[grpc.ServerInterceptor]) -> grpc.Server:
        server = grpc.server(self._pool, options=_OPTIONS, interceptors=interceptors)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection(
            (*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        for base, messages, table, add in _TYPED:
            add(servicer(rank, base, messages, table), server)
        gang_service_pb2_grpc.add_GangServiceServicer_to_server(self._gang, server)
        graph_service_pb2_grpc.add_GraphServiceServicer_to_server(GraphServicer(rank), server)
        group_service_pb2_grpc.add_GroupServiceServicer_to_server(GroupServicer(rank), server)
        operation_service_pb2_grpc.add_OperationServiceServicer_to_server(OperationServicer(rank), server)
        queue_service_pb2_grpc.add_QueueServiceServicer_to_server(QueueServicer(rank), server)
        rank_service_pb2_grpc.add_RankServiceServicer_to_server(RankServicer(rank, self.endpoints), server)
        refs.add_to_server(rank, server)
        return server

    def _bind(self, address: str, serving: grpc.ServerCredentials | None) -> str:
        path = socket_path(address)
        try:
            if path:
                port = self._by_unix.add_insecure_port(address)
                # gRPC asks nobody who connects; to connect is to write.
                os.chmod(path, 0o600)
            elif is_unix(address):
                # An abstract socket has no permissions: its callers show tokens.
                port = self._by_tcp.add_insecure_port(address)
            elif serving is None:
                port = self._by_tcp.add_insecure_port(address)
            else:
                port = self._by_tcp.add_secure_port(address, serving)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from error
        if path:
            # Where its path is too long, gRPC serves streams as well.
            with suppress(OSError):
                self._local.append(LocalStreams(self._gang.streams, path + SUFFIX))
        if is_unix(address):
            return address
        return str(Address.parse(address)._replace(port=port))
