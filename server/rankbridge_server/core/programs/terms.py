"""The contract of a program as text: the terms of its steps.

A short contract has all terms. A long one has a digest of all, and number and short hash of each step, which show where
programs differ.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from hashlib import sha256
from itertools import zip_longest

RUN_PROGRAM, COALESCE, REPLAY = "run_program", "coalesce", "replay"
"""The names of the operations that are programs."""
MAX_TEXT = 1_000
"""Characters of a contract with all terms."""
MAX_HASHES = 4 * 1024 * 1024
"""Characters of the hashes of all members together, because a verdict has all their contracts."""

_MARK = "sha256="
_ENTRIES = "; "
_KEPT = "keep"
# The text of an arrival after its contract.
_REST = re.compile(r" #\d+( id=.*)?$", re.DOTALL)


def terms_of(steps: Sequence[str], results: Sequence[str] | None, members: int) -> str:
    """The terms of a program. `steps`: each with its number before the first space. `members`: of the group.

    `results`: names of the results to keep; None: all.
    """
    entries = [*steps, f"{_KEPT} {list(results)}"] if results is not None else steps
    text = _ENTRIES.join(entries)
    if len(text) <= MAX_TEXT:
        return text
    head = f"{len(steps)} steps {_MARK}{sha256(text.encode()).hexdigest()[:32]}"
    hashes = _ENTRIES.join(map(_hashed, entries))
    return f"{head}: {hashes}" if len(hashes) * members <= MAX_HASHES else head


def difference(mine: str, theirs: str) -> str:
    """The first difference of two arrivals of programs: "step 2.1"; empty if the texts do not show it."""
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
    """An entry's number and hash."""
    return f"{entry.partition(' ')[0]}#{zlib.crc32(entry.encode()):08x}"


def _entries(arrival: str) -> list[str]:
    """Number and hash of each entry; none if the text has only a digest of all."""
    terms = _REST.sub("", arrival)
    head, _, hashes = terms.partition(": ")
    if _MARK in head:
        return hashes.split(_ENTRIES) if hashes else []
    return list(map(_hashed, terms.split(_ENTRIES)))
