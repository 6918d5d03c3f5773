"""What the ranks of a gang say of themselves, as evidence: who waits in which call for whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..core.activity import Doing
from .admissions import unreported
from .conditions import gil_holder
from .contract_texts import frame_of, with_contract
from .evidence import Call, Evidence, Group, Process, RankEvidence, Thread
from .stacks import is_ours, is_users
from .testimony import Admission, Operation, Silence, Testimony
from .verdict import Condition

_HISTORY, _MOST_CALLS = 64, 32_000
"""Operations of each group that all members have done: at least so many, and more where ranks are few."""

_Key = tuple[str, int, int]
"""Group, generation and number of an operation that was admitted: of all members, the same one."""


def evidence_of(
    testimonies: Sequence[Testimony],
    silences: Sequence[Silence],
    *,
    world_size: int,
    at: float,
    interval_s: float,
) -> Evidence:
    """Evidence of a gang. Calls of a group are numbered in the order in which they came.

    Those that all members have done come first, then what is in the backend, then what waits for members.
    """
    groups = {group.name: group.ranks for it in testimonies for group in it.groups}
    book = _Book(testimonies, groups, at)
    ranks = [_rank(it, book) for it in testimonies]
    ranks += [_silent(it, book) for it in silences]
    return Evidence(
        at=at,
        interval_s=interval_s,
        world_size=world_size,
        ranks=tuple(sorted(ranks, key=lambda it: it.rank)),
        has_numbers=False,
    )


class _Book:
    """The calls of all ranks, numbered."""

    def __init__(
        self, testimonies: Sequence[Testimony], groups: Mapping[str, tuple[int, ...]], at: float
    ) -> None:
        self._groups = groups
        self._calls: dict[int, list[Call]] = defaultdict(list)
        self._waiting: dict[int, float] = {}
        self.in_backend: set[int] = set()
        operations = {it.rank: [one for one in it.operations if not one.function] for it in testimonies}
        self.late_s = _lateness(operations)
        numbers: Counter[str] = Counter()
        for group, done in _done_by_all(operations, groups).items():
            for numbers[group], by_rank in enumerate(done, 1):
                for rank, it in by_rank.items():
                    self._add(rank, it, numbers[group], done=True)
        for group in groups:
            inside = {
                rank: it
                for rank, its in operations.items()
                for it in its
                if it.group == group and it.done_at is None and it.entered_at is not None
            }
            if inside:
                self._enter(group, inside, numbers)
        for admission in (
            *(one for it in testimonies for one in it.admissions),
            *unreported(testimonies, at),
        ):
            self._wait(admission, operations, numbers, at)
        for rank, its in operations.items():
            for operation in its:
                if operation.done_at is None and operation.entered_at is None:
                    self._post(rank, operation, at)

    def calls(self, rank: int) -> tuple[Call, ...]:
        """The calls of a rank."""
        return tuple(self._calls[rank])

    def waiting(self, rank: int) -> float | None:
        """For how many seconds a rank has waited for members, at most."""
        return self._waiting.get(rank)

    def _add(self, rank: int, it: Operation, number: int, *, done: bool) -> None:
        call = Call(
            group=it.group,
            number=number,
            kind=it.kind,
            site=frame_of(it.site),
            called_at=it.called_at,
            done=done,
        )
        self._calls[rank].append(with_contract(call, it.contract, self._groups.get(it.group, ())))

    def _enter(self, group: str, inside: Mapping[int, Operation], numbers: Counter[str]) -> None:
        numbers[group] += 1
        one = next(iter(inside.values()))
        for rank in self._groups[group]:
            # Whoever was admitted and is not there has left the backend.
            self._add(rank, inside.get(rank, one), numbers[group], done=rank not in inside)
        self.in_backend |= inside.keys()

    def _wait(
        self,
        admission: Admission,
        operations: Mapping[int, Sequence[Operation]],
        numbers: Counter[str],
        at: float,
    ) -> None:
        group = admission.group
        numbers[group] += 1
        for rank, after in admission.arrived:
            mine = next((it for it in operations.get(rank, ()) if _waits_in(it, group)), None)
            # By one clock, that of the group's leader.
            since = at - admission.waited_s + after
            made = mine or Operation(
                kind=admission.kind, group=group, operation_id=admission.operation_id, called_at=since
            )
            self._add(rank, replace(made, called_at=since), numbers[group], done=False)
            self._note_wait(rank, at - since)

    def _post(self, rank: int, it: Operation, at: float) -> None:
        """A send or a receive that waits for its other end."""
        before = len(self._calls[rank])
        self._add(rank, it, 1, done=False)
        if self._calls[rank][-1].is_p2p:
            self._note_wait(rank, at - it.called_at)
        else:
            del self._calls[rank][before:]

    def _note_wait(self, rank: int, seconds: float) -> None:
        self._waiting[rank] = max(self._waiting.get(rank, 0.0), seconds)


def _waits_in(it: Operation, group: str) -> bool:
    return it.group == group and it.done_at is None and it.entered_at is None and it.announced_at is not None


def _done_by_all(
    operations: Mapping[int, Sequence[Operation]], groups: Mapping[str, tuple[int, ...]]
) -> dict[str, list[dict[int, Operation]]]:
    """Of each group, the newest operations that all its members have done, in the order in which they were called."""
    found: dict[str, list[dict[int, Operation]]] = defaultdict(list)
    for (group, _, _), by_rank in sorted(_went_well(operations).items()):
        if by_rank.keys() == {*groups.get(group, ())}:
            found[group].append(by_rank)
    most = max(_HISTORY, _MOST_CALLS // max(1, len(operations)))
    return {group: them[-most:] for group, them in found.items()}


def _lateness(operations: Mapping[int, Sequence[Operation]]) -> dict[int, float]:
    """For how long each rank has kept the others of an operation waiting that went well, at most."""
    late: dict[int, float] = defaultdict(float)
    for by_rank in _went_well(operations).values():
        arrivals = {rank: it.announced_at for rank, it in by_rank.items() if it.announced_at is not None}
        first = min(arrivals.values(), default=0.0)
        for rank, at in arrivals.items():
            late[rank] = max(late[rank], at - first)
    return late


def _went_well(operations: Mapping[int, Sequence[Operation]]) -> dict[_Key, dict[int, Operation]]:
    by_key: dict[_Key, dict[int, Operation]] = defaultdict(dict)
    for rank, its in operations.items():
        for it in its:
            if it.sequence is not None and it.done_at is not None and not it.code:
                by_key[it.group, it.generation, it.sequence][rank] = it
    return by_key


def _rank(it: Testimony, book: _Book) -> RankEvidence:
    if it.outside is not None:
        silence = Silence(
            rank=it.rank, pid=it.pid, host=it.host, process=it.process, threads=it.threads, still=it.still
        )
        return replace(
            _silent(silence, book), groups=it.groups, begun=True, late_s=book.late_s.get(it.rank, 0.0)
        )
    made = RankEvidence(
        rank=it.rank,
        pid=it.pid,
        host=it.host,
        process=it.process,
        groups=it.groups,
        threads=_of_the_user(it.threads),
        still=it.still,
        begun=True,
        source="record",
        calls=book.calls(it.rank),
        waiting_s=book.waiting(it.rank),
        late_s=book.late_s.get(it.rank, 0.0),
    )
    if it.activity is not None and it.activity.doing is Doing.HELD:
        return replace(
            made, says=Condition.HELD.value, process=Process(state="S", blocked_s=it.activity.seconds)
        )
    if it.rank in book.in_backend or made.waiting_s is not None:
        return replace(made, says=Condition.IN_COLLECTIVE.value)
    if not made.threads:
        idle = it.activity.seconds if it.activity is not None and it.activity.doing is Doing.IDLE else None
        return replace(made, says=Condition.IDLE.value, process=Process(state="S", blocked_s=idle))
    return made


def _silent(it: Silence, book: _Book) -> RankEvidence:
    made = RankEvidence(
        rank=it.rank,
        pid=it.pid,
        host=it.host,
        process=it.process,
        threads=_of_the_user(_users_first(it.threads)),
        still=it.still,
        source="record",
        calls=book.calls(it.rank),
        waiting_s=book.waiting(it.rank),
    )
    is_known = made.is_gone or made.is_stopped or gil_holder(made) is not None
    return made if is_known else replace(made, says=Condition.SILENT.value)


def _users_first(threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
    """The thread first that holds Python's lock; otherwise one that runs the user's code."""

    def order(it: Thread) -> tuple[bool, bool]:
        return not it.owns_gil, not any(is_users(frame) for frame in it.frames)

    return tuple(sorted(threads, key=order))


def _of_the_user(threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
    """The same threads; the first without the calls with which the rank has called the user's function."""
    if not threads:
        return ()
    frames = threads[0].frames
    outermost = next((at for at in reversed(range(len(frames))) if not is_ours(frames[at])), len(frames) - 1)
    return (replace(threads[0], frames=frames[: outermost + 1]), *threads[1:])


def group_of(name: str, ranks: Iterable[int]) -> Group:
    """A group of a gang, which is known by its name."""
    return Group(name=name, ranks=tuple(ranks), description=name)
