"""Channels to the ranks of a gang, for the sync and the async front."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import grpc

from rankbridge._plan.calls import Call, Shape
from rankbridge._transport.framing import EXECUTE
from rankbridge._transport.shared_memory import SharedMemory
from rankbridge._transport.streams import RankStream, Streams
from rankbridge._transport.targets import CHANNEL_OPTIONS
from rankbridge._transport.tokens import showing


class ChannelsCore(ABC):
    """One channel to each rank, and one stream.

    Attributes:
        closed: Whether they are closed. No call is sent then.
        targets: gRPC target of each rank.
        shared: Memory for large tensors.
        streams: The streams by which operations go.
    """

    def __init__(
        self,
        front: ModuleType,
        targets: Sequence[str],
        tls: grpc.ChannelCredentials | None,
        shared: SharedMemory | None,
        token: str | None,
        options: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Makes the channels; nothing is connected before the first call.

        Args:
            front: ``grpc`` or ``grpc.aio``.
            options: Of the channels, beside those of both fronts.
            targets: gRPC target of each rank.
            tls: Credentials for TLS. None: no TLS.
            shared: Memory for large tensors.
            token: What is shown over TCP.
        """
        self.closed = False
        self.targets = tuple(targets)
        self.shared = shared
        self._token = token
        self.streams: Streams[RankStream] = Streams(self._stream)
        self._channels: list[Any] = [
            front.insecure_channel(target, [*CHANNEL_OPTIONS, *options])
            if tls is None
            else front.secure_channel(target, tls, [*CHANNEL_OPTIONS, *options])
            for target in targets
        ]
        # What speaks TLS is asked by gRPC alone.
        self._local_targets = self.targets if tls is None else ()
        self._callables: dict[tuple[int, str], Any] = {}

    def callable(self, call: Call[Any]) -> Any:
        """Gives what grpcio sends a call with.

        Raises:
            CallCancelledError: The gang is closed.
        """
        if self.closed:
            raise call.refused()
        key = (call.rank, call.path)
        found = self._callables.get(key)
        if found is None:
            channel = self._channels[call.rank]
            plain = {
                Shape.UNARY: channel.unary_unary,
                Shape.UPLOAD: channel.stream_unary,
                Shape.DOWNLOAD: channel.unary_stream,
            }[call.shape](call.path)
            found = self._callables[key] = showing(plain, self.targets[call.rank], self._token)
        return found

    @abstractmethod
    def _stream(self, rank: int) -> RankStream:
        """Opens a stream to a rank: without gRPC, where that can be."""

    def _executing(self, rank: int) -> Any:
        """Gives what grpcio opens a stream with."""
        return showing(self._channels[rank].stream_stream(EXECUTE), self.targets[rank], self._token)
