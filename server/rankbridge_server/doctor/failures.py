"""What has failed in a gang: a rank that was lost, members that disagreed, members that did not come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ..core.links import NO_SIGN_OF_LIFE
from ..core.processes import GONE
from .contract_texts import frame_of, with_contract
from .evidence import Call, Frame
from .testimony import Operation, Silence, Testimony
from .verdict import Condition, Culprit, Kind, Side, Verdict, Wait
from .words import rank_intervals, verb

_SHORTLY_S = 60.0
"""Before others begin to wait: a failure after which a controller calls a rank no more."""
_MISMATCH, _PEER_MISSING, _PEER_LOST = "MISMATCH", "PEER_MISSING", "PEER_LOST"
_KINDS: tuple[tuple[Kind, Callable[[Call], object]], ...] = (
    (Kind.MISMATCH_KIND, lambda it: "" if it.is_p2p else it.kind),
    (Kind.MISMATCH_ROOT, lambda it: it.root),
    (Kind.MISMATCH_DTYPE, lambda it: it.dtypes),
    (Kind.MISMATCH_SHAPE, lambda it: it.shapes),
    (Kind.MISMATCH_OP, lambda it: it.op),
)


def loss(testimonies: Sequence[Testimony], silences: Sequence[Silence]) -> Verdict | None:
    """The generation is over because a rank was lost."""
    reasons = {rank: reason for it in testimonies for rank, reason in it.lost}
    if reasons:
        known = {it.rank: it for it in silences} | {it.rank: it for it in testimonies}
        was_in = {it.rank: _unended(it) for it in testimonies if it.outside is not None}
        culprits = tuple(
            Culprit(
                rank=rank,
                confidence=0.95,
                condition=_of_lost(known.get(rank), reason),
                pid=it.pid if (it := known.get(rank)) else None,
                host=it.host if it else "",
                why=reason + (f"; it was in {_name(was)}" if (was := was_in.get(rank)) else ""),
                stack=_sites([was]) if was else (),
            )
            for rank, reason in sorted(reasons.items())
        )
        numbers = [*reasons]
        return Verdict(
            kind=Kind.NEVER_CALLED,
            summary=f"{rank_intervals(numbers)} {verb(numbers, 'was', 'were')} lost: {culprits[0].why}",
            confidence=0.95,
            culprits=culprits,
            waits=_ended_by(testimonies, tuple(numbers)),
            advice="read its last output, and the kernel's log (`dmesg`) for the OOM killer; form the gang again",
        )
    return None


def _of_lost(it: Silence | Testimony | None, reason: str) -> Condition:
    """What a lost rank is: it may live, and not run. One that has answered is another process in its place."""
    is_seen = it is not None and not (isinstance(it, Testimony) and it.outside is None)
    state = it.process.state if it is not None and is_seen else GONE
    if state in ("T", "t"):
        return Condition.STOPPED
    if state in ("R", "S", "D"):
        return Condition.SILENT
    # Where its process is not known, silence is no death.
    return Condition.SILENT if state == "?" and reason.startswith(NO_SIGN_OF_LIFE) else Condition.DEAD


def over(testimonies: Sequence[Testimony]) -> Verdict | None:
    """The generation is over, for whatever reason."""
    why = next((it.over for it in testimonies if it.over), "")
    if not why:
        return None
    return Verdict(
        kind=Kind.UNKNOWN,
        summary="the gang has no generation in which operations could run",
        confidence=0.0,
        evidence=(why,),
        advice="form the gang again",
    )


def _ended_by(testimonies: Sequence[Testimony], lost: tuple[int, ...]) -> tuple[Wait, ...]:
    """What the loss of ranks has ended on the others: the operations that waited for them."""
    groups = {group.name: group.ranks for it in testimonies for group in it.groups}
    found = []
    for it in testimonies:
        ended = [one for one in it.operations if one.code == _PEER_LOST and one.done_at is not None]
        newest = max((one.generation for one in ended), default=0)
        for one in ended:
            is_of_it = one.generation == newest and {*lost} & {*groups.get(one.group, ())}
            if it.rank not in lost and is_of_it and one.done_at is not None:
                seconds = one.done_at - one.called_at
                found.append(
                    Wait(
                        rank=it.rank,
                        call=_name(one),
                        waits_for=lost,
                        seconds=seconds,
                        site=frame_of(one.site),
                    )
                )
    return tuple(sorted(found, key=lambda it: (-(it.seconds or 0.0), it.rank)))


def _unended(it: Testimony) -> Operation | None:
    return next((one for one in it.operations if one.done_at is None), None)


def _name(it: Operation) -> str:
    return f"{it.function or it.kind} {it.group}"


def last(testimonies: Sequence[Testimony], at: float) -> Verdict | None:
    """The newest operation that failed as members disagreed or did not come, if none of them has gone on since."""
    newest = {
        it.rank: done[-1]
        for it in testimonies
        if (done := [each for each in it.operations if each.done_at is not None])
    }
    failed = [it for it in newest.values() if it.code in (_MISMATCH, _PEER_MISSING)]
    if not failed:
        return None
    one = max(failed, key=lambda it: it.done_at or 0.0)
    members = next((group.ranks for it in testimonies for group in it.groups if group.name == one.group), ())
    parts = _parts(testimonies, one)
    if any(newest[rank] is not it for rank, it in parts.items()):
        return None
    ago = f"{max(0.0, at - (one.done_at or at)):.1f} s ago"
    return (
        _mismatch(one, members, parts, ago) if one.code == _MISMATCH else _missing(one, members, parts, ago)
    )


def left_by_failure(testimonies: Sequence[Testimony], at: float, found: Verdict) -> Verdict | None:
    """The failure after which ranks were called no more, if the verdict is that others wait for these.

    `found`: of what keeps ranks waiting now.
    """
    idle = {it.rank for it in found.culprits if it.condition is Condition.IDLE}
    if found.kind is not Kind.NEVER_CALLED or len(idle) < len(found.culprits):
        return None
    waited = max((it.seconds or 0.0 for it in found.waits), default=0.0)
    of_idle = [it for it in testimonies if it.rank in idle]
    newest = [it.operations[-1] for it in of_idle if it.operations]
    recent = [
        it for it in newest if it.code == _MISMATCH and it.done_at and at - it.done_at < waited + _SHORTLY_S
    ]
    if len(recent) < len(idle):
        return None
    failure = last(of_idle, at)
    return None if failure is None else replace(failure, waits=found.waits)


def _parts(testimonies: Sequence[Testimony], one: Operation) -> Mapping[int, Operation]:
    """What each member has recorded of the same failure: its message is the same, also where its id differs."""
    found = {}
    for it in testimonies:
        for operation in reversed(it.operations):
            same = operation.operation_id == one.operation_id or operation.message == one.message
            if operation.group == one.group and operation.code == one.code and same:
                found[it.rank] = operation
                break
    return found


def _mismatch(
    one: Operation, members: tuple[int, ...], parts: Mapping[int, Operation], ago: str
) -> Verdict | None:
    by_contract: dict[str, list[int]] = defaultdict(list)
    for rank, it in sorted(parts.items()):
        by_contract[it.contract].append(rank)
    if len(by_contract) < 2:
        # The others have recorded it under other ids: what the ruling said is all that is known.
        return _from_message(one, Kind.MISMATCH_TERMS, ago)
    ordered = sorted(by_contract.items(), key=lambda it: (-len(it[1]), it[1]))
    sides = tuple(
        Side(ranks=tuple(ranks), what=what or "nothing", sites=_sites(parts[it] for it in ranks))
        for what, ranks in ordered
    )
    most = 2 * len(ordered[0][1]) > len(members)
    minority = [rank for _, ranks in ordered[1:] for rank in ranks] if most else []
    return Verdict(
        kind=_kind([what for what, _ in ordered]),
        summary=f"{ago}, members of {one.group} asked for different things: "
        + "; ".join(f"{rank_intervals(it.ranks)}: {it.what}" for it in sides),
        confidence=0.97,
        culprits=tuple(
            Culprit(
                rank=rank,
                confidence=0.95,
                condition=Condition.IN_COLLECTIVE,
                why="asked for something else than most",
                stack=_sites([parts[rank]]),
            )
            for rank in sorted(minority)
        ),
        call=f"{one.kind} {one.group}",
        sides=sides,
        advice="make the calls agree on every rank"
        + ("" if most else "; neither side is a majority, so either may be the wrong one"),
    )


def _kind(contracts: Sequence[str]) -> Kind:
    calls = [with_contract(Call(group="", number=0, kind=it.partition(" ")[0]), it, ()) for it in contracts]
    return next(
        (kind for kind, aspect in _KINDS if len({aspect(it) for it in calls}) > 1), Kind.MISMATCH_TERMS
    )


def _missing(one: Operation, members: tuple[int, ...], parts: Mapping[int, Operation], ago: str) -> Verdict:
    missing = sorted({*members} - parts.keys())
    # Of a send or a receive, only its own end has recorded it.
    if not one.contract.startswith(one.kind) or not missing:
        return _from_message(
            one, Kind.P2P_UNMATCHED if one.kind in ("send", "recv") else Kind.NEVER_CALLED, ago
        )
    return Verdict(
        kind=Kind.NEVER_CALLED,
        summary=f"{ago}, {one.kind} on {one.group} failed: {rank_intervals(missing)} had not come",
        confidence=0.95,
        culprits=tuple(
            Culprit(rank=it, confidence=0.95, why="had not come when the others' time was over")
            for it in missing
        ),
        call=f"{one.kind} {one.group}",
        sides=(
            Side(ranks=tuple(sorted(parts)), what=one.contract, sites=_sites(parts.values())),
            Side(ranks=tuple(missing), what="no call"),
        ),
        evidence=tuple(one.message.splitlines()[1:]),
        advice="look at what these ranks did instead, and why nobody had called them",
    )


def _from_message(one: Operation, kind: Kind, ago: str) -> Verdict:
    """A verdict of the error alone: the records of the other members do not have the failure."""
    first, *rest = one.message.splitlines() or [one.code]
    return Verdict(
        kind=kind,
        summary=f"{ago}: {first}",
        confidence=0.9,
        call=f"{one.kind} {one.group}",
        evidence=tuple(rest),
        advice="both sides are in the error: make them agree",
    )


def _sites(operations: Iterable[Operation]) -> tuple[Frame, ...]:
    frames = dict.fromkeys(frame for it in operations if (frame := frame_of(it.site)) is not None)
    return tuple(frames)[:3]
