"""What is measured: operations by name, as every subject knows them."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation.

    Attributes:
        name: As subjects know it.
        title: For people.
        nbytes: Bytes of each tensor that it is about; 0: none.
        calls: Calls in one block, between which no other subject is called.
        rounds: Blocks at most, of large ones.
        alone: Whether it takes so much memory that only one subject is there at a time. Not part of a quick run.
    """

    name: str
    title: str
    nbytes: int = 0
    calls: int = 50
    rounds: int = 1000
    alone: bool = False


LOOP = 1000
"""Operations in one program, and in the native loop beside it."""

OPERATIONS = (
    Operation(name="empty_one", title="empty call to one"),
    Operation(name="empty_all", title="empty call to all"),
    Operation(name="function", title="empty function on all"),
    Operation(name="barrier", title="barrier"),
    Operation(name="all_reduce_4B", title="all_reduce 4 B", nbytes=4),
    Operation(name="all_reduce_4MB", title="all_reduce 4 MB", nbytes=4 * MIB, calls=10),
    Operation(name="broadcast_4MB", title="broadcast 4 MB", nbytes=4 * MIB, calls=10),
    Operation(name="loop_barrier", title=f"{LOOP:,} barriers, each", calls=1),
    Operation(name="loop_all_reduce_4B", title=f"{LOOP:,} all_reduce 4 B, each", nbytes=4, calls=1),
    Operation(name="admission", title="admission", calls=500),
    Operation(name="own_gang", title="a test with a gang of its own", calls=3, rounds=5),
    Operation(name="own_gang_killed", title="the same, a rank is killed", calls=3, rounds=5),
    Operation(name="copy_64MB", title="copy 64 MB", nbytes=64 * MIB, calls=3),
    Operation(name="fetch_64MB", title="fetch 64 MB", nbytes=64 * MIB, calls=3),
    Operation(name="put_64MB", title="put 64 MB", nbytes=64 * MIB, calls=3),
    Operation(name="copy_1GiB", title="copy 1 GiB", nbytes=1024 * MIB, calls=1, rounds=3, alone=True),
    Operation(name="fetch_1GiB", title="fetch 1 GiB", nbytes=1024 * MIB, calls=1, rounds=3, alone=True),
    Operation(name="put_1GiB", title="put 1 GiB", nbytes=1024 * MIB, calls=1, rounds=3, alone=True),
)

ALONE_BYTES = 12 << 30
"""Memory that must be free for what is measured alone: a subject holds the tensor several times."""

BY_NAME = {operation.name: operation for operation in OPERATIONS}

TRANSFERRED = {"64MB": 64 * MIB, "1GiB": 1024 * MIB}
"""Bytes of the tensors that are fetched, put and copied, by the end of the operation's name."""
