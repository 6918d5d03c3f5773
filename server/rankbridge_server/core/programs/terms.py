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

RUN_PROGRAM = "run_program"
"""Name of the operation."""
MAX_TEXT = 1_000
"""Characters of a contract that is there in full."""
MAX_HASHES = 4 * 1024 * 1024
"""Characters of the hashes of all members together: one verdict has the contracts of all of them."""

_MARK = "sha256="
_ENTRIES = "; "
_KEPT = "keep"
_HASHED = re.compile(r"[0-9.]+#[0-9a-f]{8}|keep#[0-9a-f]{8}")
# What an arrival says besides its contract.
_REST = re.compile(r" #\d+( id=.*)?$", re.DOTALL)


def terms_of(steps: Sequence[str], results: Sequence[str], members: int) -> str:
    """The terms of a program. `steps`: each with its number before the first space. `members`: of the group."""
    entries = [*steps, f"{_KEPT} {list(results)}"]
    text = _ENTRIES.join(entries)
    if len(text) <= MAX_TEXT:
        return text
    head = f"{len(steps)} steps {_MARK}{sha256(text.encode()).hexdigest()[:32]}"
    hashes = _ENTRIES.join(map(_hashed, entries))
    return f"{head}: {hashes}" if len(hashes) * members <= MAX_HASHES else head


def difference(mine: str, theirs: str) -> str:
    """Where two arrivals of programs differ first: "step 2.1"; empty if that cannot be told."""
    if not (mine.startswith(f"{RUN_PROGRAM} ") and theirs.startswith(f"{RUN_PROGRAM} ")):
        return ""
    one, other = _entries(mine), _entries(theirs)
    if not one or not other:
        return ""
    for here, there in zip_longest(one, other):
        if here != there:
            numbers = [it.partition("#")[0] for it in (here, there) if it and not it.startswith(_KEPT)]
            return f"step {numbers[0]}" if numbers else "what is kept"
    return ""


def _hashed(entry: str) -> str:
    """Number and hash of an entry, or of one that is hashed already."""
    if _HASHED.fullmatch(entry):
        return entry
    return f"{entry.partition(' ')[0]}#{zlib.crc32(entry.encode()):08x}"


def _entries(arrival: str) -> list[str]:
    """Number and hash of each; none if there is only a digest of all."""
    terms = _REST.sub("", arrival).removeprefix(f"{RUN_PROGRAM} ")
    head, _, hashes = terms.partition(": ")
    if _MARK not in head:
        hashes = terms
    return [_hashed(entry) for entry in hashes.split(_ENTRIES) if entry]
