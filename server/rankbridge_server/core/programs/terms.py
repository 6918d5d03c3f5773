"""The contract of a program as text: what each of its steps agrees on.

A short one is there in full. Of a long one there is a digest of all, and a number and a short hash of each step, so
that those who disagree can tell where.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from hashlib import sha256
from itertools import zip_longest

RUN_PROGRAM, COALESCE, REPLAY = "run_program", "coalesce", "replay"
"""Names of the operations that are programs."""
MAX_TEXT = 1_000
"""Characters of a contract that is there in full."""
MAX_HASHES = 4 * 1024 * 1024
"""Characters of the hashes of all members together: one verdict has the contracts of all of them."""

_MARK = "sha256="
_ENTRIES = "; "
_KEPT = "keep"
# What an arrival says besides its contract.
_REST = re.compile(r" #\d+( id=.*)?$", re.DOTALL)


def terms_of(steps: Sequence[str], results: Sequence[str] | None, members: int) -> str:
    """The terms of a program. `steps`: each with its number before the first space. `members`: of the group.

    `results`: names of what is kept; None: of each step what it gives.
    """
    entries = [*steps, f"{_KEPT} {list(results)}"] if results is not None else steps
    text = _ENTRIES.join(entries)
    if len(text) <= MAX_TEXT:
        return text
    head = f"{len(steps)} steps {_MARK}{sha256(text.encode()).hexdigest()[:32]}"
    hashes = _ENTRIES.join(map(_hashed, entries))
    return f"{head}: {hashes}" if len(hashes) * members <= MAX_HASHES else head


def difference(mine: str, theirs: str) -> str:
    """Where two arrivals of programs differ first: "step 2.1"; empty if the texts do not show it."""
    (name, _, its), (same, _, others) = mine.partition(" "), theirs.partition(" ")
    if name != same or name not in (RUN_PROGRAM, COALESCE, REPLAY):
        return ""
    one, other = _entries(its), _entries(others)
    if not one or not other:
        return ""
    for here, there in zip_longest(one, other):
        if here != there:
            numbers = [it.partition("#")[0] for it in (here, there) if it and not it.startswith(_KEPT)]
            what = "step" if name == RUN_PROGRAM else "operation"
            return f"{what} {numbers[0]}" if numbers else "what is kept"
    return ""


def _hashed(entry: str) -> str:
    """Number and hash of an entry."""
    return f"{entry.partition(' ')[0]}#{zlib.crc32(entry.encode()):08x}"


def _entries(arrival: str) -> list[str]:
    """Number and hash of each; none if there is only a digest of all."""
    terms = _REST.sub("", arrival)
    head, _, hashes = terms.partition(": ")
    if _MARK in head:
        return hashes.split(_ENTRIES) if hashes else []
    return list(map(_hashed, terms.split(_ENTRIES)))
