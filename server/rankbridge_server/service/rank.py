"""RankService."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version

import grpc

from rankbridge.v1 import error_pb2, rank_service_pb2 as pb, rank_service_pb2_grpc as stub

from ..core.errors import Place, invalid
from ..core.rank import Rank
from ..core.task import cancelled
from ..core.tokens import Tokens
from . import events
from .answering import OfRank, answers
from .operations.table import OPERATIONS
from .wire import wire

DEFAULT_FORMING_TIMEOUT_MS = 10_000


class RankServicer(OfRank, stub.RankServiceServicer):
    """One rank. `endpoints`: its gRPC targets; filled in when they are known. `tokens`: None: the rank has none."""

    def __init__(
        self, rank: Rank, endpoints: Sequence[str], tokens: Callable[[], Tokens] | None = None
    ) -> None:
        super().__init__(rank)
        self._endpoints = endpoints
        self._tokens = tokens
        self.host = socket.gethostname()
        self._version = version("rankbridge")
        self._abilities = wire.pack_abilities(OPERATIONS, rank.backend)

    @property
    def has_script(self) -> bool:
        """Whether the rank's process is a job's."""
        return self._rank.has_script

    def DescribeRank(
        self, request: pb.DescribeRankRequest, context: grpc.ServicerContext
    ) -> pb.DescribeRankResponse:
        """Describes the rank."""
        return self.description()

    def description(self) -> pb.DescribeRankResponse:
        """What the rank is now."""
        description = self._rank.describe()
        return pb.DescribeRankResponse(
            rank=description.rank,
            world_size=description.world_size,
            local_rank=self._rank.identity.local_rank,
            pid=os.getpid(),
            host=self.host,
            backend=self._rank.backend.name,
            generation=description.number,
            generation_state=pb.GenerationState.Value(f"GENERATION_STATE_{description.state.name}"),
            generation_error=wire.pack_error(description.error.failure) if description.error else None,
            groups=[wire.pack_group(group) for group in description.groups],
            sessions=[pb.SessionUsage(**asdict(usage)) for usage in self._rank.refs.usage()],
            pending_operations=description.pending,
            endpoints=self._endpoints,
            version=self._version,
            abilities=self._abilities,
            device=self._rank.backend.tensors.device,
            fs_local_rank=self._rank.identity.fs_local_rank,
            local_world_size=self._rank.identity.local_world_size,
            highest_generation=description.seen,
            generation_since_us=description.since_us,
        )

    def KillRank(self, request: pb.KillRankRequest, context: grpc.ServicerContext) -> pb.KillRankResponse:
        """Kills the process, once the answer is sent."""
        place = Place(rank=self._rank.describe().rank, operation="kill")
        if self._rank.backend.name == "fake":
            error = invalid("this process has other ranks, too", expected="a process of one rank")
        elif request.pid not in (0, os.getpid()):
            error = invalid(
                "another process has the rank now", expected=str(os.getpid()), got=str(request.pid)
            )
        elif context.add_callback(lambda: os.kill(os.getpid(), signal.SIGKILL)):
            return pb.KillRankResponse(pid=os.getpid())
        else:
            error = cancelled("its caller has gone")
        return pb.KillRankResponse(error=wire.pack_error(error.at(place).failure))

    def ListPending(
        self, request: pb.ListPendingRequest, context: grpc.ServicerContext
    ) -> pb.ListPendingResponse:
        """Lists pending operations."""
        tasks, admissions = self._rank.pending()
        now = time.monotonic()
        return pb.ListPendingResponse(
            operations=[
                pb.PendingOperation(
                    operation=task.place.operation,
                    group=task.place.group,
                    operation_id=task.place.operation_id,
                    session_id=task.session_id,
                    phase=error_pb2.Phase.Value(f"PHASE_{task.phase.name}"),
                    waited_us=round((now - task.began) * 1e6),
                    remaining_us=max(0, round((task.deadline - now) * 1e6)),
                )
                for task in tasks
            ],
            admissions=[events.pack_straggler(it) for it in admissions],
        )

    def GetMetrics(
        self, request: pb.GetMetricsRequest, context: grpc.ServicerContext
    ) -> pb.GetMetricsResponse:
        """Gives metrics."""
        return pb.GetMetricsResponse(
            families=[
                pb.MetricFamily(
                    name=it.name,
                    kind=it.kind,
                    help=it.help,
                    samples=[
                        pb.MetricSample(
                            suffix=one.suffix,
                            labels=[pb.MetricLabel(name=key, value=it) for key, it in one.labels.items()],
                            value=one.value,
                        )
                        for one in it.samples
                    ],
                )
                for it in self._rank.metrics()
            ]
        )

    @answers(pb.PrepareGenerationResponse, "prepare")
    def PrepareGeneration(self, request: pb.PrepareGenerationRequest) -> pb.RankAddress:
        """First phase of forming."""
        return wire.pack_address(
            self._rank.prepare(
                request.generation, request.rank, request.world_size, wire.groups(request.groups)
            )
        )

    @answers(pb.CommitGenerationResponse, "commit")
    def CommitGeneration(self, request: pb.CommitGenerationRequest) -> int:
        """Second phase of forming."""
        timeout = (request.timeout_ms or DEFAULT_FORMING_TIMEOUT_MS) / 1000
        addresses = [wire.address(it) for it in request.addresses]
        secret = request.secret
        if request.derived:
            if self._tokens is None:
                raise invalid("this rank has no token to derive a secret from", expected="--token-file")
            secret = self._tokens().secret_of(secret)
        self._rank.commit(request.generation, addresses, secret, timeout)
        return request.generation

    @answers(pb.AbortGenerationResponse, "abort")
    def AbortGeneration(self, request: pb.AbortGenerationRequest) -> bool:
        """Ends a generation."""
        return self._rank.abort(request.generation, request.reason or "the controller asked for it")

    def WatchEvents(
        self, request: pb.WatchEventsRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchEventsResponse]:
        """Streams the rank's events."""
        return events.watch(self._rank, request, context)
