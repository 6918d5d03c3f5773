"""The tensors that a rank holds, and what their elements are like."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...core.printable import lines, printable
from .source import Tensors

if TYPE_CHECKING:
    from rankbridge import AsyncRank, Ref

MOST = 200
MOST_READ_BYTES = 64 * 1024 * 1024
"""The first of them are summarized, as many as have so many bytes together."""


async def tensors_of(rank: AsyncRank) -> Tensors:
    """The tensors that a rank holds, by session, at most `MOST`. A caller that may only observe gets none."""
    from rankbridge import RankBridgeError

    found: list[Ref] = []
    try:
        for session in (await rank.status()).sessions:
            if session.refs and len(found) < MOST:
                found += await rank.list_refs(session.session_id)
    except RankBridgeError as error:
        return {"tensors": [], "why": lines(str(error))}
    left = MOST_READ_BYTES
    rows = []
    for it in found[:MOST]:
        left -= it.nbytes
        rows.append({**_row(it), "values": await _values(rank, it) if left >= 0 else None})
    return {"tensors": rows, "why": f"and {len(found) - MOST} more" if len(found) > MOST else ""}


def _row(it: Ref) -> dict[str, Any]:
    return {
        "session": printable(it.session_id),
        "ref": printable(it.id),
        "dtype": it.dtype,
        "shape": it.shape,
        "device": printable(it.device),
        "bytes": it.nbytes,
    }


async def _values(rank: AsyncRank, it: Ref) -> dict[str, Any] | None:
    """The summary of a tensor. None: the tensor is gone, or the rank is older and cannot summarize."""
    from rankbridge import RankBridgeError

    try:
        found = asdict(await rank.summarize(it))
    except RankBridgeError:
        return None
    return {name: found[name] for name in ("min", "max", "mean", "nans", "infs")}
