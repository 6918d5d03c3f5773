"""What a stack says of the call that its rank is in, where torch's recorder does not: peer, tag, root."""

from __future__ import annotations

from dataclasses import replace

from .evidence import Call, RankEvidence
from .stacks import in_collective


def with_arguments(
    rank: RankEvidence, peer: int | None, tag: int | None, began_at: float, at: float
) -> tuple[Call, ...]:
    """Its calls, with the root of the one that it is in, or with the send or receive that it is in.

    `peer`, `tag`: arguments of torch.distributed's own function; `peer` may be the root.
    `began_at`, `at`: of the first look and of the second.
    """
    frame = next((it for thread in rank.threads if (it := in_collective(thread))), None)
    if frame is None or peer is None:
        return rank.calls
    if frame.name in ("send", "recv"):
        since = rank.process.blocked_s
        call = Call(
            group="",
            number=1,
            kind=frame.name,
            peer=peer,
            tag=tag or 0,
            done=False,
            called_at=None if since is None else at - since,
        )
        return (*rank.calls, call)
    newest = rank.calls[-1] if rank.calls else None
    # A rank that moves may have been in another call when its stack was read.
    stays = newest is not None and not newest.done and (newest.called_at or at) < began_at
    if newest is not None and stays and newest.kind == frame.name:
        return (*rank.calls[:-1], replace(newest, root=peer))
    return rank.calls
