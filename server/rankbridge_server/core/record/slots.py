"""How an operation is written into a slot of the record, and read from it."""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Sequence

from ..caller import Caller
from ..errors import ErrorCode, Phase, Place
from .recorded import MAX_MESSAGE, Entry, Recorded

SLOT_BYTES = 768
_FIXED = struct.Struct("<dBdddqQIHBBBQ")
"""Done, phase, entered, called, announced, sequence, generation, rank, bytes of texts, code, indefinite, caller,
number."""
DONE = struct.Struct("<d")
STEP = struct.Struct("<Bd")
"""Phase and entered, alone."""
STEP_AT = DONE.size
_END = struct.Struct("<dB")
_FIXED_BYTES = _FIXED.size
TEXT_BYTES = SLOT_BYTES - _FIXED_BYTES
_TEXTS = 8
_pack_into = _FIXED.pack_into


def write(memory: mmap.mmap, at: int, entry: Entry, done: float) -> None:
    """Writes an entry as it is now. Texts that do not fit are cut.

    Each operation passes here, so this asks for little by name.
    """
    rank, group, operation, operation_id, generation = entry.place
    error = entry.error
    if error is None:
        code, message, indefinite = 0, "", False
    else:
        failure = error.failure
        code, message, indefinite = failure.code._value_, failure.message[:MAX_MESSAGE], failure.indefinite
    said = (
        f"{operation}\0{group}\0{operation_id}\0{entry.session_id}\0{entry.site}\0{entry.function}\0{entry.contract}"
        f"\0{message}"
    )
    try:
        texts = said.encode()
    except UnicodeEncodeError:
        texts = said.encode("utf-8", "backslashreplace")
    if len(texts) > TEXT_BYTES:
        texts = _cut(
            (
                operation,
                group,
                operation_id,
                entry.session_id,
                entry.site,
                entry.function,
                entry.contract,
                message,
            )
        )
    size = len(texts)
    # Before what makes the slot one of this operation.
    memory[at + _FIXED_BYTES : at + _FIXED_BYTES + size] = texts
    _pack_into(
        memory,
        at,
        done,
        entry.phase._value_,
        entry.entered,
        entry.began,
        entry.announced,
        entry.sequence,
        generation,
        rank,
        size,
        code,
        indefinite,
        entry.caller._value_,
        entry.number,
    )


def is_pending(memory: mmap.mmap | bytes, at: int) -> bool:
    """Whether a slot has an operation that has not ended."""
    done, phase = _END.unpack_from(memory, at)
    return bool(phase) and not done


def unpack(slot: bytes) -> Recorded:
    """An operation from its bytes, and what follows them. Raises ValueError if they are none."""
    try:
        fixed = _FIXED.unpack_from(slot)
        done, phase, entered, called, announced, sequence, generation, rank, size, code, indefinite = fixed[
            :11
        ]
        caller, number = Caller(fixed[11]), fixed[12]
    except struct.error as error:
        raise ValueError(f"a slot of the record is cut off: {error}") from None
    texts = slot[_FIXED_BYTES : _FIXED_BYTES + size].decode("utf-8", "replace").split("\0")
    if len(texts) < _TEXTS:
        raise ValueError(f"a slot of the record has {len(texts)} texts instead of {_TEXTS}")
    operation, group, operation_id, session_id, site, function, contract = texts[: _TEXTS - 1]
    # Where a caller's own text has a separator in it, those after it are shifted.
    message = " ".join(texts[_TEXTS - 1 :])
    return Recorded(
        Place(rank, group, operation, operation_id, generation),
        session_id,
        contract,
        site,
        function,
        called,
        announced,
        entered,
        done,
        sequence,
        Phase(phase),
        ErrorCode(code) if code else None,
        message,
        bool(indefinite),
        caller,
        number,
    )


def _cut(texts: Sequence[str]) -> bytes:
    """The texts as bytes that fit: the longest are cut. Texts that differ after the cut end in different hashes."""
    encoded = [it.replace("\0", " ").encode("utf-8", "backslashreplace") for it in texts]
    room, most = TEXT_BYTES - (_TEXTS - 1), TEXT_BYTES
    # The longest share what the shorter leave them.
    for left, size in zip(range(_TEXTS, 0, -1), sorted(map(len, encoded)), strict=True):
        most = room // left
        if size > most:
            break
        room -= size
    return b"\0".join(it if len(it) <= most else _shortened(it, most) for it in encoded)


def _shortened(text: bytes, size: int) -> bytes:
    mark = b"...%08x" % zlib.crc32(text)
    return text[: size - len(mark)].decode("utf-8", "ignore").encode() + mark
