# Written by scripts/unasync.py from _async/compat/vllm.py: change that file, not this one.
"""vLLM's ``GroupCoordinator`` over a gang, blocking."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, Unpack

from rankbridge._plan import group_procedures, queue_procedures, vllm as coordinated
from rankbridge._plan.compositions import preparing_buffers
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group, Member
from rankbridge._plan.operations import MemberOptions
from rankbridge._plan.procedures import calling
from rankbridge._plan.queue import MadeQueue
from rankbridge._plan.ref import Ref
from rankbridge._plan.together import together
from rankbridge._plan.vllm import Coordinated, Part
from rankbridge._sync.gang import Gang
from rankbridge._sync.queue import Queue
from rankbridge._sync.work import Work
from rankbridge.errors import RankBridgeError


class GroupCoordinator:
    """Some groups of a gang, by the names, argument orders and defaults of vLLM's ``GroupCoordinator``.

    There, each rank has an object that speaks for itself. Here, one object speaks for all ranks at once: of what
    differs from rank to rank - tensors, values, sizes, results - there is a list by rank of the gang, of ``len(gang)``
    entries. Entry r is what rank r would give to vLLM's method, or get from it; None for ranks in none of the groups.
    A tensor is a ``Ref``. What vLLM's ranks must agree on - `dim`, `src`, `dst` - is given once, for all groups. `src`
    and `dst` are ranks in the group, as there. All groups are called at once.

    Who is alone in its group gets back what it gave, without a call, as in vLLM. Otherwise results are new refs, but
    for `broadcast`, which overwrites the refs that it is given, as vLLM's does.

    ``**options`` are ``MemberOptions``: `timeout` in seconds, `operation_id`, `generation`. What fails raises one
    ``GangError`` with the outcomes of all groups. ``Gang`` has the same operations with more options.

    Attributes:
        groups: The groups, in order.
    """

    def __init__(self, gang: Gang, groups: Iterable[Group], *, _queues: Sequence[MadeQueue] = ()) -> None:
        """Takes groups that are there; `new` makes them.

        Args:
            gang: The gang.
            groups: Groups of it, as from `new_group` or ``mesh.groups()``. No rank may be in two of them.
            _queues: Of `new`.

        Raises:
            InvalidArgumentError: A rank is in two of them.
        """
        self._gang = gang
        self._procedures = Coordinated(gang, groups, _queues)
        self.groups = self._procedures.groups

    def __repr__(self) -> str:
        """Gives the groups."""
        return f"{type(self).__name__}({[(group.name, list(group.ranks)) for group in self.groups]})"

    @classmethod
    def new(
        cls,
        gang: Gang,
        group_ranks: Iterable[Iterable[int]],
        local_rank: object = None,
        backend: str | None = None,
        use_device_communicator: bool = True,
        use_message_queue_broadcaster: bool = False,
        group_name: str | None = None,
        *,
        timeout: float | None = None,
    ) -> Self:
        """Makes the groups: all of them, or none.

        Args:
            gang: The gang.
            group_ranks: Ranks of each group, in group order. No rank may be in two groups; it may be in none.
            local_rank: Taken and not looked at: each rank knows its own.
            backend: None, or the gang's own.
            use_device_communicator: Taken and not looked at: tensors are moved by the backend in either case.
            use_message_queue_broadcaster: Whether `broadcast_object` goes through message queues, one for each group of
                two or more, written by rank_in_group 0.
            group_name: What the names of the groups begin with: "tp/0", "tp/1". None: what nothing else has.
            timeout: Longest time for each group, in seconds. None: the gang's default.

        Raises:
            InvalidArgumentError: The gang has another backend, which the error names; a rank is named twice.
            RankOutOfRangeError: A rank is not in the gang.
            GroupExistsError: There are groups of such names. None was made.
            GangError: One could not be made.
        """
        procedure = coordinated.forming(
            gang,
            group_ranks,
            backend=backend,
            group_name=group_name,
            with_queues=use_message_queue_broadcaster,
            timeout=timeout,
        )
        groups, queues = gang._carried_out(procedure)
        return cls(gang, groups, _queues=queues)

    def member(self, rank: int) -> Member:
        """Gives what one rank of the gang is in its group.

        It has vLLM's properties: `rank`, `rank_in_group`, `local_rank`, `world_size`, `first_rank`, `last_rank`,
        `is_first_rank`, `is_last_rank`, `next_rank`, `prev_rank`; and `group`, with its `name` and `ranks`.

        Raises:
            InvalidArgumentError: The rank is in none of the groups.
        """
        return self._procedures.member(rank)

    # --- tensors -------------------------------------------------------------------------------------------

    def all_reduce(self, input_: Sequence[Ref | None], **options: Unpack[MemberOptions]) -> list[Ref | None]:
        """Gives every member the sum of all its group's tensors."""
        return self._collective("all_reduce", input_, options)

    def all_gather(
        self, input_: Sequence[Ref | None], dim: int = -1, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """Gives every member all its group's tensors, concatenated along `dim`."""
        return self._collective("all_gather", input_, options, dim=dim)

    def all_gatherv(
        self,
        input_: Sequence[Any],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """Gives every member all its group's tensors, concatenated along `dim`, of one input or of several at once.

        Args:
            input_: Refs by rank, or by rank a list of refs.
            dim: Dimension along which to concatenate.
            sizes: By rank, the size of its tensors along `dim`. None: all are alike.
            **options: See the class.

        Returns:
            By rank a ref, or a list of refs.
        """
        procedure = self._procedures.all_gatherv(input_, dim, sizes, dict(options))
        return self._gang._carried_out(procedure)

    def reduce_scatter(
        self, input_: Sequence[Ref | None], dim: int = -1, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """Gives every member its part, along `dim`, of the sum of all its group's tensors."""
        return self._collective("reduce_scatter", input_, options, dim=dim)

    def reduce_scatterv(
        self,
        input_: Sequence[Ref | None],
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Ref | None]:
        """Gives every member its part of the sum; `sizes` are, by rank, those of the parts. None: equal parts."""
        return self._collective("reduce_scatter", input_, options, sizes=sizes, dim=dim)

    def gather(
        self, input_: Sequence[Ref | None], dst: int = 0, dim: int = -1, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """Gives one member of each group all its tensors, concatenated along `dim`; None to the others."""
        return self._gang._carried_out(self._procedures.gather(input_, dst, dim, dict(options)))

    def broadcast(
        self, input_: Sequence[Ref | None], src: int = 0, **options: Unpack[MemberOptions]
    ) -> list[Ref | None]:
        """Overwrites every member's tensor with its source's, and gives the same refs."""
        return self._gang._carried_out(self._procedures.broadcast(input_, src, dict(options)))

    # By these names vLLM gives new tensors; here all of them are new.
    _all_reduce_out_place = all_reduce
    _all_gather_out_place = all_gather
    _reduce_scatter_out_place = reduce_scatter

    def dispatch(
        self,
        hidden_states: Sequence[Ref | None],
        router_logits: Sequence[Ref | None],
        is_sequence_parallel: bool = False,
        extra_tensors: Sequence[Sequence[Ref] | None] | None = None,
        *,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """Gives every member all its group's tokens, and what goes with them: one call, along dimension 0.

        Args:
            hidden_states: By rank its tokens, a row each.
            router_logits: By rank a row for each of its tokens.
            is_sequence_parallel: Taken and not looked at: vLLM chooses between its groups by it, this has its own.
            extra_tensors: By rank a list of more tensors, with a row for each of its tokens.
            sizes: By rank the number of its tokens, which vLLM has from its model runner. None: all have equally many.
            **options: See the class.

        Returns:
            By rank a tuple of all tokens and all logits, and a list of the extra tensors if there are any.
        """
        procedure = self._procedures.dispatch(
            hidden_states, router_logits, extra_tensors, sizes, dict(options)
        )
        return self._gang._carried_out(procedure)

    def combine(
        self,
        hidden_states: Sequence[Ref | None],
        is_sequence_parallel: bool = False,
        *,
        sizes: Sequence[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Ref | None]:
        """Gives every member the sum of all its group's results for its own tokens.

        Args:
            hidden_states: By rank its results for all tokens of the group, a row each.
            is_sequence_parallel: Taken and not looked at.
            sizes: As of `dispatch`.
            **options: See the class.
        """
        return self._collective("reduce_scatter", hidden_states, options, sizes=sizes, dim=0)

    def prepare_communication_buffer_for_model(
        self, model: Sequence[Mapping[str, Any]], *, device: str = ""
    ) -> list[Any]:
        """Makes on each member a buffer for each dtype of a model, as large as its largest parameter of that dtype.

        vLLM takes the module itself, and prepares what its kernels for experts need.

        Args:
            model: Of each parameter a map of "name", "shape" and "dtype".
            device: "cpu", "cuda:0". Empty: each rank's own.

        Returns:
            By rank a map from the dtype's name to a ref, on a tensor of one dimension, all zeros.

        Raises:
            InvalidArgumentError: A description is not of a parameter. No rank was asked.
            GangError: A buffer could not be made; those of its group are released again.
        """
        made = [preparing_buffers(self._gang, model, group, device) for group in self.groups]
        return self._procedures.by_rank(self._gang._carried_out(together(made)))

    # --- values --------------------------------------------------------------------------------------------

    def broadcast_object(
        self, obj: Sequence[object] | None = None, src: int = 0, **options: Unpack[MemberOptions]
    ) -> list[Any]:
        """Gives every member its source's value; what the others give does not count.

        Args:
            obj: Values by rank.
            src: Who sends. With message queues it is 0.
            **options: See the class.
        """
        return self._broadcast("broadcast_object", obj, src, options)

    def broadcast_object_list(
        self,
        obj_list: Sequence[Sequence[object] | None],
        src: int = 0,
        group: None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """Gives every member its source's list of values; what the others give does not count.

        Args:
            obj_list: By rank a list.
            src: Who sends.
            group: None: it is the coordinator's.
            **options: See the class.
        """
        coordinated.check_own("broadcast_object_list", group=group)
        return self._broadcast("broadcast_object_list", obj_list, src, options)

    def broadcast_tensor_dict(
        self,
        tensor_dict: Sequence[Mapping[Any, Any] | None] | None = None,
        src: int = 0,
        group: None = None,
        metadata_group: None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """Gives every member its source's map, with tensors of its own; what the others give does not count.

        Args:
            tensor_dict: By rank a map.
            src: Who sends.
            group: None: it is the coordinator's.
            metadata_group: None: there is no other way for what is no tensor.
            **options: See the class.
        """
        coordinated.check_own("broadcast_tensor_dict", group=group, metadata_group=metadata_group)
        return self._broadcast("broadcast_tensor_dict", tensor_dict, src, options)

    def barrier(self, **options: Unpack[MemberOptions]) -> None:
        """Waits until the members of each group have been reached."""
        calls = [calling(self._gang, "barrier", None, {**options, "group": group}) for group in self.groups]
        self._gang._carried_out(together(calls))

    # --- point to point ------------------------------------------------------------------------------------

    def send(
        self,
        tensor: Sequence[Ref | None],
        dst: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[None]:
        """Sends tensors, and waits until they were received: begin one of the two sides with `isend` or `irecv`.

        Args:
            tensor: By rank what it sends.
            dst: Who receives, in each group. None: of each the next rank.
            ranks: Which ranks of the gang send. None: those that give a tensor.
            **options: See the class.

        Returns:
            None, by rank.
        """
        return self._send("send", tensor, dst, ranks, options)

    def recv(
        self,
        size: Iterable[int] | int,
        dtype: object,
        src: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Ref | None]:
        """Receives tensors, all of one shape and dtype.

        Args:
            size: Shape of what comes.
            dtype: Dtype of what comes.
            src: Who sends, in each group. None: of each the rank before it.
            ranks: Which ranks of the gang receive. None: all members but the sender; without `src`, all members.
            **options: See the class.

        Returns:
            By rank what came, None for those that did not receive.

        Raises:
            GangError: ``MismatchError``: another shape or dtype came; ``PeerMissingError``: nothing came.
        """
        return self._receive("recv", src, ranks, options, expected=(dtype, size))

    def send_object(
        self,
        obj: Sequence[object],
        dst: int,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[None]:
        """Sends values, and waits until they were received.

        Args:
            obj: By rank what it sends.
            dst: Who receives, in each group.
            ranks: Which ranks of the gang send. None: all members but the receiver; None is a value.
            **options: See the class.
        """
        return self._send("send_object", obj, dst, ranks, options)

    def recv_object(
        self, src: int, *, ranks: Iterable[int] | None = None, **options: Unpack[MemberOptions]
    ) -> list[Any]:
        """Receives values, and gives them by rank; `ranks` as of `recv`."""
        return self._receive("recv_object", src, ranks, options)

    def send_tensor_dict(
        self,
        tensor_dict: Sequence[Mapping[Any, Any] | None],
        dst: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """Sends maps of tensors, and waits until they were received.

        Args:
            tensor_dict: By rank what it sends.
            dst: Who receives, in each group. None: of each the next rank.
            all_gather_group: Taken and not looked at: vLLM sends a slice of each tensor and gathers the rest in this
                group; here the whole tensor is sent, with the same result.
            all_gather_tensors: Taken and not looked at.
            ranks: Which ranks of the gang send. None: those that give a map.
            **options: See the class.

        Returns:
            None, by rank; its own map of who is alone in its group.
        """
        sent = self._send("send_tensor_dict", tensor_dict, dst, ranks, options)
        return self._procedures.alone_with(tensor_dict, sent)

    def recv_tensor_dict(
        self,
        src: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Any]:
        """Receives maps of tensors, and gives them by rank; arguments as of `recv` and `send_tensor_dict`."""
        return self._receive("recv_tensor_dict", src, ranks, options)

    # --- that begin: written by scripts/methods.py from the methods above

    def isend(
        self,
        tensor: Sequence[Ref | None],
        dst: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Work[None] | None]:
        """Begins `send`, and gives by rank what to wait for: None for those that do not send."""
        return self._begin("send", self._procedures.senders("send", tensor, dst, ranks, options))

    def irecv(
        self,
        size: Iterable[int] | int,
        dtype: object,
        src: int | None = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Work[tuple[Ref, int]] | None]:
        """Begins `recv`, and gives by rank what to wait for: what came, and from which rank in group."""
        return self._begin(
            "recv", self._procedures.receivers("recv", src, ranks, options, expected=(dtype, size))
        )

    def isend_object(
        self,
        obj: Sequence[object],
        dst: int,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Work[None] | None]:
        """Begins `send_object`, and gives by rank what to wait for: None for those that do not send."""
        return self._begin("send_object", self._procedures.senders("send_object", obj, dst, ranks, options))

    def irecv_object(
        self, src: int, *, ranks: Iterable[int] | None = None, **options: Unpack[MemberOptions]
    ) -> list[Work[tuple[Any, int]] | None]:
        """Begins `recv_object`, and gives by rank what to wait for: what came, and from which rank in group."""
        return self._begin("recv_object", self._procedures.receivers("recv_object", src, ranks, options))

    def isend_tensor_dict(
        self,
        tensor_dict: Sequence[Mapping[Any, Any] | None],
        dst: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Work[None] | None]:
        """Begins `send_tensor_dict`, and gives by rank what to wait for: None for those that do not send."""
        return self._begin(
            "send_tensor_dict", self._procedures.senders("send_tensor_dict", tensor_dict, dst, ranks, options)
        )

    def irecv_tensor_dict(
        self,
        src: int | None = None,
        all_gather_group: object = None,
        all_gather_tensors: object = None,
        *,
        ranks: Iterable[int] | None = None,
        **options: Unpack[MemberOptions],
    ) -> list[Work[tuple[dict[Any, Any], int]] | None]:
        """Begins `recv_tensor_dict`, and gives by rank what to wait for: what came, and from which rank in group."""
        return self._begin(
            "recv_tensor_dict", self._procedures.receivers("recv_tensor_dict", src, ranks, options)
        )

    # --- end of those that begin

    # --- queues, graphs and the end ------------------------------------------------------------------------

    def create_mq_broadcaster(
        self,
        writer_rank: int = 0,
        external_writer_handle: None = None,
        blocking: bool = True,
        *,
        max_chunk_bytes: int = 1 << 22,
        max_chunks: int = 6,
        **options: Unpack[MemberOptions],
    ) -> list[Queue | None]:
        """Makes in each group a queue from one member to all others: in all groups, or in none.

        `writer_rank` is the rank in the group that writes. `external_writer_handle` must be None: there are no writers
        outside the gang. `blocking` changes nothing: a queue that is made is ready. The sizes are those of
        ``Gang.new_queue``.

        Returns:
            By rank the queue of its group.
        """
        coordinated.check_own("create_mq_broadcaster", external_writer_handle=external_writer_handle)
        sizes = {"max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        procedure = self._procedures.queues(
            "create_mq_broadcaster",
            queue_procedures.making,
            {**options, **sizes},
            writer_rank_in_group=writer_rank,
        )
        made = [Queue(self._gang, queue) for queue in self._gang._carried_out(procedure)]
        return self._procedures.by_rank([[queue] * len(queue.ranks) for queue in made])

    def create_single_reader_mq_broadcasters(
        self,
        reader_rank_in_group: int = 0,
        blocking: bool = False,
        *,
        max_chunk_bytes: int = 1 << 22,
        max_chunks: int = 6,
        **options: Unpack[MemberOptions],
    ) -> list[Queue | None]:
        """Makes in each group a queue from each other member to one reader: in all groups, or in none.

        `reader_rank_in_group` reads all of them. The other arguments are as of `create_mq_broadcaster`.

        Returns:
            By rank the queue that it writes, None for readers.
        """
        sizes = {"max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        procedure = self._procedures.queues(
            "create_single_reader_mq_broadcasters",
            queue_procedures.making_for_one_reader,
            {**options, **sizes},
            reader_rank_in_group=reader_rank_in_group,
        )
        of_groups = self._gang._carried_out(procedure)
        return self._procedures.by_rank(
            [[None if made is None else Queue(self._gang, made) for made in own] for own in of_groups]
        )

    @contextlib.contextmanager
    def graph_capture(self, graph_capture_context: None = None) -> Iterator[list[Graph | None]]:
        """Records what is done in each group inside a ``with`` statement: see ``Gang.graph_capture``.

        Args:
            graph_capture_context: None: it has no CUDA stream.

        Gives:
            By rank the graph of its group, for ``Gang.replay``.
        """
        coordinated.check_own("graph_capture", graph_capture_context=graph_capture_context)
        with contextlib.ExitStack() as stack:
            graphs = [stack.enter_context(self._gang.graph_capture(group=group)) for group in self.groups]
            yield self._procedures.by_rank([[graph] * len(graph.ranks) for graph in graphs])

    def destroy(self, *, timeout: float | None = None) -> None:
        """Ends the groups and their queues, after the calls queued on them."""
        self._gang._carried_out(group_procedures.ending(self._gang, self.groups, timeout=timeout))

    # --- inside --------------------------------------------------------------------------------------------

    def _collective(
        self, operation: str, input_: Sequence[Ref | None], options: MemberOptions, **own: Any
    ) -> list[Any]:
        return self._gang._carried_out(self._procedures.collective(operation, input_, dict(options), **own))

    def _broadcast(
        self, operation: str, given: Sequence[Any] | None, src: int, options: MemberOptions
    ) -> list[Any]:
        procedure = self._procedures.from_source(operation, given, src, dict(options))
        return self._gang._carried_out(procedure)

    def _send(
        self,
        operation: str,
        given: Sequence[Any],
        dst: int | None,
        ranks: Iterable[int] | None,
        options: MemberOptions,
    ) -> list[Any]:
        parts = self._procedures.senders(operation, given, dst, ranks, options)
        return self._gang._carried_out(self._procedures.exchanging(operation, parts))

    def _receive(
        self, operation: str, src: int | None, ranks: Iterable[int] | None, options: MemberOptions, **own: Any
    ) -> list[Any]:
        parts = self._procedures.receivers(operation, src, ranks, options, **own)
        pairs = self._gang._carried_out(self._procedures.exchanging(operation, parts))
        return [None if pair is None else pair[0] for pair in pairs]

    def _begin(self, operation: str, parts: Sequence[Part]) -> list[Any]:
        begun: list[Work[Any] | None] = [None] * len(self._gang)
        try:
            for rank, args, options in parts:
                begun[rank] = self._gang[rank]._begin(operation, *args, **options)
        except BaseException:
            for work in begun:
                if work is not None:
                    with contextlib.suppress(RankBridgeError):
                        work.cancel()
            raise
        return begun
