"""What a contract says, in the words that all ranks compare: "all_reduce dtype=float32 shape=[4] op=sum"."""

from __future__ import annotations

import re
from dataclasses import replace

from .evidence import Call, Frame

_DTYPE = re.compile(r"\bdtype=(\w+)")
_SHAPE = re.compile(r"\b(?:shape|part)=\[([\d, ]{0,400})\]")
_OP = re.compile(r"\bop=(\w+)")
_ROOT = re.compile(r"\b(?:src|dst)_rank_in_group=(\d{1,18})")
_POST = re.compile(r"(send|receive) of .*?(?:to|from) (?:rank_in_group (\d{1,18})|any) tag=(-?\d{1,18})")
_POSTED = re.compile(r"(?:send|receive) of \w+ (\w+)\[([\d, ]{0,400})\]")
_PEER = re.compile(r"\bpeer=(\d{1,18}) tag=(-?\d{1,18})$")
_SITE = re.compile(r"(?:(.* <) )?(.*):(\d{1,18})")


def with_contract(call: Call, contract: str, ranks: tuple[int, ...]) -> Call:
    """The call with what its contract says. `ranks`: of the group, in the gang."""
    post = _POST.match(contract)
    if post is not None:
        tensor = _POSTED.match(contract)
        return replace(
            call,
            kind="send" if post[1] == "send" else "recv",
            dtypes=() if tensor is None else (tensor[1],),
            shapes=() if tensor is None else (_sizes(tensor[2]),),
            peer=_member(post[2], ranks),
            tag=int(post[3]),
        )
    dtype, op = _DTYPE.search(contract), _OP.search(contract)
    root, peer = _ROOT.search(contract), _PEER.search(contract)
    shapes = tuple(_sizes(shape[1]) for shape in _SHAPE.finditer(contract))
    return replace(
        call,
        dtypes=() if dtype is None else (dtype[1],),
        shapes=shapes,
        op=None if op is None else op[1],
        root=None if root is None else int(root[1]),
        peer=None if peer is None else int(peer[1]),
        tag=None if peer is None else int(peer[2]),
    )


def frame_of(site: str) -> Frame | None:
    """The frame of a line of code, "train.py:88" or "loop.py:7 < train.py:88"; None: there is none."""
    found = _SITE.fullmatch(site)
    return None if found is None else Frame(name=found[1] or "", file=found[2], line=int(found[3]))


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(it) for it in text.split(",") if it.strip())


def _member(rank_in_group: str | None, ranks: tuple[int, ...]) -> int | None:
    if rank_in_group is None or int(rank_in_group) >= len(ranks):
        return None
    return ranks[int(rank_in_group)]
