"""Who waits for whom. A rank that is pending in a call waits for the members that have not issued it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .conditions import waits_in_kernel
from .evidence import Call, Evidence, RankEvidence
from .stacks import in_teardown, waits_for_device, waits_in_collective, waits_in_torch
from .verdict import Condition

_ELSEWHERE = {Condition.ASLEEP, Condition.BLOCKED_READ, Condition.WAITING_FOR_CHILD}
_ONE_SIDED = {"broadcast", "reduce", "gather", "gather_into_tensor", "scatter"}
_ONE_SIDED |= {"broadcast_object", "broadcast_object_list", "broadcast_tensor_dict"}


@dataclass(frozen=True)
class Waiting:
    """A rank that is pending in a call."""

    rank: int
    call: Call
    missing: tuple[int, ...]
    """Members that have not issued it, and members that are gone or stopped."""
    unknown: tuple[int, ...]
    """Members of which nothing is known."""
    seconds: float | None


class WaitsFor:
    """The graph of a job."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._ranks = {it.rank: it for it in evidence.ranks}
        self._issued = {it.rank: _issued(it) for it in evidence.ranks}
        # Of a job that is over, the last moment counts, at which nobody was down.
        down = [] if evidence.is_over else [it for it in evidence.ranks if it.is_gone or it.is_stopped]
        self._down = {it.rank for it in down}
        self._absent: dict[
            tuple[str, tuple[int, ...], int, bool], tuple[tuple[int, ...], tuple[int, ...]]
        ] = {}
        self.waiting = [
            it for rank in evidence.ranks if rank.rank not in self._down for it in self._pending(rank)
        ]

    def members(self, rank: RankEvidence, group: str) -> tuple[int, ...]:
        """Ranks of a group, as this rank knows it."""
        return next((it.ranks for it in rank.groups if it.name == group), ())

    def _pending(self, rank: RankEvidence) -> list[Waiting]:
        """The calls that it waits in: of each group and channel the oldest that lacks somebody, else the newest."""
        waits = not is_elsewhere(rank) and (rank.source != "ring" or _is_waiting(rank))
        lacking: dict[object, Waiting] = {}
        newest: dict[object, Waiting] = {}
        for call in rank.calls:
            # Whatever its host does, its device waits.
            if not waits and not call.on_device:
                continue
            key = _key(call)
            is_last = call is rank.calls[-1]
            # A call that not all have issued is not done, unless its kind lets some ranks go on.
            open_ = call.done is False or (call.done is None and (is_last or not _is_one_sided(call)))
            if key in lacking or not open_:
                continue
            waiting = self._waiting(rank, call)
            if not waits:
                waiting = replace(waiting, unknown=(), missing=self._lacking(waiting.missing, call))
            if waiting.missing or waiting.unknown:
                lacking[key] = waiting
            elif (waits or _may_wait_for_device(rank)) and (call.done is False or is_last):
                newest[key] = waiting
        return list((newest | lacking).values())

    def _waiting(self, rank: RankEvidence, call: Call) -> Waiting:
        if call.is_p2p:
            missing, unknown = self._peer(rank.rank, call)
        else:
            is_newest = call.number >= self._issued[rank.rank].get(_key(call), 0)
            missing, unknown = self._members(self.members(rank, call.group), call, is_newest)
        since = call.called_at
        if call.on_device and since is not None:
            # Nobody waits for those that move: with devices, ranks run ahead of each other.
            since = max([since, *(self._moved_at(it) for it in missing)])
        seconds = None if since is None else max(0.0, self._evidence.at - since)
        return Waiting(rank.rank, call, missing, unknown, seconds)

    def _moved_at(self, rank: int) -> float:
        """When a rank has called last."""
        found = self._ranks.get(rank)
        return max((it.called_at or 0.0 for it in found.calls), default=0.0) if found is not None else 0.0

    def _lacking(self, ranks: tuple[int, ...], call: Call) -> tuple[int, ...]:
        """Those that have not issued it. Others are done with it, also if they are gone by now."""
        if call.is_p2p:
            return tuple(it for it in ranks if it not in self._down)
        return tuple(it for it in ranks if self._lacks(it, call))

    def _members(
        self, members: tuple[int, ...], call: Call, is_newest: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        key = (call.group, members, call.number, is_newest)
        if key not in self._absent:
            missing = [
                it
                for it in members
                if self._lacks(it, call) or (it in self._down and self._left(it, call, is_newest))
            ]
            unknown = [it for it in members if it not in self._down and not self._is_known(it)]
            self._absent[key] = tuple(missing), tuple(unknown)
        return self._absent[key]

    def _left(self, rank: int, call: Call, is_newest: bool) -> bool:
        """Whether one that is gone or stopped has left a call to others, as far as its own calls say that.

        Where it is not known what is done: of those that it has issued, at most the newest is under way, and none if
        it has exited normally.
        """
        if call.done is False or not self._is_known(rank) or not self._ranks[rank].calls:
            return True
        return is_newest and self._ranks[rank].process.exit_status != 0

    def _lacks(self, rank: int, call: Call) -> bool:
        return self._is_known(rank) and self._issued[rank].get(_key(call), 0) < call.number

    def _is_known(self, rank: int) -> bool:
        return rank in self._ranks and bool(self._ranks[rank].source)

    def _peer(self, rank: int, call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if call.peer is None:
            return (), ()
        if call.peer in self._down:
            return (call.peer,), ()
        if not self._is_known(call.peer):
            return (), (call.peer,)
        answer = (call.answer, call.group, rank, call.tag)
        return ((call.peer,), ()) if self._issued[call.peer].get(answer, 0) < call.number else ((), ())

    @cached_property
    def edges(self) -> dict[int, frozenset[int]]:
        """Whom each waiting rank waits for."""
        edges: dict[int, frozenset[int]] = {}
        for it in self.waiting:
            others = frozenset(it.missing) - {it.rank}
            if others:
                edges[it.rank] = edges.get(it.rank, frozenset()) | others
        return edges

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        """Ranks that are waited for, and wait for nobody."""
        return tuple(sorted(frozenset().union(*self.edges.values()) - self.edges.keys()))

    def lasts(self, it: Waiting, patience_s: float) -> bool:
        """Whether it waits for longer than a moment, or in vain: guard has ended it, or one that it waits for."""
        if (it.seconds or 0.0) >= patience_s:
            return True
        return any(self._ranks[rank].has_disagreed for rank in (it.rank, *it.missing) if rank in self._ranks)

    def blocked_by(self, sink: int) -> list[Waiting]:
        """The calls that lack this rank."""
        return [it for it in self.waiting if sink in it.missing]

    @cached_property
    def cycle(self) -> tuple[int, ...]:
        """Ranks that wait for each other in a circle, and for nobody outside of it. Empty if there are none."""
        for component in _components(self.edges):
            inside = set(component)
            if len(component) > 1 and not any(self.edges[it] - inside for it in component):
                return _shortest_circle(component, self.edges)
        return ()


def is_elsewhere(rank: RankEvidence) -> bool:
    """Whether its main thread waits for something that no collective is, whatever calls it has left under way."""
    if not rank.threads or rank.waiting_s is not None or waits_in_collective(rank) or waits_in_torch(rank):
        return False
    return in_teardown(rank) or waits_in_kernel(rank.process) in _ELSEWHERE


def _is_waiting(rank: RankEvidence) -> bool:
    """Whether a rank of which it is not known what is done waits for a call, and not for something of its own."""
    if rank.is_gone:
        return True
    if rank.still is False:
        return False
    if rank.waiting_s is not None or not rank.threads or waits_in_collective(rank):
        return True
    return waits_in_torch(rank) or waits_for_device(rank)


def _may_wait_for_device(rank: RankEvidence) -> bool:
    """Whether it uses its CPU at one place after a call on a device, as it does while it waits for the result."""
    return bool(rank.still) and rank.process.state == "R" and bool(rank.calls) and rank.calls[-1].on_device


def _is_one_sided(call: Call) -> bool:
    return call.is_p2p or call.kind in _ONE_SIDED


def _key(call: Call) -> object:
    return (call.kind, call.group, call.peer, call.tag) if call.is_p2p else call.group


def _issued(rank: RankEvidence) -> dict[object, int]:
    newest: dict[object, int] = {}
    for call in rank.calls:
        key = _key(call)
        newest[key] = max(newest.get(key, 0), call.number)
    return newest


def _components(edges: dict[int, frozenset[int]]) -> Iterable[Sequence[int]]:
    """Strongly connected components, by Tarjan, without recursion."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in sorted(edges):
        if root in number:
            continue
        work = [(root, iter(sorted(edges[root])))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            for other in following:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    place = stack.index(node)
                    component = stack[place:]
                    del stack[place:]
                    on_stack.difference_update(component)
                    yield component


def _shortest_circle(component: Sequence[int], edges: dict[int, frozenset[int]]) -> tuple[int, ...]:
    """A shortest circle through the first rank that is on one of the shortest."""
    best: tuple[int, ...] = ()
    for start in sorted(component)[:64]:
        before: dict[int, int] = {}
        layer = [start]
        while layer and start not in before:
            following = []
            for node in layer:
                for other in sorted(edges.get(node, ())):
                    if other not in before:
                        before[other] = node
                        following.append(other)
            layer = following
        if start in before:
            path = [start]
            while before[path[-1]] != start:
                path.append(before[path[-1]])
            circle = (start, *reversed(path[1:]))
            if not best or len(circle) < len(best):
                best = circle
    return best
