"""What a leader's word means to the caller: the errors that are made of verdicts and matches."""

from __future__ import annotations

from collections.abc import Sequence

from .admission import Arrival, Ruling, Verdict
from .errors import BridgeError, ErrorCode, RankDetail, RankState
from .group import Group
from .matching import Match, Post
from .task import cancelled


def disagreement(verdict: Verdict, arrival: Arrival, group: Group) -> BridgeError:
    """Members that asked for different things, or did not come. The verdict is not GO."""
    ranks = group.description.ranks
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
    return BridgeError.of(
        ErrorCode.MISMATCH,
        f"the members asked for different things, other than this rank: {_names([d.rank for d in others])}",
        expected=str(arrival),
        got="; ".join(sorted({detail.detail for detail in others})) or "no call",
        ranks=tuple(details),
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


def _names(ranks: Sequence[int]) -> str:
    return "rank" + ("s " if len(ranks) != 1 else " ") + (", ".join(map(str, ranks)) or "none")
