"""Procedures of vLLM's ``GroupCoordinator``: one operation in several groups at once, with lists by rank."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rankbridge._plan import compositions as compositions
from rankbridge._plan import group_procedures as group_procedures
from rankbridge._plan import operations as ops
from rankbridge._plan import queue_procedures as queue_procedures
from rankbridge._plan.gang_core import GangCore, all_values, new_id, with_id
from rankbridge._plan.groups import Group, Member, check_place, listed
from rankbridge._plan.procedures import Procedure, calling, coalescing
from rankbridge._plan.queue import MadeQueue
from rankbridge._plan.ref import Ref
from rankbridge._plan.status import RankStatus
from rankbridge._plan.together import at_once, together
from rankbridge.errors import InvalidArgumentError, Outcome, RankBridgeError

ByRank = Sequence[Any]
"""One for each rank of the gang, at its place; None for who is in none of the groups."""


class Part(NamedTuple):
    """One rank's part of sends or receives: its rank in the gang, and what its method takes."""

    rank: int
    args: tuple[Any, ...]
    options: dict[str, Any]


class Coordinated:
    """What the members of several groups do, as one.

    Attributes:
        groups: The groups, in order. No rank is in two of them.
    """

    def __init__(
        self, gang: GangCore[Any], groups: Iterable[Group], queues: Sequence[MadeQueue] = ()
    ) -> None:
        """Knows the groups; asks no rank."""
        self._gang = gang
        self.groups = tuple(groups)
        checked_groups(gang, [group.ranks for group in self.groups])
        self._queues = {queue.description.group: queue for queue in queues}
        self._group_of = {rank: group for group in self.groups for rank in group.ranks}

    def member(self, rank: int) -> Member:
        """Gives one rank of the gang as a member of its group.

        Raises:
            InvalidArgumentError: It is in none of the groups.
        """
        if rank not in self._group_of:
            raise InvalidArgumentError(
                f"rank {rank} is in none of the groups",
                operation="member",
                expected=f"one of ranks {listed(sorted(self._group_of))}",
                got=str(rank),
            )
        return self._group_of[rank].member(rank)

    def by_rank(self, of_groups: Sequence[Sequence[Any]]) -> list[Any]:
        """Makes of a list in group order for each group one by rank of the gang."""
        result: list[Any] = [None] * len(self._gang)
        for group, values in zip(self.groups, of_groups, strict=True):
            for rank, value in zip(group.ranks, values, strict=True):
                result[rank] = value
        return result

    # --- tensors -------------------------------------------------------------------------------------------

    def collective(
        self,
        operation: str,
        input_: ByRank,
        options: dict[str, Any],
        *,
        sizes: Sequence[int] | None = None,
        **own: Any,
    ) -> Procedure[list[Any]]:
        """Does a collective in every group; who is alone has its tensor back. `sizes`: by rank of the gang."""
        picked = self._sizes(operation, sizes)

        def procedure(group: Group, refs: list[Any]) -> Procedure[list[Any]]:
            in_group = {**options, **own, **picked(group), "group": group}
            return calling(self._gang, operation, refs, in_group)

        return self._unless_alone(operation, input_, procedure)

    def barrier(self, options: dict[str, Any]) -> Procedure[None]:
        """Waits for all members of each group."""
        yield from together(
            [calling(self._gang, "barrier", None, {**options, "group": group}) for group in self.groups]
        )

    def broadcast(self, input_: ByRank, src: int, options: dict[str, Any]) -> Procedure[list[Any]]:
        """Overwrites the members' tensors with the source's."""
        self._check_place("broadcast", "src", src)
        return self.collective("broadcast", input_, options, src_rank_in_group=src, in_place=True)

    def gather(self, input_: ByRank, dst: int, dim: int, options: dict[str, Any]) -> Procedure[list[Any]]:
        """Collects the members' tensors at one of each group."""
        for group in self.groups:
            if len(group) > 1:
                check_place("gather", "dst", dst, len(group), group.name)
        return self.collective("gather", input_, options, dst_rank_in_group=dst, dim=dim)

    def all_gatherv(
        self, input_: ByRank, dim: int, sizes: Sequence[int] | None, options: dict[str, Any]
    ) -> Procedure[list[Any]]:
        """Gathers a tensor of each member, or several at once."""
        self._check_list("all_gatherv", input_)
        if not any(isinstance(own, list | tuple) for own in input_):
            return self.collective("all_gather", input_, options, sizes=sizes, dim=dim)
        picked = self._sizes("all_gatherv", sizes)

        def procedure(group: Group, lists: list[Any]) -> Procedure[list[Any]]:
            gather = {"dim": dim, **picked(group)}
            inputs = _columns("all_gatherv", group, lists)
            gathered = yield from self._gathered(inputs, gather, {**options, "group": group})
            return [list(each) for each in zip(*gathered, strict=True)]

        return self._unless_alone("all_gatherv", input_, procedure)

    def dispatch(
        self,
        hidden_states: ByRank,
        router_logits: ByRank,
        extra_tensors: ByRank | None,
        sizes: Sequence[int] | None,
        options: dict[str, Any],
    ) -> Procedure[list[Any]]:
        """Gathers tokens, and what goes with them: for each rank a tuple."""
        extras = [()] * len(self._gang) if extra_tensors is None else extra_tensors
        for name, given in (("hidden_states", hidden_states), ("router_logits", router_logits)):
            self._check_list("dispatch", given, name)
        self._check_list("dispatch", extras, "extra_tensors")
        together_ = [
            (hidden, logits, *([list(extra)] if extra else []))
            for hidden, logits, extra in zip(hidden_states, router_logits, extras, strict=True)
        ]
        picked = self._sizes("dispatch", sizes)

        def procedure(group: Group, tuples: list[Any]) -> Procedure[list[Any]]:
            lists = [[hidden, logits, *(extra[0] if extra else ())] for hidden, logits, *extra in tuples]
            gather = {"dim": 0, **picked(group)}
            inputs = _columns("dispatch", group, lists)
            gathered = yield from self._gathered(inputs, gather, {**options, "group": group})
            return [
                (hidden, logits, *([extra] if extra else []))
                for hidden, logits, *extra in zip(*gathered, strict=True)
            ]

        members_alone = [own if rank in self._group_of else None for rank, own in enumerate(together_)]
        return self._unless_alone("dispatch", members_alone, procedure)

    def buffers(self, model: Sequence[Mapping[str, Any]], device: str) -> Procedure[list[Any]]:
        """Makes on each member a buffer for each dtype of a model."""
        made = yield from together(
            [compositions.preparing_buffers(self._gang, model, group, device) for group in self.groups]
        )
        return self.by_rank(made)

    # --- values --------------------------------------------------------------------------------------------

    def broadcast_object(self, obj: ByRank | None, src: int, options: dict[str, Any]) -> Procedure[list[Any]]:
        """Gives every member its source's value, through the group's queue if it has one."""
        if self._queues and src != 0:
            raise InvalidArgumentError(
                "the message queues are written by rank_in_group 0",
                operation="broadcast_object",
                expected="src 0",
                got=str(src),
            )
        self._check_place("broadcast_object", "src", src)

        def procedure(group: Group, values: list[Any]) -> Procedure[list[Any]]:
            queue = self._queues.get(group.name)
            if queue is None:
                in_group = {**options, "src_rank_in_group": src, "group": group}
                return calling(self._gang, "broadcast_object", values[src], in_group)
            return _through(self._gang, queue, values[src], options)

        given = [None] * len(self._gang) if obj is None else obj
        return self._unless_alone("broadcast_object", given, procedure, whole=False)

    def broadcast_object_list(
        self, obj_list: ByRank, src: int, options: dict[str, Any]
    ) -> Procedure[list[Any]]:
        """Gives every member its source's list."""
        self._check_place("broadcast_object_list", "src", src)

        def procedure(group: Group, lists: list[Any]) -> Procedure[list[Any]]:
            values = ops.checked_list("broadcast_object_list", lists[src])
            in_group = {**options, "src_rank_in_group": src, "group": group}
            return calling(self._gang, "broadcast_object", values, in_group)

        return self._unless_alone("broadcast_object_list", obj_list, procedure, whole=False)

    def broadcast_tensor_dict(
        self, tensor_dict: ByRank | None, src: int, options: dict[str, Any]
    ) -> Procedure[list[Any]]:
        """Gives every member its source's map of tensors."""

        def procedure(group: Group, maps: list[Any]) -> Procedure[list[Any]]:
            in_group = {**options, "src_rank_in_group": src, "group": group}
            check_place("broadcast_tensor_dict", "src", src, len(group), group.name)
            return calling(self._gang, "broadcast_tensor_dict", maps[src], in_group)

        given = [None] * len(self._gang) if tensor_dict is None else tensor_dict
        return self._unless_alone("broadcast_tensor_dict", given, procedure, whole=False)

    # --- point to point ------------------------------------------------------------------------------------

    def senders(
        self,
        operation: str,
        given: ByRank,
        dst: int | None,
        ranks: Iterable[int] | None,
        options: Mapping[str, Any],
    ) -> list[Part]:
        """Gives the parts of who sends.

        Args:
            operation: Which: "send".
            given: What each sends.
            dst: Rank in the group of the receiver. None: of each the next.
            ranks: Who sends. None: who gives something; of objects, all but the receiver.
            options: ``MemberOptions``.
        """
        self._check_list(operation, given)
        if ranks is None and operation != "send_object":
            ranks = [rank for rank, it in enumerate(given) if it is not None]
        parts = []
        for rank, group, place in self._pairs(operation, "dst", dst, 1, ranks):
            if operation == "send" and not (isinstance(given[rank], Ref) and given[rank].rank == rank):
                raise InvalidArgumentError(
                    "who sends gives a ref of its own",
                    rank=rank,
                    group=group.name,
                    operation=operation,
                    expected=f"a ref of rank {rank}",
                    got=repr(given[rank]),
                )
            parts.append(Part(rank, (given[rank],), {**options, "dst_rank_in_group": place, "group": group}))
        return parts

    def receivers(
        self,
        operation: str,
        src: int | None,
        ranks: Iterable[int] | None,
        options: Mapping[str, Any],
        **own: Any,
    ) -> list[Part]:
        """Gives the parts of who receives.

        Args:
            operation: Which: "recv".
            src: Rank in the group of the sender. None: of each the one before it.
            ranks: Who receives. None: all members but the sender.
            options: ``MemberOptions``.
            **own: What else the operation takes.
        """
        return [
            Part(rank, (), {**options, **own, "src_rank_in_group": place, "group": group})
            for rank, group, place in self._pairs(operation, "src", src, -1, ranks)
        ]

    def exchanging(self, operation: str, parts: Sequence[Part]) -> Procedure[list[Any]]:
        """Sends from several ranks at once, or receives on them, and waits for all."""
        build, scope = ops.find_operation(operation), self._gang._scope
        outcomes: list[Outcome[Any]] = yield [
            build(scope(rank), *args, **options) for rank, args, options in parts
        ]
        result: list[Any] = [None] * len(self._gang)
        for part, value in zip(parts, all_values(outcomes), strict=True):
            result[part.rank] = value
        return result

    def alone_with(self, given: ByRank, result: list[Any]) -> list[Any]:
        """Gives who is alone in its group what it has given."""
        for group in self.groups:
            if len(group) == 1:
                result[group.ranks[0]] = given[group.ranks[0]]
        return result

    # --- queues and ends -----------------------------------------------------------------------------------

    def queue_in_each(
        self, writer: int, max_chunk_bytes: int, max_chunks: int, options: dict[str, Any]
    ) -> Procedure[list[MadeQueue]]:
        """Makes a queue in every group: all of them, or none."""
        self._check_place("create_mq_broadcaster", "writer_rank", writer)
        sizes = {"max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        own = {**options, **sizes, "writer_rank_in_group": writer}
        name = queue_procedures.queue_name(None)
        making = [queue_procedures.making(self._gang, name, {**own, "group": group}) for group in self.groups]
        return (yield from queue_procedures.all_or_none(self._gang, making))

    def queues_to_one_reader(
        self, reader: int, max_chunk_bytes: int, max_chunks: int, options: dict[str, Any]
    ) -> Procedure[list[list[MadeQueue | None]]]:
        """Makes in every group a queue from each member to one reader: all of them, or none."""
        self._check_place("create_single_reader_mq_broadcasters", "reader_rank_in_group", reader)
        own = {**options, "max_chunk_bytes": max_chunk_bytes, "max_chunks": max_chunks}
        name = queue_procedures.queue_name(None)
        making = [
            queue_procedures.making_for_one_reader(self._gang, reader, name, {**own, "group": group})
            for group in self.groups
        ]
        return (yield from queue_procedures.all_or_none(self._gang, making))

    def destroy(self, timeout: float | None) -> Procedure[None]:
        """Ends the groups, and with them their queues."""
        yield from group_procedures.ending(self._gang, self.groups, timeout=timeout)

    # --- inside --------------------------------------------------------------------------------------------

    def _gathered(
        self, inputs: Sequence[Sequence[Ref]], gather: dict[str, Any], options: dict[str, Any]
    ) -> Procedure[list[Any]]:
        return coalescing(self._gang, [("all_gather", refs, gather) for refs in inputs], options)

    def _unless_alone(
        self,
        operation: str,
        given: ByRank,
        procedure: Callable[[Group, list[Any]], Procedure[list[Any]]],
        *,
        whole: bool = True,
    ) -> Procedure[list[Any]]:
        """Does something in every group, but gives a rank that is alone what it has given.

        `whole`: every member has to give something.
        """
        self._check_list(operation, given)
        if whole:
            self._check_whole(operation, given)
        of_groups = [[given[rank] for rank in group.ranks] for group in self.groups]
        results = yield from together(
            [
                at_once(own) if len(group) == 1 else procedure(group, own)
                for group, own in zip(self.groups, of_groups, strict=True)
            ]
        )
        return self.by_rank(results)

    def _pairs(
        self, operation: str, side: str, peer: int | None, step: int, ranks: Iterable[int] | None
    ) -> list[tuple[int, Group, int]]:
        """Gives who takes part: rank in the gang, its group, rank in the group of the other side."""
        named = ranks is not None
        members = [it for group in self.groups for it in group.members]
        pairs: list[tuple[int, Group, int]] = []
        for it in members if ranks is None else [self.member(rank) for rank in ranks]:
            if len(it.group) == 1 and not operation.endswith("object"):
                continue
            if peer is not None:
                check_place(operation, side, peer, len(it.group), it.group.name)
            if peer == it.rank_in_group:
                if not named and len(it.group) > 1:
                    continue
                raise InvalidArgumentError(
                    f"{side} is the rank itself",
                    rank=it.rank,
                    group=it.group.name,
                    operation=operation,
                    expected="another rank in the group",
                    got=str(peer),
                )
            other = (it.rank_in_group + step) % len(it.group) if peer is None else peer
            pairs.append((it.rank, it.group, other))
        return pairs

    def _check_list(self, operation: str, given: object, name: str = "") -> None:
        if isinstance(given, Ref | Mapping | str | bytes) or not isinstance(given, Sequence):
            got = type(given).__name__
        elif len(given) != len(self._gang):
            got = f"{len(given)}"
        else:
            return
        raise InvalidArgumentError(
            f"{name or 'what is given'} is by rank of the gang",
            operation=operation,
            expected=f"a list of {len(self._gang)}, one for each rank",
            got=got,
        )

    def _check_whole(self, operation: str, given: ByRank) -> None:
        missing = [rank for rank in sorted(self._group_of) if given[rank] is None]
        more = [rank for rank, it in enumerate(given) if it is not None and rank not in self._group_of]
        if missing or more:
            raise InvalidArgumentError(
                "each member gives something, and nobody else",
                operation=operation,
                expected=f"something of ranks {listed(sorted(self._group_of))}",
                got=f"nothing of {listed(missing)}" if missing else f"something of {listed(more)}",
            )

    def _sizes(self, operation: str, sizes: Sequence[int] | None) -> Callable[[Group], dict[str, Any]]:
        if sizes is None:
            return lambda _: {}
        by_rank = list(sizes)
        self._check_list(operation, by_rank, "sizes")
        return lambda group: {"sizes": [by_rank[rank] for rank in group.ranks]}

    def _check_place(self, operation: str, name: str, place: int) -> None:
        for group in self.groups:
            check_place(operation, name, place, len(group), group.name)


class CoordinatorCore:
    """What a coordinator knows, for both fronts."""

    _procedures: Coordinated

    def __repr__(self) -> str:
        """Gives the groups."""
        return f"{type(self).__name__}({[(group.name, list(group.ranks)) for group in self.groups]})"

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, in order."""
        return self._procedures.groups

    def member(self, rank: int) -> Member:
        """Gives what one rank of the gang is in its group.

        It has vLLM's properties: `rank`, `rank_in_group`, `local_rank`, `world_size`, `first_rank`, `last_rank`,
        `is_first_rank`, `is_last_rank`, `next_rank`, `prev_rank`; and `group`, with its `name` and `ranks`.

        Raises:
            InvalidArgumentError: The rank is in none of the groups.
        """
        return self._procedures.member(rank)


def forming(
    gang: GangCore[Any],
    group_ranks: Iterable[Iterable[int]],
    *,
    backend: str | None,
    group_name: str | None,
    with_queues: bool,
    timeout: float | None,
) -> Procedure[tuple[list[Group], list[MadeQueue]]]:
    """Makes the groups of a coordinator, and their queues if wanted: all of them, or none."""
    ranks = [tuple(own) for own in group_ranks]
    if not ranks:
        raise InvalidArgumentError("there are no groups", operation="new", expected="one or more", got="none")
    checked_groups(gang, ranks)
    name = f"anonymous-{new_id()}" if group_name is None else group_name
    statuses: list[RankStatus] = all_values((yield list(gang._on(gang._all(), ops.status))))
    others = sorted({status.backend for status in statuses} - {backend})
    if backend is not None and others:
        raise InvalidArgumentError(
            f"the gang's backend is {others[0]!r}",
            operation="new",
            expected=f"{others[0]!r}, or None",
            got=repr(backend),
        )
    wanted = [(f"{name}/{number}", own) for number, own in enumerate(ranks)]
    made = yield from group_procedures.making(gang, wanted, timeout=timeout, generation=0)
    places = [group_procedures.place_of(status) for status in statuses]
    groups = [replace(group, places=tuple(places[rank] for rank in group.ranks)) for group in made]
    if not with_queues:
        return groups, []
    try:
        shared = Coordinated(gang, [group for group in groups if len(group) > 1])
        queues = yield from shared.queue_in_each(0, 1 << 22, 6, {"timeout": timeout})
    except GeneratorExit:
        raise
    except BaseException:
        with contextlib.suppress(RankBridgeError):
            yield from group_procedures.ending(gang, groups, timeout=timeout)
        raise
    return groups, queues


def check_own(operation: str, **given: object) -> None:
    """Checks that what is vLLM's own, and has nothing here that it could be, is None.

    Raises:
        InvalidArgumentError: Something is not.
    """
    for name, value in given.items():
        if value is not None:
            raise InvalidArgumentError(
                f"{name} is the coordinator's own", operation=operation, expected="None", got=repr(value)
            )


def checked_groups(gang: GangCore[Any], groups: Sequence[Sequence[int]]) -> None:
    """Checks that ranks can be given by group.

    Raises:
        RankOutOfRangeError: One is not in the gang.
        InvalidArgumentError: One is in two groups, or twice in one.
    """
    ranks = [rank for group in groups for rank in group]
    group_procedures.check_ranks(gang, "group coordinator", ranks)
    twice = sorted({rank for rank in ranks if ranks.count(rank) > 1})
    if twice:
        raise InvalidArgumentError(
            "ranks are named twice",
            operation="group_coordinator",
            expected="each rank in one group at most, once",
            got=listed(twice),
        )


def _through(
    gang: GangCore[Any], queue: MadeQueue, value: object, options: dict[str, Any]
) -> Procedure[list[Any]]:
    """Broadcasts a value through a queue, past what an earlier broadcast that failed has left there."""
    token: str = with_id(options)["operation_id"]
    own = {**options, "operation_id": token}
    (written,) = yield [ops.enqueue(gang._scope(queue.writer), queue.description, (token, value), **own)]
    if written.error is not None:
        raise written.error
    got: dict[int, Any] = {queue.writer: value}
    waiting = list(queue.readers)
    for number in itertools.count():
        outcomes: list[Outcome[Any]] = yield [
            ops.dequeue(gang._scope(rank), queue.description, **{**own, "operation_id": f"{token}/{number}"})
            for rank in waiting
        ]
        for rank, read in zip(waiting, all_values(outcomes), strict=True):
            if isinstance(read, tuple) and len(read) == 2 and read[0] == token:
                got[rank] = read[1]
        waiting = [rank for rank in waiting if rank not in got]
        if not waiting:
            break
    return [got[rank] for rank in queue.ranks]


def _columns(operation: str, group: Group, lists: Sequence[Any]) -> list[list[Any]]:
    lengths = [len(own) if isinstance(own, list | tuple) else None for own in lists]
    if None in lengths or len(set(lengths)) > 1:
        raise InvalidArgumentError(
            "the members give different numbers of tensors",
            group=group.name,
            operation=operation,
            expected="as many of each member",
            got=str(lengths),
        )
    return [list(column) for column in zip(*lists, strict=True)]
