"""The verdict on a gang, from what its ranks have answered to GetEvidence; and that as a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from google.protobuf.json_format import ParseDict, ParseError

from rankbridge.v1 import debug_service_pb2 as pb

from ..core.errors import invalid
from ..doctor.bundle import BadBundle
from ..doctor.gang_judge import diagnose
from ..doctor.testimony import Silence, Testimony
from ..doctor.verdict import Verdict
from .wire import verdicts

FORMAT = "rankbridge gang evidence 1"
_MOST_RANKS = 65_536

Silences = Callable[[Sequence[int], Sequence[Testimony], float], Sequence[Silence]]
"""What is known of the ranks that have not answered, in how many seconds between two looks."""


def verdict_on(
    evidence: Sequence[pb.GetEvidenceResponse], silences: Silences, *, at: float, patience_s: float
) -> Verdict:
    """The verdict. `at`: when the evidence was taken, in seconds since 1970. Raises INVALID_ARGUMENT."""
    ranks = [it.rank.rank for it in evidence]
    world_size = max((it.rank.world_size for it in evidence), default=0)
    try:
        if not ranks or len({*ranks}) != len(ranks) or not max(ranks) < world_size <= _MOST_RANKS:
            raise ValueError(f"ranks {ranks} of {world_size}")
        testimonies = [verdicts.testimony(it) for it in evidence]
    except ValueError as wrong:
        raise invalid(
            "this is no evidence of a gang",
            expected="what GetEvidence has answered, of each rank at most once",
            got=str(wrong),
        ) from wrong
    interval_s = max(it.interval_us for it in evidence) / 1e6
    silent = sorted({*range(world_size)} - {*ranks})
    return diagnose(
        testimonies,
        silences(silent, testimonies, interval_s),
        world_size=world_size,
        at=at,
        interval_s=interval_s,
        patience_s=patience_s,
    )


def is_bundle(text: str) -> bool:
    """Whether a text begins as a bundle of a gang does."""
    return text.startswith(f'{{"format":"{FORMAT}"')


def load(text: str) -> tuple[list[pb.GetEvidenceResponse], float]:
    """The evidence of a bundle, and when it was taken. Raises BadBundle."""
    try:
        content = json.loads(text)
        at = float(content["at"])
        return [ParseDict(it, pb.GetEvidenceResponse()) for it in content["evidence"]], at
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, ParseError) as error:
        raise BadBundle(f"the bundle of a gang is cut off, or is none: {error}") from None
