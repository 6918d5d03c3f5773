"""The verdict on a gang of ours, as the one on any job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..doctor.contract_texts import frame_of
from ..doctor.evidence import Frame
from ..doctor.verdict import Condition, Culprit, Kind, Side, Verdict, Wait
from .gangs import connected, running
from .options import Options

if TYPE_CHECKING:
    import rankbridge


def is_gang(options: Options) -> bool:
    """Whether the options name a gang: as commands do, or by the process of a rank of one that runs on this host."""
    if not options.job:
        return bool(options.gang or options.endpoints)
    pids = {int(it) for it in options.job if it.isdecimal()}
    for it in running():
        if pids & {rank["pid"] for rank in it.content["ranks"]}:
            options.gang, options.endpoints = None, str(it.path)
            return True
    return False


def verdict_on(options: Options) -> Verdict:
    """The verdict on the gang that the options name. Raises NoGang, RankBridgeError."""
    with connected(options) as gang:
        return in_doctors_words(gang.diagnose(patience=options.patience))


def in_doctors_words(it: rankbridge.Verdict) -> Verdict:
    """A verdict of ranks as one on any job."""
    return Verdict(
        kind=Kind(it.kind),
        summary=it.summary,
        confidence=it.confidence,
        culprits=tuple(
            Culprit(
                rank=one.rank,
                confidence=one.confidence,
                condition=Condition(one.condition),
                pid=one.pid or None,
                host=one.host,
                why=one.why,
                stack=tuple(
                    Frame(name=frame.function, file=frame.file, line=frame.line) for frame in one.stack
                ),
            )
            for one in it.culprits
        ),
        call=it.call,
        sides=tuple(Side(ranks=one.ranks, what=one.what, sites=_frames(one.sites)) for one in it.sides),
        waits=tuple(
            Wait(
                rank=one.rank,
                call=one.call,
                waits_for=one.waits_for,
                seconds=one.waited,
                site=frame_of(one.site),
            )
            for one in it.waits
        ),
        cycle=it.cycle,
        advice=it.advice,
        evidence=it.evidence,
        notes=it.notes,
        world_size=it.world_size,
    )


def _frames(sites: Sequence[str]) -> tuple[Frame, ...]:
    return tuple(frame for it in sites if (frame := frame_of(it)) is not None)
