"""The tensors that a rank holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.printable import lines, printable
from .source import Tensors

if TYPE_CHECKING:
    from rankbridge import AsyncRank, Ref

MOST = 200


async def tensors_of(rank: AsyncRank) -> Tensors:
    """What a rank holds, by session, at most so much. Who may only observe, is told of none."""
    from rankbridge import RankBridgeError

    found: list[Ref] = []
    try:
        for session in (await rank.status()).sessions:
            if session.refs and len(found) < MOST:
                found += await rank.list_refs(session.session_id)
    except RankBridgeError as error:
        return {"tensors": [], "why": lines(str(error))}
    return {
        "tensors": [
            {
                "session": printable(it.session_id),
                "ref": printable(it.id),
                "dtype": it.dtype,
                "shape": it.shape,
                "device": printable(it.device),
                "bytes": it.nbytes,
            }
            for it in found[:MOST]
        ],
        "why": f"and {len(found) - MOST} more" if len(found) > MOST else "",
    }
