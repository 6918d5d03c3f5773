"""Evidence that no rank has given: it is judged, or refused as such."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.messages import Messages

from rankbridge.v1 import debug_service_pb2 as pb
from rankbridge_server.doctor.gang_judge import diagnose
from rankbridge_server.service.wire import verdicts

RANKS = 4


def with_known_enums(message: Any, chance: random.Random) -> None:
    """Gives each enum that is set a value that is declared, so that evidence is not refused for it."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                with_known_enums(one, chance)
        elif field.type == field.TYPE_ENUM and not field.is_repeated:
            setattr(
                message, field.name, chance.choice([it.number for it in field.enum_type.values if it.number])
            )


def evidence_of(rank: int, messages: Messages, chance: random.Random) -> Any:
    evidence: Any = messages.message(pb.GetEvidenceResponse.DESCRIPTOR)
    with_known_enums(evidence, chance)
    evidence.rank.rank, evidence.rank.world_size = rank, RANKS
    return evidence


def test_random_evidence_is_judged_or_refused(seed: int, rounds: int) -> None:
    messages, chance = Messages(seed), random.Random(seed)
    judged = 0
    for _ in range(300 * rounds):
        given = [evidence_of(rank, messages, chance) for rank in chance.sample(range(RANKS), 2)]
        if chance.random() < 0.3:
            # As of a gang that is dead.
            for it in given:
                it.from_outside, it.process.state = True, "gone"
        try:
            testimonies = [verdicts.testimony(it) for it in given]
        except ValueError:
            continue
        found = diagnose(testimonies, [], world_size=RANKS, at=1.0, interval_s=0.2, patience_s=2.0)
        assert verdicts.pack_verdict(found).summary
        judged += 1
    assert judged
