"""The record of a rank: its last calls, in a file that is mapped into memory.

The file outlives the rank, and is read from outside without asking the rank, which may be stopped, stuck, or dead. One
thread at a time writes it, as it has Python's lock. What is written last makes a record valid.

    header      4,096 bytes
    texts       groups and lines of code, as JSON, one a line; records name them by number, counted from 1
    records     CAPACITY times RECORD.size; the newest overwrites the oldest
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MAGIC = b"RBRING01"
SUFFIX = ".rbring"
CAPACITY = 10_000
HEADER_BYTES = 4096
TEXT_BYTES = 1 << 20
DIMENSIONS = 6

HEADER = struct.Struct("<8sIIqiidQ")
"""Magic, capacity, bytes of texts, pid, rank, world size, when it began, bytes of texts that are used."""
TEXT_USED = HEADER.size - 8
WAITING = HEADER.size
"""Double: since when it has been in a wait for a call of its own; 0 if it is in none."""
ENDED = WAITING + 8
"""Double: when it ended, as far as it could say so."""
HOW = ENDED + 8
"""Byte: 0 it did not say, 1 normally, 2 by an exception, whose name follows."""
REASON_BYTES = 200

RECORD = struct.Struct("<qddIBBBBHHIhhiiiq6id")
"""Number among all from 1 (last to be written), called, returned, number in its group, kind, dtype, dimensions,
flags, group, tensors, site, op, -, root, peer, tag, elements of all tensors, shape of the first, when a wait for it was
over (0 if there was none, or it goes on)."""
RECORD_BYTES = 128
_RECORDS_AT = HEADER_BYTES + TEXT_BYTES
_BEGUN = struct.Struct("<qddIBBBBHHIhhiiiq24sd")
"""RECORD, with the shape packed."""
_SHAPE = struct.Struct(f"<{DIMENSIONS}i")
NO_SHAPE = bytes(_SHAPE.size)
_MOST_TENSORS = 65_535
_RETURNED_AT = 16
_FLAGS_AT = 31
_WAITED_AT = RECORD.size - 8
_USED = struct.Struct("<Q")

TORCH_KINDS = (
    "all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "gather", "scatter",
    "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "barrier", "monitored_barrier",
    "send", "recv", "all_reduce_coalesced", "all_gather_coalesced", "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor_coalesced",
)  # fmt: skip
"""What passes torch's dispatcher."""
COORDINATOR_KINDS = (
    "all_gatherv", "reduce_scatterv", "broadcast_object", "broadcast_object_list", "broadcast_tensor_dict",
    "send_object", "recv_object", "send_tensor_dict", "recv_tensor_dict",
)  # fmt: skip
"""What coordinators call besides."""
LATER_TORCH_KINDS = ("gather_into_tensor",)
"""What passes torch's dispatcher from 2.14 on."""
KINDS = ("", *TORCH_KINDS, *COORDINATOR_KINDS, *LATER_TORCH_KINDS)
"""By their numbers in records, which stay: new ones come last."""
DTYPES = (
    "", "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
    "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
OPS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum")
IS_ASYNC = 1
IS_WHOLE = 2
"""Nothing is left to be waited for when it has returned, as far as the host knows: a coordinator's."""
ON_DEVICE = 4
"""The tensors are on a device."""
HAS_FAILED = 8
"""It, or the wait for it, has raised: that it is over does not mean that it was done."""


def packed_shape(size: Sequence[int]) -> bytes:
    """The first dimensions of a tensor as RECORD has them. Raises struct.error: one has too many elements."""
    first = tuple(size[:DIMENSIONS])
    return _SHAPE.pack(*first, *(0,) * (DIMENSIONS - len(first)))


class Ring:
    """Writes the record of this process."""

    def __init__(self, path: Path, file: int, rank: int, world_size: int) -> None:
        size = HEADER_BYTES + TEXT_BYTES + CAPACITY * RECORD_BYTES
        os.posix_fallocate(file, 0, size)
        self.path = path
        self._map = mmap.mmap(file, size)
        # To set an element takes half as long as to pack one.
        self._doubles = memoryview(self._map).cast("d")
        self._longs = memoryview(self._map).cast("q")
        self._used = 0
        self._count = 0
        self._texts = 0
        header = (MAGIC, CAPACITY, TEXT_BYTES, os.getpid(), rank, world_size, time.time(), 0)
        HEADER.pack_into(self._map, 0, *header)

    @classmethod
    def create(cls, directory: Path, rank: int, size: int) -> Ring:
        """A record in a new file of this directory, named by rank and pid."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / f"{rank}-{os.getpid()}{SUFFIX}"
        # Whoever reads the folder meanwhile finds a record that is whole, or none.
        begun = path.with_suffix(".part")
        if path.exists():
            raise FileExistsError(f"{path} is there")
        file = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            ring = cls(path, file, rank, size)
            begun.rename(path)
            return ring
        except BaseException:
            begun.unlink(missing_ok=True)
            raise
        finally:
            os.close(file)

    def text(self, content: dict[str, Any]) -> int:
        """Adds a text; returns its number, or 0 where there is no room."""
        line = json.dumps(content).encode() + b"\n"
        if self._used + len(line) > TEXT_BYTES:
            return 0
        at = HEADER_BYTES + self._used
        self._map[at : at + len(line)] = line
        self._used += len(line)
        self._texts += 1
        _USED.pack_into(self._map, TEXT_USED, self._used)
        return self._texts

    def begin(
        self,
        called: float,
        number: int,
        kind: int,
        dtype: int,
        dimensions: int,
        flags: int,
        group: int,
        tensors: int,
        site: int,
        op: int,
        root: int,
        peer: int,
        tag: int,
        elements: int,
        shape: bytes,
    ) -> int:
        """Writes a call, with the fields of RECORD; returns where it is, which is never 0. `shape`: `packed_shape`."""
        count = self._count
        self._count = count + 1
        at = _RECORDS_AT + count % CAPACITY * RECORD_BYTES
        _BEGUN.pack_into(
            self._map, at, 0, called, 0.0, number, kind, dtype, dimensions, flags, group,
            tensors if tensors < _MOST_TENSORS else _MOST_TENSORS, site, op, 0, root, peer, tag, elements, shape, 0.0,
        )  # fmt: skip
        self._longs[at >> 3] = count + 1
        return at

    def end(self, at: int, returned: float) -> None:
        """Writes when a call returned."""
        self._doubles[at + _RETURNED_AT >> 3] = returned

    def waited(self, at: int, over: float) -> None:
        """Writes when the wait for a call was over."""
        self._doubles[at + _WAITED_AT >> 3] = over

    def failed(self, at: int) -> None:
        """Writes that a call, or the wait for it, has raised."""
        self._map[at + _FLAGS_AT] |= HAS_FAILED

    def waiting(self, since: float) -> None:
        """Writes that a wait has begun; with 0, that it is over."""
        self._doubles[WAITING >> 3] = since

    @property
    def has_ended(self) -> bool:
        """Whether it was written how the process ends."""
        return self._map[HOW] != 0

    def ended(self, how: int, reason: str = "") -> None:
        """Writes that the process ends: 1 normally, 2 by an exception."""
        text = reason.encode("utf-8", "replace")[:REASON_BYTES]
        self._map[HOW + 1 : HOW + 1 + len(text)] = text
        self._map[HOW] = how
        self._doubles[ENDED >> 3] = time.time()
