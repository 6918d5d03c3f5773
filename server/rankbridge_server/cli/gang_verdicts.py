"""The verdict on a gang of ours, as the one on any job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from ..doctor.contract_texts import frame_of
from ..doctor.evidence import Frame
from ..doctor.judge import judge
from ..doctor.verdict import Condition, Culprit, Kind, Side, Verdict, Wait
from .gangs import connected, running, target
from .options import Options

if TYPE_CHECKING:
    import rankbridge

_SOON_S = 1.0
"""Within which ranks answer that do not keep silent."""


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
    """The verdict on the gang that the options name, and its evidence as a file. Raises NoGang, RankBridgeError.

    Where ranks say too little, as one that does not answer, their processes are looked at as those of any job.
    """
    outside = None
    with connected(options) as gang, ThreadPoolExecutor(1) as pool:
        if options.bundle is not None:
            options.bundle.write_text(gang.evidence() + "\n")
        asked = pool.submit(gang.diagnose, patience=options.patience)
        answered = bool(wait([asked], _SOON_S).done)
        if not answered:
            outside = _from_outside(options)
        verdict = in_doctors_words(asked.result())
    silent = any(it.condition is Condition.SILENT for it in verdict.culprits)
    if not silent and verdict.kind is not Kind.UNKNOWN:
        return verdict
    return (_from_outside(options) if answered else outside) or verdict


def _from_outside(options: Options) -> Verdict | None:
    """The verdict on the job to which the gang is attached; None: it is none of this host, or nothing is certain."""
    from ..job.outside.collect import collect
    from ..job.outside.processes import NoJob, find

    pids = _pids(options)
    try:
        found = find(pids) if pids else []
        if {it.pid for it in found} != set(pids) or not found:
            return None
        verdict = judge(collect(found, inject=options.inject), options.patience)
    except NoJob:
        return None
    return None if verdict.kind in (Kind.HEALTHY, Kind.UNKNOWN) else verdict


def _pids(options: Options) -> list[int]:
    """The processes of the gang's ranks, if it is on this host. A rank that ends has no socket any more."""
    where = target(options)
    try:
        ranks = json.loads(Path(where).read_text())["ranks"] if isinstance(where, str) else []
        here = any(Path(it["endpoints"][0].removeprefix("unix:")).is_socket() for it in ranks)
        return [int(it["pid"]) for it in ranks] if here else []
    except (OSError, ValueError, KeyError, IndexError):
        return []


def verdict_in(text: str, options: Options) -> Verdict:
    """The verdict on the gang whose evidence this is. Raises BadBundle."""
    from ..core.errors import BridgeError
    from ..doctor.bundle import BadBundle
    from ..doctor.evidence import Process
    from ..doctor.testimony import Silence
    from ..service import gang_verdict

    evidence, at = gang_verdict.load(text)
    try:
        return gang_verdict.verdict_on(
            evidence,
            lambda ranks, *_: [Silence(rank=it, process=Process(state="?")) for it in ranks],
            at=at,
            patience_s=options.patience,
        )
    except BridgeError as error:
        raise BadBundle(str(error)) from None


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
