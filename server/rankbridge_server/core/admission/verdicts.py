"""The errors and events that callers get for a leader's verdicts and matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import BridgeError, ErrorCode, Failure, Phase, Place, RankDetail, RankState
from ..events import Kind, Straggler
from ..groups.group import Group
from ..programs.terms import difference
from ..rank_intervals import rank_intervals
from ..task import cancelled
from .admission import Arrival, Notice, Ruling, Straggling, Verdict
from .matching import Match, Post
from .texts import Request, absences, disagreement_text, with_sides


def event_of(
    notice: Notice, group: str, ranks: Sequence[int], generation: int
) -> tuple[Kind, Failure | Straggler]:
    """The event for a notice about a group's admissions. `ranks`: of the group, in the gang."""
    operation = notice.arrival.contract.partition(" ")[0]
    if isinstance(notice, Straggling):
        return Kind.STRAGGLER, straggler_of(notice, group, ranks)
    place = Place(
        rank=ranks[notice.rank_in_group],
        group=group,
        operation=operation,
        operation_id=notice.operation_id,
        generation=generation,
    )
    error = disagreement(notice.verdict, notice.arrival, group, ranks).at(place, Phase.ADMISSION)
    kind = Kind.MISMATCH if notice.verdict.ruling is Ruling.MISMATCH else Kind.PEER_MISSING
    return kind, error.failure


def straggler_of(notice: Straggling, group: str, ranks: Sequence[int]) -> Straggler:
    """An admission that members keep waiting, by ranks in the gang."""
    after = list(enumerate(zip(ranks, notice.after, strict=True)))
    arrived = tuple((rank, place, at) for place, (rank, at) in after if at is not None)
    missing = tuple((rank, place) for place, (rank, at) in after if at is None)
    operation = notice.arrival.contract.partition(" ")[0]
    return Straggler(group, operation, notice.operation_id, arrived, missing, notice.waited)


def disagreement(verdict: Verdict, arrival: Arrival, group: str, ranks: Sequence[int]) -> BridgeError:
    """The error of a verdict that is not GO, for the member that came with `arrival`. `ranks`: of the group."""
    if verdict.ruling is Ruling.REFUSED:
        return _refused(verdict, ranks)
    mine = str(arrival)
    details = tuple(
        replace(
            _detail(ranks, it.rank_in_group, _state(it.arrival, mine), it.arrival or "", it.site),
            activity=it.activity,
        )
        for it in verdict.members
    )
    members = {ranks[member.rank_in_group]: member for member in verdict.members}
    if verdict.ruling is Ruling.PEER_MISSING:
        missing = [rank for rank, it in members.items() if it.arrival is None]
        summary = (
            f"{len(ranks) - len(missing)} of {len(ranks)} ranks came, missing: {rank_intervals(missing)}"
        )
        # What is all that is known of a rank is not said twice.
        known = {
            rank: it for rank, it in members.items() if it.arrival is not None or it.activity is not None
        }
        code, message = ErrorCode.PEER_MISSING, disagreement_text("PEER_MISSING", group, known, summary)
        return BridgeError.of(code, message, expected=mine, got="no call", ranks=details)
    others = sorted({it.arrival for it in verdict.members if it.arrival not in (None, mine)})
    step = next(filter(None, (difference(mine, text) for text in others)), "")
    summary = f"the programs differ first in {step}" if step else ""
    message = disagreement_text("MISMATCH", group, members, summary)
    got = "; ".join(others) or "no call"
    return BridgeError.of(ErrorCode.MISMATCH, message, expected=mine, got=got, ranks=details)


def _state(arrival: str | None, mine: str) -> RankState:
    if arrival is None:
        return RankState.MISSING
    return RankState.ARRIVED if arrival == mine else RankState.DISAGREES


def _refused(verdict: Verdict, ranks: Sequence[int]) -> BridgeError:
    (member,) = verdict.members
    detail = _detail(ranks, member.rank_in_group, RankState.FAILED, member.arrival or "")
    known = verdict.refusal in ErrorCode.__members__
    code = ErrorCode[verdict.refusal] if known else ErrorCode.INTERNAL
    message = f"rank {detail.rank} refused its part: {detail.detail}"
    return BridgeError.of(code, message, phase=Phase.CHECK, ranks=(detail,))


def unmatched(
    match: Match | None, post: Post, operation: str, group: Group, rank_in_group: int
) -> BridgeError:
    """The error for a post that met nobody, or an unlike post. `match` None: the group has ended."""
    ranks = group.description.ranks
    if match is None:
        return BridgeError.of(ErrorCode.ABORTED, f"group {group.name!r} has ended", got=str(post))
    if match.ruling is Ruling.WITHDRAWN:
        return cancelled("the controller asked for it")
    expected = f"the other end of the {post}"
    mine = {Request(str(post), post.site): [ranks[rank_in_group]]}
    own = _detail(ranks, rank_in_group, RankState.ARRIVED, str(post), post.site)
    headline = f"{match.ruling.name} in {operation} on {group.name}"
    if match.ruling is Ruling.PEER_MISSING:
        missing = {ranks[it.rank_in_group]: it for it in match.missing}
        who = "nobody came" if post.peer is None else f"rank {ranks[post.peer]} did not come"
        details = [
            replace(_detail(ranks, it.rank_in_group, RankState.MISSING), activity=it.activity)
            for it in match.missing
        ]
        return BridgeError.of(
            ErrorCode.PEER_MISSING,
            with_sides(f"{headline}: {who}", mine | absences(missing)),
            expected=expected,
            got="no call",
            # Whose end of a queue it is, its readers and its writer know.
            ranks=tuple(
                sorted([*details, *([] if post.channel else [own])], key=lambda it: it.rank_in_group)
            ),
        )
    return BridgeError.of(
        ErrorCode.MISMATCH,
        with_sides(headline, mine | {Request(match.theirs, match.site): [ranks[match.peer]]}),
        expected=expected,
        got=match.theirs,
        ranks=(own, _detail(ranks, match.peer, RankState.DISAGREES, match.theirs, match.site)),
    )


def _detail(
    ranks: Sequence[int], rank_in_group: int, state: RankState, detail: str = "", site: str = ""
) -> RankDetail:
    return RankDetail(
        rank=ranks[rank_in_group], rank_in_group=rank_in_group, state=state, detail=detail, site=site
    )
