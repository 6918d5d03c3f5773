"""What a leader's word means to the caller: the errors that are made of verdicts and matches."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import BridgeError, ErrorCode, Failure, Phase, Place, RankDetail, RankState
from ..events import Kind, Straggler
from ..groups.group import Group
from ..programs.terms import difference
from ..task import cancelled
from .admission import Arrival, Notice, Ruling, Straggling, Verdict
from .matching import Match, Post

# A gang may have a thousand ranks; the error's `ranks` has them all.
MOST_SHOWN = 8


def event_of(
    notice: Notice, group: str, ranks: Sequence[int], generation: int
) -> tuple[Kind, Failure | Straggler]:
    """Makes the event of a notice about a group's admissions. `ranks`: of the group, in the gang."""
    operation = notice.arrival.contract.partition(" ")[0]
    if isinstance(notice, Straggling):
        after = list(enumerate(zip(ranks, notice.after, strict=True)))
        arrived = tuple((rank, place, at) for place, (rank, at) in after if at is not None)
        missing = tuple((rank, place) for place, (rank, at) in after if at is None)
        it = Straggler(group, operation, notice.operation_id, arrived, missing, notice.waited)
        return Kind.STRAGGLER, it
    place = Place(
        rank=ranks[notice.rank_in_group],
        group=group,
        operation=operation,
        operation_id=notice.operation_id,
        generation=generation,
    )
    error = disagreement(notice.verdict, notice.arrival, ranks).at(place, Phase.ADMISSION)
    kind = Kind.MISMATCH if notice.verdict.ruling is Ruling.MISMATCH else Kind.PEER_MISSING
    return kind, error.failure


def disagreement(verdict: Verdict, arrival: Arrival, ranks: Sequence[int]) -> BridgeError:
    """What a verdict that is not GO means to who came with `arrival`. `ranks`: of the group, in the gang."""
    if verdict.ruling is Ruling.REFUSED:
        return _refused(verdict, ranks)
    details: list[RankDetail] = []
    for member in verdict.members:
        if member.arrival is None:
            state = RankState.MISSING
        else:
            state = RankState.ARRIVED if member.arrival == str(arrival) else RankState.DISAGREES
        details.append(
            RankDetail(
                rank=ranks[member.rank_in_group],
                rank_in_group=member.rank_in_group,
                state=state,
                detail=member.arrival or "",
            )
        )
    if verdict.ruling is Ruling.PEER_MISSING:
        missing = [detail.rank for detail in details if detail.state is RankState.MISSING]
        return BridgeError.of(
            ErrorCode.PEER_MISSING,
            f"{len(ranks) - len(missing)} of {len(ranks)} ranks came, missing: {_names(missing)}",
            expected=str(arrival),
            got="no call",
            ranks=tuple(details),
        )
    others = [detail for detail in details if detail.state is RankState.DISAGREES]
    where = next(filter(None, (difference(str(arrival), detail.detail) for detail in others)), "")
    return BridgeError.of(
        ErrorCode.MISMATCH,
        f"the members asked for different things: {_sides(details)}"
        + (f"; the programs differ first in {where}" if where else ""),
        expected=str(arrival),
        got="; ".join(sorted({detail.detail for detail in others})) or "no call",
        ranks=tuple(details),
    )


def _refused(verdict: Verdict, ranks: Sequence[int]) -> BridgeError:
    (member,) = verdict.members
    detail = RankDetail(
        rank=ranks[member.rank_in_group],
        rank_in_group=member.rank_in_group,
        state=RankState.FAILED,
        detail=member.arrival or "",
    )
    known = verdict.refusal in ErrorCode.__members__
    code = ErrorCode[verdict.refusal] if known else ErrorCode.INTERNAL
    return BridgeError.of(
        code, f"rank {detail.rank} refused its part: {detail.detail}", phase=Phase.CHECK, ranks=(detail,)
    )


def unmatched(match: Match | None, post: Post, group: Group) -> BridgeError:
    """A send or a receive that found nobody to meet, or another than it expected; None: its group has ended."""
    ranks = group.description.ranks
    if match is None:
        return BridgeError.of(ErrorCode.ABORTED, f"group {group.name!r} has ended", got=str(post))
    if match.ruling is Ruling.WITHDRAWN:
        return cancelled("the controller asked for it")
    if match.ruling is Ruling.PEER_MISSING:
        missing = () if post.peer is None else (post.peer,)
        who = "nobody came" if post.peer is None else f"rank {ranks[post.peer]} did not come"
        return BridgeError.of(
            ErrorCode.PEER_MISSING,
            f"{who} for the {post}",
            expected=f"the other end of the {post}",
            got="no call",
            ranks=tuple(
                RankDetail(rank=ranks[place], rank_in_group=place, state=RankState.MISSING, detail="")
                for place in missing
            ),
        )
    return BridgeError.of(
        ErrorCode.MISMATCH,
        f"rank {ranks[match.peer]} has another end than this rank's",
        expected=f"the other end of the {post}",
        got=match.theirs,
        ranks=(
            RankDetail(
                rank=ranks[match.peer],
                rank_in_group=match.peer,
                state=RankState.DISAGREES,
                detail=match.theirs,
            ),
        ),
    )


def _sides(details: Sequence[RankDetail]) -> str:
    """Names the ranks that asked for the same, those of each side together: "ranks 0-2 against rank 3"."""
    sides: dict[str, list[int]] = {}
    for detail in details:
        if detail.state is not RankState.MISSING:
            sides.setdefault(detail.detail, []).append(detail.rank)
    shown = " against ".join(map(_names, list(sides.values())[:MOST_SHOWN]))
    return shown + (f" and {len(sides) - MOST_SHOWN} more sides" if len(sides) > MOST_SHOWN else "")


def _names(ranks: Sequence[int]) -> str:
    """Names ranks, those that follow each other as intervals: "ranks 0-2, 5"."""
    runs: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:MOST_SHOWN])
    rest = sum(last - first + 1 for first, last in runs[MOST_SHOWN:])
    return f"rank{'s' if len(ranks) != 1 else ''} {shown or 'none'}" + (f" and {rest} more" if rest else "")
