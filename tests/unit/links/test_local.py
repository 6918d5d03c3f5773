"""Links within one process."""

from __future__ import annotations

from rankbridge_server.core.links import Ended
from rankbridge_server.links.local import LocalHub

RANKS = 400


def test_the_end_of_a_generation_is_told_to_each_of_very_many_ranks() -> None:
    hub = LocalHub()
    links = [hub(1, rank) for rank in range(RANKS)]
    others = hub(2, 0)
    told: list[tuple[int, Ended]] = []
    for rank, it in enumerate(links):

        def over(ended: Ended, rank: int = rank) -> None:
            # As a rank does that is told: it ends its own links, which tells the others.
            told.append((rank, ended))
            links[rank].end(ended)

        it.start({}, b"", over)
    others.start({}, b"", lambda ended: told.append((-1, ended)))
    ended = Ended(rank=7, lost=False, reason="it was asked to")
    links[7].end(ended)
    assert {rank for rank, _ in told} == set(range(RANKS)) - {7}
    assert {what for _, what in told} == {ended}
