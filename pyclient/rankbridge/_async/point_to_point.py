"""What one member of a group sends to another, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from rankbridge._async.front import AsyncRankFront
from rankbridge._async.work import AsyncWork
from rankbridge._plan import operations as ops
from rankbridge._plan.gang_core import with_id
from rankbridge._plan.operations import CallOptions, Expected
from rankbridge._plan.ref import Ref
from rankbridge.errors import RankBridgeError

__all__ = ["AsyncRankPointToPoint"]


class AsyncRankPointToPoint(AsyncRankFront):
    """What a ``AsyncRank`` sends to another member of a group, and receives.

    A send waits for its receive and a receive for its send, each for its own timeout; then the data moves. They meet
    by source, destination and tag, those that fit each other in the order in which they came, and neither wait for
    the group's collectives nor hold them up. A kind is received by its own kind. ``isend`` and ``irecv`` of each kind
    begin it and give a ``AsyncWork`` to wait for.

    ``**options`` are ``CallOptions``: `group`, whose members both are; `timeout` in seconds; `operation_id`; and
    `generation`. Of all of them:

    Args:
        dst_rank_in_group: Who receives.
        src_rank_in_group: Who sends. None: whoever does.
        tag: Tells messages between the same two apart, 0 to 2**32 - 1.

    Raises:
        RankOutOfRangeError: There is no such member.
        InvalidArgumentError: The other member is this one.
        MismatchError: The two are not of one kind, or what comes is not what is expected. Nothing has moved.
        PeerMissingError: The other member did not come in time. Nothing has moved.
    """

    async def send(
        self, ref: Ref, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> None:
        """Sends a tensor, and returns when it has left this rank."""
        call = ops.send(self._scope, ref, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def recv(
        self,
        *,
        src_rank_in_group: int | None = None,
        tag: int = 0,
        expected: Expected | None = None,
        **options: Unpack[CallOptions],
    ) -> tuple[Ref, int]:
        """Receives a tensor.

        Args:
            src_rank_in_group: Who sends. None: whoever does.
            tag: Tag of the message.
            expected: A ref of this rank, of the dtype and shape that must come: it takes what comes. Or a pair of
                dtype and shape. None: whatever comes.
            **options: See the class.

        Returns:
            A ref on what came (the one expected, if a ref was), and the rank in group that it came from.
        """
        call = ops.recv(
            self._scope, src_rank_in_group=src_rank_in_group, tag=tag, expected=expected, **options
        )
        return await self._run(call)

    async def send_object(
        self, value: object, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> None:
        """Sends a value: whatever ``to_value`` takes. A ref in it travels as the handle that it is."""
        call = ops.send_object(self._scope, value, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def recv_object(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> tuple[Any, int]:
        """Receives a value, and gives it and the rank in group that it came from."""
        call = ops.recv_object(self._scope, src_rank_in_group=src_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def send_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        dst_rank_in_group: int,
        tag: int = 0,
        **options: Unpack[CallOptions],
    ) -> None:
        """Sends a map of tensors: values, maps in it included, whose refs are tensors of this rank and one session."""
        call = ops.send_tensor_dict(
            self._scope, tensors, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )
        return await self._run(call)

    async def recv_tensor_dict(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> tuple[dict[Any, Any], int]:
        """Receives a map of tensors: gives it, with refs on new tensors here, and the rank in group it came from."""
        call = ops.recv_tensor_dict(self._scope, src_rank_in_group=src_rank_in_group, tag=tag, **options)
        return await self._run(call)

    async def isend(
        self, ref: Ref, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[None]:
        """Begins `send`, and returns as soon as the rank has it."""
        return await self._begin("send", ref, dst_rank_in_group=dst_rank_in_group, tag=tag, **options)

    async def irecv(
        self,
        *,
        src_rank_in_group: int | None = None,
        tag: int = 0,
        expected: Expected | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncWork[tuple[Ref, int]]:
        """Begins `recv`, and returns as soon as the rank has it."""
        return await self._begin(
            "recv", src_rank_in_group=src_rank_in_group, tag=tag, expected=expected, **options
        )

    async def isend_object(
        self, value: object, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[None]:
        """Begins `send_object`, and returns as soon as the rank has it."""
        return await self._begin(
            "send_object", value, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )

    async def irecv_object(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[tuple[Any, int]]:
        """Begins `recv_object`, and returns as soon as the rank has it."""
        return await self._begin("recv_object", src_rank_in_group=src_rank_in_group, tag=tag, **options)

    async def isend_tensor_dict(
        self,
        tensors: Mapping[Any, Any],
        *,
        dst_rank_in_group: int,
        tag: int = 0,
        **options: Unpack[CallOptions],
    ) -> AsyncWork[None]:
        """Begins `send_tensor_dict`, and returns as soon as the rank has it."""
        return await self._begin(
            "send_tensor_dict", tensors, dst_rank_in_group=dst_rank_in_group, tag=tag, **options
        )

    async def irecv_tensor_dict(
        self, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncWork[tuple[dict[Any, Any], int]]:
        """Begins `recv_tensor_dict`, and returns as soon as the rank has it."""
        return await self._begin("recv_tensor_dict", src_rank_in_group=src_rank_in_group, tag=tag, **options)

    async def _begin(self, operation: str, *args: Any, **options: Any) -> AsyncWork[Any]:
        call = ops.submitting(operation)(self._scope, *args, **with_id(options))
        channels = self._gang._channels
        try:
            await channels.run(call)
        except BaseException as error:
            if not isinstance(error, RankBridgeError) or error.indefinite:
                # The rank may have it, and nobody would ever ask for it.
                await channels.outcomes([ops.cancel(self._scope, call.operation_id)])
            raise
        timeout = options.get("timeout") or self._gang.timeout
        return AsyncWork(channels, call.operation_id, [self.rank], self._gang._scope, timeout)
