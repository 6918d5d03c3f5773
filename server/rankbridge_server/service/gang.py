"""GangService, and how this sidecar reaches the other ranks."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from rankbridge.v1 import gang_service_pb2 as pb, gang_service_pb2_grpc as stub, rank_service_pb2 as rank_pb
from rankbridge.v1.call_pb2 import Call
from rankbridge.v1.group_service_pb2 import NewGroupRequest
from rankbridge.v1.group_service_pb2_grpc import GroupServiceStub
from rankbridge.v1.rank_service_pb2_grpc import RankServiceStub

from ..core.coordinator import GroupDescription
from ..core.errors import BridgeError, ErrorCode, Phase, invalid
from ..core.groups.forming import Formed, form
from ..core.groups.preparation import RankAddress
from ..core.groups.regrouping import PeerState
from ..core.rank import Rank
from .answering import OfRank, answers
from .gang_calls import PendingGangCall, WireParts
from .gate import Metadata, bearing
from .rank import DEFAULT_FORMING_TIMEOUT_MS
from .streams.executing import Streams
from .targets import is_unix, socket_path
from .wire import wire

Reply = TypeVar("Reply")

# A replacement serves within a tenth of a second; gRPC's own first pause is a second.
_RECONNECT = [
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
    # How long one attempt to connect may take, by its misleading name: on a busy host more than gRPC's first pause.
    ("grpc.min_reconnect_backoff_ms", 500),
]


# What is left of the time to reach a rank when waiting for it is given up.
_LAST_S = 1.0


@dataclass(frozen=True, slots=True)
class Dialling:
    """How a sidecar reaches the others over TCP: with TLS if it has `credentials`, showing `token` if it has one.

    Both are asked for anew each time, because their files may have changed.
    """

    credentials: Callable[[], grpc.ChannelCredentials] | None = None
    token: Callable[[], str] | None = None

    def channel(self, target: str) -> grpc.Channel:
        """A channel to a rank."""
        if self.credentials is None or is_unix(target):
            return grpc.insecure_channel(target, _RECONNECT)
        return grpc.secure_channel(target, self.credentials(), _RECONNECT)

    def metadata(self, target: str) -> Metadata:
        """What goes along with each call of it."""
        return None if self.token is None or socket_path(target) else bearing(self.token())


PLAINLY = Dialling()


class GrpcPeer:
    """A rank behind a gRPC target. Implements `core.forming.Peer`."""

    def __init__(self, target: str, channel: grpc.Channel, metadata: Metadata, *, derived: bool) -> None:
        """`derived`: the ranks derive their links' secret from what a commit gives them."""
        self._target = target
        self._derived = derived
        self._rank = RankServiceStub(channel)
        self._groups = GroupServiceStub(channel)
        self._metadata = metadata

    def describe(self, timeout: float) -> PeerState:
        """What the rank is; waits for one that has only been started."""
        request = rank_pb.DescribeRankRequest()
        # A call that waits for a connection fails without a reason; one that does not wait fails with it.
        last = min(_LAST_S, timeout / 4)
        try:
            reply = self._rank.DescribeRank(
                request, timeout=timeout - last, wait_for_ready=True, metadata=self._metadata
            )
        except grpc.RpcError:
            reply = self._ask(lambda: self._rank.DescribeRank(request, timeout=last, metadata=self._metadata))
        return wire.peer_state(reply)

    def prepare(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription], timeout: float
    ) -> RankAddress:
        """First phase."""
        request = rank_pb.PrepareGenerationRequest(
            generation=number, rank=rank, world_size=world_size, groups=wire.pack_groups(groups)
        )
        reply = self._ask(
            lambda: self._rank.PrepareGeneration(request, timeout=timeout, metadata=self._metadata)
        )
        return wire.address(self._checked(reply).address)

    def commit(self, number: int, addresses: Sequence[RankAddress], secret: bytes, timeout: float) -> None:
        """Second phase."""
        request = rank_pb.CommitGenerationRequest(
            generation=number,
            addresses=[wire.pack_address(address) for address in addresses],
            secret=secret,
            derived=self._derived,
            timeout_ms=max(1, round(timeout * 1000)),
        )
        # The rank keeps to the timeout itself; a little more lets its own error be heard.
        self._checked(
            self._ask(
                lambda: self._rank.CommitGeneration(request, timeout=timeout + 1, metadata=self._metadata)
            )
        )

    def new_group(self, request: NewGroupRequest, timeout: float) -> None:
        """Its part of making a group. Waits for a connection, which a busy host may not give at once."""
        self._checked(
            self._ask(
                lambda: self._groups.NewGroup(
                    request, timeout=timeout, wait_for_ready=True, metadata=self._metadata
                )
            )
        )

    def abort(self, number: int, reason: str, timeout: float) -> None:
        """Ends the generation that was prepared or formed."""
        request = rank_pb.AbortGenerationRequest(generation=number, reason=reason)
        self._checked(
            self._ask(lambda: self._rank.AbortGeneration(request, timeout=timeout, metadata=self._metadata))
        )

    def _ask(self, call: Callable[[], Reply]) -> Reply:
        try:
            return call()
        except grpc.RpcError as error:
            raise BridgeError.of(
                ErrorCode.FORMING_FAILED,
                f"no answer from {self._target}: {_told(error)}",
                phase=Phase.FORMING,
            ) from error

    @staticmethod
    def _checked(reply: Any) -> Any:
        if reply.HasField("error"):
            raise BridgeError(wire.failure(reply.error))
        return reply


def _told(error: grpc.RpcError) -> str:
    # Every RpcError that a call raises is a Call as well, which the types do not say.
    code, details = getattr(error, "code", None), getattr(error, "details", None)
    return f"{code().name}: {details()}" if code and details else str(error)


@contextmanager
def peers(targets: Sequence[str], dialling: Dialling) -> Iterator[list[GrpcPeer]]:
    """The ranks behind these targets."""
    channels = [dialling.channel(target) for target in targets]
    # Nobody listens in a unix socket; and ranks that are reached so may be of several gangs, which have other tokens.
    derived = dialling.token is not None and not all(socket_path(target) for target in targets)
    try:
        yield [
            GrpcPeer(target, channel, dialling.metadata(target), derived=derived)
            for target, channel in zip(targets, channels, strict=True)
        ]
    finally:
        for channel in channels:
            channel.close()


def form_gang(
    targets: Sequence[str],
    groups: Sequence[GroupDescription],
    timeout: float,
    *,
    forget_groups: bool = False,
    dialling: Dialling = PLAINLY,
) -> Formed:
    """Form the next generation of the ranks behind `targets`, in order. Raises BridgeError."""
    if not targets:
        raise invalid("a gang has at least one rank", expected="1 endpoint or more", got="0")
    if len(set(targets)) != len(targets):
        raise invalid("an endpoint is named twice", expected="one for each rank", got=str(list(targets)))
    with peers(targets, dialling) as all_ranks:
        return form(all_ranks, groups, timeout, forget_groups=forget_groups)


def make_group(
    targets: Sequence[str], group: GroupDescription, timeout: float, *, dialling: Dialling = PLAINLY
) -> None:
    """Make a group of the gang behind `targets`, every rank of which does its part. Raises BridgeError.

    Where one rank refuses its part, the others, which would wait for it, are let go.
    """
    # The channels close first, which ends the calls that are still under way.
    with ThreadPoolExecutor(len(targets)) as pool, peers(targets, dialling) as all_ranks:
        call = Call(operation_id=uuid.uuid4().hex, timeout_ms=max(1, round(timeout * 1000)))
        request = NewGroupRequest(call=call, name=group.name, ranks=group.ranks)
        parts = [pool.submit(it.new_group, request, timeout + _LAST_S) for it in all_ranks]
        wait(parts, return_when=FIRST_EXCEPTION)
        for it in parts:
            if it.done():
                it.result()


class GangServicer(OfRank, stub.GangServiceServicer):
    """The gang, by way of this sidecar. `dialling`: how it reaches the others."""

    def __init__(self, rank: Rank, dialling: Dialling = PLAINLY) -> None:
        super().__init__(rank)
        self._dialling = dialling
        self.streams = Streams(rank)
        rank.gang_calls.parts = WireParts(rank)

    def Call(self, request: pb.CallRequest, context: grpc.ServicerContext) -> pb.CallResponse:
        """Do a collective on every member."""
        pending = PendingGangCall(self._rank, request)
        pending.withdraw_with(context)
        return pending.response(pb.CallResponse)

    def Execute(
        self, request_iterator: Iterator[pb.ExecuteRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.ExecuteResponse]:
        """Do one gang call after another."""
        return self.streams.answer(request_iterator, context)

    @answers(pb.FormResponse, "form")
    def Form(self, request: pb.FormRequest) -> pb.Formed:
        """Form the next generation."""
        timeout = (request.timeout_ms or DEFAULT_FORMING_TIMEOUT_MS) / 1000
        formed = form_gang(
            request.endpoints,
            wire.groups(request.groups),
            timeout,
            forget_groups=request.forget_groups,
            dialling=self._dialling,
        )
        return pb.Formed(
            generation=formed.generation,
            world_size=formed.world_size,
            took_us=round(formed.took * 1_000_000),
        )
