"""The verdict on a gang of which there is a folder for observers: its ranks run, are dead, or are some of both."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import BridgeError
from ..core.record.files import records_in
from ..doctor.evidence import Process
from ..doctor.testimony import Silence
from ..doctor.verdict import Verdict
from ..sidecar.runtime_dir import GANG
from .gang_verdicts import verdict_on
from .gangs import NoGang
from .options import Options

if TYPE_CHECKING:
    from rankbridge.v1 import debug_service_pb2 as pb

    from ..job.outside.observed_rank import ObservedRank

_INTERVAL_S = 0.2


def is_observed(options: Options) -> bool:
    """Whether the options name a folder in which ranks keep their records."""
    if len(options.job) != 1 or options.job[0].isdecimal():
        return False
    folder = Path(options.job[0])
    return folder.is_dir() and bool(records_in(folder))


def verdict_on_folder(folder: Path, options: Options) -> Verdict:
    """The verdict on the gang: ranks that run are asked, the others' records are read. Raises NoGang."""
    ranks = ranks_of(folder)
    dead = [it for it in ranks if it.is_dead]
    if not dead and (folder / GANG).exists():
        options.gang, options.endpoints = None, str(folder / GANG)
        return verdict_on(options)
    from rankbridge._plan.verdict import bundle

    from ..service import gang_verdict

    asked = _asked(folder) if len(dead) < len(ranks) else {}
    evidence = [asked.get(it.rank) or it.get_evidence(_INTERVAL_S) for it in ranks]
    if options.bundle is not None:
        options.bundle.write_text(bundle(evidence) + "\n")
    try:
        return gang_verdict.verdict_on(
            evidence,
            lambda missing, *_: [Silence(rank=it, process=Process(state="?")) for it in missing],
            at=time.time(),
            patience_s=options.patience,
        )
    except BridgeError as error:
        raise NoGang(f"the records in {folder} are not those of one gang: {error}") from None


def ranks_of(folder: Path) -> list[ObservedRank]:
    """The ranks of the newest gang that has kept records there. Raises NoGang."""
    from ..core.record.memory import BadRecord
    from ..job.outside.observed_rank import ObservedRank

    found = []
    for rank, path in records_in(folder).items():
        try:
            found.append(ObservedRank(path, rank))
        except BadRecord as error:
            raise NoGang(str(error)) from None
    return found


def _asked(folder: Path) -> dict[int, pb.GetEvidenceResponse]:
    """What the ranks say that answer."""
    import rankbridge
    from rankbridge import RankBridgeError

    from ..service import gang_verdict

    with suppress(OSError, RankBridgeError, ValueError):
        content = json.loads((folder / GANG).read_text())
        with rankbridge.connect(content, session=False) as gang:
            said, _ = gang_verdict.load(gang.evidence())
            return {it.rank.rank: it for it in said}
    return {}
