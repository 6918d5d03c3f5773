"""vLLM's ``GroupCoordinator`` over a gang, for asyncio."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Self, Unpack

from rankbridge._async.gang import AsyncGang
from rankbridge._async.queue import AsyncQueue
from rankbridge._plan import coordinated as coordinated
from rankbridge._plan.coordinated import Coordinated, CoordinatorCore
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import MemberOptions
from rankbridge._plan.queue import MadeQueue
from rankbridge._plan.ref import Ref
from rankbridge._work import AsyncWork
from rankbridge.errors import RankBridgeError

__all__ = ["AsyncGroupCoordinator"]


class AsyncGroupCoordinator(CoordinatorCore):
    """As ``GroupCoordinator``: the same methods and arguments, to be awaited, over an ``AsyncGang``."""

    def __init__(
        self, gang: AsyncGang, groups: Iterable[Group], *, _queues: Sequence[MadeQueue] = ()
    ) -> None:
        """As ``GroupCoordinator``."""
        self._gang = gang
        self._procedures = Coordinated(gang, groups, _queues)

    @classmethod
    async def new(
        cls,
        gang: AsyncGang,
        group_ranks: Iterable[Iterable[int]],
        local_rank: object = None,
        backend: str | None = None,
        use_device_communicator: bool = True,
        use_message_queue_broadcaster: bool = False,
        group_name: str | None = None,
        *,
        timeout: float | None = None,
    ) -> Self:
        """As ``GroupCoordinator.new``."""
        procedure = coordinated.forming(
            gang,
            group_ranks,
            backend=backend,
            group_name=group_name,
            with_queues=use_message_queue_broadcaster,
            timeout=timeout,
        )
        groups, queues = await gang._carried_out(procedure)
        return cls(gang, groups, _queues=queues)

    # --- tensors -------------------------------------------------------------------------------------------

    async def all_reduce(
        self, input_: Sequence[Ref | None], **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.all_reduce``."""
        return await self._collective("all_reduce", input_, options)

    async def all_gather(
        self, input_: Sequence[Ref | None], dim: int = -1, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.all_gather``."""
        return await self._collective("all_gather", input_, options, dim=dim)

    async def all_gatherv(
        self,
        input_: Sequence[Any],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """As ``GroupCoordinator.all_gatherv``."""
        procedure = self._procedures.all_gatherv(input_, dim, sizes, dict(options))
        return await self._gang._carried_out(procedure)

    async def reduce_scatter(
        self, input_: Sequence[Ref | None], dim: int = -1, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.reduce_scatter``."""
        return await self._collective("reduce_scatter", input_, options, dim=dim)

    async def reduce_scatterv(
        self,
        input_: Sequence[Ref | None],
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.reduce_scatterv``."""
        return await self._collective("reduce_scatter", input_, options, sizes=sizes, dim=dim)

    async def gather(
        self, input_: Sequence[Ref | None], dst: int = 0, dim: int = -1, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.gather``."""
        return await self._gang._carried_out(self._procedures.gather(input_, dst, dim, dict(options)))

    async def broadcast(
        self, input_: Sequence[Ref | None], src: int = 0, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.broadcast``."""
        return await self._gang._carried_out(self._procedures.broadcast(input_, src, dict(options)))

    async def _all_reduce_out_place(
        self, input_: Sequence[Ref | None], **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator._all_reduce_out_place``."""
        return await self._collective("all_reduce", input_, options)

    async def _all_gather_out_place(
        self, input_: Sequence[Ref | None], dim: int, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator._all_gather_out_place``."""
        return await self._collective("all_gather", input_, options, dim=dim)

    async def _reduce_scatter_out_place(
        self, input_: Sequence[Ref | None], dim: int, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """As ``GroupCoordinator._reduce_scatter_out_place``."""
        return await self._collective("reduce_scatter", input_, options, dim=dim)

    async def dispatch(
        self,
        hidden_states: Sequence[Ref | None],
        router_logits: Sequence[Ref | None],
        is_sequence_parallel: bool = False,
        extra_tensors: Sequence[Sequence[Ref] | None] | None = None,
        *,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """As ``GroupCoordinator.dispatch``."""
        procedure = self._procedures.dispatch(
            hidden_states, router_logits, extra_tensors, sizes, dict(options)
        )
        return await self._gang._carried_out(procedure)

    async def combine(
        self,
        hidden_states: Sequence[Ref | None],
        is_sequence_parallel: bool = False,
        *,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.combine``."""
        return await self._collective("reduce_scatter", hidden_states, options, sizes=sizes, dim=0)

    async def prepare_communication_buffer_for_model(
        self, model: Sequence[Mapping[str, Any]], *, device: str = ""
    ) -> list[Any]:
        """As ``GroupCoordinator.prepare_communication_buffer_for_model``."""
        return await self._gang._carried_out(self._procedures.buffers(model, device))

    # --- values --------------------------------------------------------------------------------------------

    async def broadcast_object(
        self, obj: Sequence[object] | None = None, src: int = 0, **options: Unpack[MemberOptions]
    ) -> list[Any]:
        """As ``GroupCoordinator.broadcast_object``."""
        return await self._gang._carried_out(self._procedures.broadcast_object(obj, src, dict(options)))

    async def broadcast_object_list(
        self,
        obj_list: Sequence[Sequence[object] | None],
        src: int = 0,
        group: None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """As ``GroupCoordinator.broadcast_object_list``."""
        coordinated.check_own("broadcast_object_list", group=group)
        return await self._gang._carried_out(
            self._procedures.broadcast_object_list(obj_list, src, dict(options))
        )

    async def broadcast_tensor_dict(
        self,
        tensor_dict: Sequence[Mapping[Any, Any] | None] | None = None,
        src: int = 0,
        group: None = None,
        metadata_group: None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """As ``GroupCoordinator.broadcast_tensor_dict``."""
        coordinated.check_own("broadcast_tensor_dict", group=group, metadata_group=metadata_group)
        procedure = self._procedures.broadcast_tensor_dict(tensor_dict, src, dict(options))
        return await self._gang._carried_out(procedure)

    async def barrier(self, **options: Unpack[MemberOptions]) -> None:
        """As ``GroupCoordinator.barrier``."""
        return await self._gang._carried_out(self._procedures.barrier(dict(options)))

    # --- point to point ------------------------------------------------------------------------------------

    async def send(
        self,
        tensor: Sequence[Ref | None],
        dst: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[None]:
        """As ``GroupCoordinator.send``."""
        return await self._send("send", tensor, dst, ranks, options)

    async def recv(
        self,
        size: Iterable[int] | int,
        dtype: object,
        src: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Ref | None]:
        """As ``GroupCoordinator.recv``."""
        return await self._receive("recv", src, ranks, options, expected=(dtype, size))

    async def isend(
        self,
        tensor: Sequence[Ref | None],
        dst: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[AsyncWork[None] | None]:
        """As ``GroupCoordinator.isend``."""
        return await self._begin_send("send", tensor, dst, ranks, options)

    async def irecv(
        self,
        size: Iterable[int] | int,
        dtype: object,
        src: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[AsyncWork[tuple[Ref, int]] | None]:
        """As ``GroupCoordinator.irecv``."""
        return await self._begin_receive("recv", src, ranks, options, expected=(dtype, size))

    async def send_object(
        self,
        obj: Sequence[object],
        dst: int,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[None]:
        """As ``GroupCoordinator.send_object``."""
        return await self._send("send_object", obj, dst, ranks, options)

    async def recv_object(
        self, src: int, *, ranks: Iterable[int] | None = None, **options: Unpack[MemberOptions]
    ) -> list[Any]:
        """As ``GroupCoordinator.recv_object``."""
        return await self._receive("recv_object", src, ranks, options)

    async def isend_object(
        self,
        obj: Sequence[object],
        dst: int,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[AsyncWork[None] | None]:
        """As ``GroupCoordinator.isend_object``."""
        return await self._begin_send("send_object", obj, dst, ranks, options)

    async def irecv_object(
        self, src: int, *, ranks: Iterable[int] | None = None, **options: Unpack[MemberOptions]
    ) -> list[AsyncWork[tuple[Any, int]] | None]:
        """As ``GroupCoordinator.irecv_object``."""
        return await self._begin_receive("recv_object", src, ranks, options)

    async def send_tensor_dict(
        self,
        tensor_dict: Sequence[Mapping[Any, Any] | None],
        dst: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """As ``GroupCoordinator.send_tensor_dict``."""
        sent = await self._send("send_tensor_dict", tensor_dict, dst, ranks, options)
        return self._procedures.alone_with(tensor_dict, sent)

    async def recv_tensor_dict(
        self,
        src: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """As ``GroupCoordinator.recv_tensor_dict``."""
        return await self._receive("recv_tensor_dict", src, ranks, options)

    async def isend_tensor_dict(
        self,
        tensor_dict: Sequence[Mapping[Any, Any] | None],
        dst: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[AsyncWork[None] | None]:
        """As ``GroupCoordinator.isend_tensor_dict``."""
        return await self._begin_send("send_tensor_dict", tensor_dict, dst, ranks, options)

    async def irecv_tensor_dict(
        self,
        src: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[AsyncWork[tuple[dict[Any, Any], int]] | None]:
        """As ``GroupCoordinator.irecv_tensor_dict``."""
        return await self._begin_receive("recv_tensor_dict", src, ranks, options)

    # --- queues, graphs and the end ------------------------------------------------------------------------

    async def create_mq_broadcaster(
        self,
        writer_rank: int = 0,
        external_writer_handle: None = None,
        blocking: bool = True,
        *,
        max_chunk_bytes: int = 1 << 22,
        max_chunks: int = 6,
        **options: Unpack[MemberOptions],
    ) -> list[AsyncQueue | None]:
        """As ``GroupCoordinator.create_mq_broadcaster``."""
        coordinated.check_own("create_mq_broadcaster", external_writer_handle=external_writer_handle)
        procedure = self._procedures.queue_in_each(writer_rank, max_chunk_bytes, max_chunks, dict(options))
        made = [AsyncQueue(self._gang, queue) for queue in await self._gang._carried_out(procedure)]
        return self._procedures.by_rank([[queue] * len(queue.ranks) for queue in made])

    async def create_single_reader_mq_broadcasters(
        self,
        reader_rank_in_group: int = 0,
        blocking: bool = False,
        *,
        max_chunk_bytes: int = 1 << 22,
        max_chunks: int = 6,
        **options: Unpack[MemberOptions],
    ) -> list[AsyncQueue | None]:
        """As ``GroupCoordinator.create_single_reader_mq_broadcasters``."""
        procedure = self._procedures.queues_to_one_reader(
            reader_rank_in_group, max_chunk_bytes, max_chunks, dict(options)
        )
        of_groups = await self._gang._carried_out(procedure)
        return self._procedures.by_rank(
            [[None if made is None else AsyncQueue(self._gang, made) for made in own] for own in of_groups]
        )

    @contextlib.asynccontextmanager
    async def graph_capture(self, graph_capture_context: None = None) -> AsyncIterator[list[Graph | None]]:
        """As ``GroupCoordinator.graph_capture``."""
        coordinated.check_own("graph_capture", graph_capture_context=graph_capture_context)
        async with contextlib.AsyncExitStack() as stack:
            graphs = [
                await stack.enter_async_context(self._gang.graph_capture(group=group))
                for group in self.groups
            ]
            yield self._procedures.by_rank([[graph] * len(graph.ranks) for graph in graphs])

    async def destroy(self, *, timeout: float | None = None) -> None:
        """As ``GroupCoordinator.destroy``."""
        return await self._gang._carried_out(self._procedures.destroy(timeout))

    # --- inside --------------------------------------------------------------------------------------------

    async def _collective(
        self, operation: str, input_: Sequence[Ref | None], options: MemberOptions, **own: Any
    ) -> list[Any]:
        return await self._gang._carried_out(
            self._procedures.collective(operation, input_, dict(options), **own)
        )

    async def _send(
        self,
        operation: str,
        given: Sequence[Any],
        dst: int | None,
        ranks: Iterable[int] | None,
        options: MemberOptions,
    ) -> list[None]:
        callers = self._procedures.senders(operation, given, dst, ranks)
        return await self._gang._carried_out(
            self._procedures.sending(operation, given, callers, dict(options))
        )

    async def _receive(
        self, operation: str, src: int | None, ranks: Iterable[int] | None, options: MemberOptions, **own: Any
    ) -> list[Any]:
        callers = self._procedures.receivers(operation, src, ranks)
        return await self._gang._carried_out(
            self._procedures.receiving(operation, callers, dict(options), **own)
        )

    async def _begin_send(
        self,
        operation: str,
        given: Sequence[Any],
        dst: int | None,
        ranks: Iterable[int] | None,
        options: MemberOptions,
    ) -> list[Any]:
        begun: list[Any] = [None] * len(self._gang)
        async with _cancelled_unless_all(begun):
            for rank, group, place in self._procedures.senders(operation, given, dst, ranks):
                begun[rank] = await self._gang[rank]._begin(
                    operation, given[rank], dst_rank_in_group=place, group=group, **options
                )
        return begun

    async def _begin_receive(
        self, operation: str, src: int | None, ranks: Iterable[int] | None, options: MemberOptions, **own: Any
    ) -> list[Any]:
        begun: list[Any] = [None] * len(self._gang)
        async with _cancelled_unless_all(begun):
            for rank, group, place in self._procedures.receivers(operation, src, ranks):
                begun[rank] = await self._gang[rank]._begin(
                    operation, src_rank_in_group=place, group=group, **own, **options
                )
        return begun


@contextlib.asynccontextmanager
async def _cancelled_unless_all(begun: Sequence[AsyncWork[Any] | None]) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        for work in begun:
            if work is not None:
                with contextlib.suppress(RankBridgeError):
                    await work.cancel()
        raise
