"""Procedures of vLLM's ``GroupCoordinator``: one operation in several groups at once, with lists by rank."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from rankbridge._plan import group_procedures, operations as ops, queue_procedures
from rankbridge._plan.gang_core import GangCore, all_values, new_id, with_id
from rankbridge._plan.groups import Group, Member, check_place, listed
from rankbridge._plan.procedures import Procedure, calling, doing_several
from rankbridge._plan.queue import MadeQueue
from rankbridge._plan.ref import Ref
from rankbridge._plan.status import RankStatus
from rankbridge._plan.together import at_once, together
from rankbridge.errors import InvalidArgumentError, Outcome, RankBridgeError

T = TypeVar("T")

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

    def gathered(
        self, operation: str, lists: ByRank, dim: int, sizes: Sequence[int] | None, options: dict[str, Any]
    ) -> Procedure[list[Any]]:
        """Gathers several tensors of each member at once: for each rank a list."""
        picked = self._sizes(operation, sizes)

        def procedure(group: Group, lists: list[Any]) -> Procedure[list[Any]]:
            gather = {"dim": dim, **picked(group)}
            together_ = [("all_gather", refs, gather) for refs in _columns(operation, group, lists)]
            results = yield from doing_several(self._gang, "coalesce", together_, {**options, "group": group})
            return [list(each) for each in zip(*results, strict=True)]

        return self._unless_alone(operation, lists, procedure)

    def all_gatherv(
        self, input_: ByRank, dim: int, sizes: Sequence[int] | None, options: dict[str, Any]
    ) -> Procedure[list[Any]]:
        """Gathers a tensor of each member, or several at once."""
        self._check_list("all_gatherv", input_)
        if any(isinstance(own, list | tuple) for own in input_):
            return self.gathered("all_gatherv", input_, dim, sizes, options)
        return self.collective("all_gather", input_, options, sizes=sizes, dim=dim)

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
        given = {"hidden_states": hidden_states, "router_logits": router_logits, "extra_tensors": extras}
        for name, by_rank in given.items():
            self._check_list("dispatch", by_rank, name)
        lists = [
            [hidden, logits, *(extra or ())] if rank in self._group_of else None
            for rank, (hidden, logits, extra) in enumerate(zip(*given.values(), strict=True))
        ]
        gathered = yield from self.gathered("dispatch", lists, 0, sizes, options)
        return [None if own is None else _tokens(*own) for own in gathered]

    # --- values --------------------------------------------------------------------------------------------

    def from_source(
        self, operation: str, given: ByRank | None, src: int, options: dict[str, Any]
    ) -> Procedure[list[Any]]:
        """Gives every member its source's value, list or map of tensors; values go by the group's queue if it has one.

        Args:
            operation: "broadcast_object", "broadcast_object_list" or "broadcast_tensor_dict".
            given: What each has; what the others have does not count.
            src: Rank in the group of the source. A map of tensors is given back to who is alone whatever it is.
            options: ``MemberOptions``.
        """
        by_queue = operation == "broadcast_object" and bool(self._queues)
        if by_queue and src != 0:
            raise InvalidArgumentError(
                "the message queues are written by rank_in_group 0",
                operation=operation,
                expected="src 0",
                got=str(src),
            )
        if operation != "broadcast_tensor_dict":
            self._check_place(operation, "src", src)

        def procedure(group: Group, values: list[Any]) -> Procedure[list[Any]]:
            check_place(operation, "src", src, len(group), group.name)
            if by_queue:
                return _through(self._gang, self._queues[group.name], values[src], options)
            in_group = {**options, "src_rank_in_group": src, "group": group}
            if operation == "broadcast_object_list":
                values_of_source = ops.checked_list(operation, values[src])
                return calling(self._gang, "broadcast_object", values_of_source, in_group)
            return calling(self._gang, operation, values[src], in_group)

        by_rank = [None] * len(self._gang) if given is None else given
        return self._unless_alone(operation, by_rank, procedure, whole=False)

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

    def queues(
        self, operation: str, making: Callable[..., Procedure[T]], options: dict[str, Any], **place: int
    ) -> Procedure[list[T]]:
        """Makes a queue, or a list of queues, in every group: all of them, or none.

        Args:
            operation: What asks for them.
            making: The procedure for one group.
            options: ``MemberOptions``, and the queues' sizes.
            **place: Which rank in the group writes, or reads, by the name of its option.
        """
        for name, rank_in_group in place.items():
            self._check_place(operation, name, rank_in_group)
        name = f"mq-{new_id()}"
        own = {**options, **place}
        each = [making(self._gang, name, {**own, "group": group}) for group in self.groups]
        return (yield from queue_procedures.all_or_none(self._gang, each))

    # --- inside --------------------------------------------------------------------------------------------

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
        queues = yield from shared.queues(
            "new", queue_procedures.making, {"timeout": timeout}, writer_rank_in_group=0
        )
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


def _tokens(hidden: Any, logits: Any, *extra: Any) -> tuple[Any, ...]:
    return (hidden, logits, list(extra)) if extra else (hidden, logits)


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
