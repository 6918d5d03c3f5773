"""Segments as the client keeps them: mapped, taken, shown by arrays, and given back."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankbridge._plan.copying import copy
from rankbridge._transport.segments import MAX_VIEWS, NotShared, Pool, Segment, fitting
from rankbridge.v1 import ref_service_pb2 as ref_pb

MIB = 1 << 20


class Files:
    """Files such as a rank makes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ids = itertools.count()

    def make(self, nbytes: int) -> ref_pb.SharedMemory:
        """One more."""
        path = self._directory / str(next(self._ids))
        nonce = os.urandom(16)
        path.write_bytes(bytes(nbytes) + nonce)
        return ref_pb.SharedMemory(id=path.name, path=str(path), bytes=nbytes, nonce=nonce)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def pool() -> Pool:
    return Pool()


def held(pool: Pool, files: Files, nbytes: int = MIB) -> Segment:
    """A segment that is new."""
    return pool.map(files.make(nbytes))


@pytest.mark.parametrize("nbytes", [0, 5, 9 * MIB + 1])
def test_copying(nbytes: int) -> None:
    source, target = os.urandom(nbytes), bytearray(nbytes)
    copy(memoryview(target), memoryview(source))
    assert target == source


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [(1, MIB), (MIB, MIB), (MIB + 1, 2 * MIB), (64 * MIB, 64 * MIB), (64 * MIB + 1, 72 * MIB)],
)
def test_room_is_asked_for_in_steps(nbytes: int, size: int) -> None:
    assert fitting(nbytes) == size


def test_what_is_mapped_is_the_file(pool: Pool, files: Files) -> None:
    memory = files.make(MIB)
    segment = pool.map(memory)
    segment.memory(2)[:] = b"ab"
    assert Path(memory.path).read_bytes()[:3] == b"ab\0"
    assert (segment.id, segment.room, len(segment.memory(7))) == (memory.id, MIB, 7)


def test_another_file_is_none(pool: Pool, files: Files, tmp_path: Path) -> None:
    memory = files.make(MIB)
    wrong = ref_pb.SharedMemory(id="w", path=memory.path, bytes=MIB, nonce=os.urandom(16))
    empty = ref_pb.SharedMemory(id="w", path=memory.path, bytes=MIB)
    short = ref_pb.SharedMemory(id="w", path=memory.path, bytes=MIB + 8, nonce=memory.nonce[8:] + bytes(8))
    gone = ref_pb.SharedMemory(id="w", path=str(tmp_path / "gone"), bytes=MIB, nonce=memory.nonce)
    for error in (wrong, empty, short, gone):
        with pytest.raises(NotShared):
            pool.map(error)


def test_the_smallest_free_segment_that_fits_is_taken_by_one(pool: Pool, files: Files) -> None:
    sizes = [held(pool, files, mib * MIB) for mib in (8, 2, 4)]
    for segment in sizes:
        pool.give_back(segment)
    assert pool.take(2 * MIB) is sizes[1]
    assert pool.take(2 * MIB) is sizes[2]
    assert pool.take(2 * MIB) is None
    assert pool.take(5 * MIB) is sizes[0]


def test_more_free_ones_than_are_of_use_are_closed(pool: Pool, files: Files) -> None:
    segments = [held(pool, files) for _ in range(6)]
    for segment in segments:
        pool.give_back(segment)
    assert pool.unwanted() == [segment.id for segment in segments[:1]]
    assert pool.unwanted() == []
    assert pool.unwanted(all_free=True) == [segment.id for segment in segments[1:]]
    assert pool.take(MIB) is None


def test_what_arrays_have_shown_is_kept_up_to_the_same_bound(pool: Pool, files: Files) -> None:
    segments = [held(pool, files, pages * 4096) for pages in range(1, 13)]
    for segment in segments:
        view = pool.view(segment, 1)
        assert view is not None
        del view
    assert pool.unwanted() == [segment.id for segment in segments[:7]]
    assert pool.unwanted(all_free=True) == [segment.id for segment in segments[7:]]


def test_a_view_has_its_segment_for_as_long_as_it_lives(pool: Pool, files: Files) -> None:
    segment = held(pool, files)
    view = pool.view(segment, 5)
    assert view is not None
    view[:] = b"12345"
    part = view[1:3]
    del view
    assert pool.take(MIB) is None
    assert bytes(part) == b"23"
    del part
    assert pool.take(MIB) is segment


def test_there_are_so_many_views_and_no_more(pool: Pool, files: Files) -> None:
    views = [pool.view(held(pool, files), 1) for _ in range(MAX_VIEWS)]
    assert None not in views
    assert pool.view(held(pool, files), 1) is None
    views.pop()
    assert pool.view(held(pool, files), 1) is not None


def test_what_was_given_up_is_closed_and_not_used_again(pool: Pool, files: Files) -> None:
    segment = held(pool, files)
    pool.give_up(segment)
    assert pool.take(MIB) is None
    assert pool.unwanted() == [segment.id]
    assert pool.unwanted() == []
    pool.still_unwanted([segment.id])
    assert pool.unwanted() == [segment.id]


def test_the_mapping_of_what_was_lent_is_used_when_it_comes_again(pool: Pool, files: Files) -> None:
    memories = [files.make(MIB) for _ in range(6)]
    segments = [pool.map(memory) for memory in memories]
    for segment in segments:
        pool.lend(segment)
    again = [pool.map(memory) for memory in memories]
    assert [new is old for new, old in zip(again, segments, strict=True)] == [False] * 2 + [True] * 4


def test_what_was_forgotten_is_not_used_again_and_closed(pool: Pool, files: Files) -> None:
    shown, ended, free, lent, given_up = segments = [held(pool, files) for _ in range(5)]
    view = pool.view(shown, 1)
    assert pool.view(ended, 1) is not None
    pool.give_back(free)
    pool.lend(lent)
    pool.give_up(given_up)
    pool.forget()
    assert pool.take(MIB) is None
    assert sorted(pool.unwanted()) == sorted(it.id for it in segments if it not in (shown, lent))
    # It is an array's still: one of those that there may be.
    views = [pool.view(held(pool, files), 1) for _ in range(MAX_VIEWS)]
    assert views.count(None) == 1
    del view
    assert pool.unwanted() == [shown.id]
    assert pool.view(held(pool, files), 1) is not None


FORKING = """
import os, pathlib, sys
from rankbridge._transport.segments import Pool
from rankbridge.v1 import ref_service_pb2 as ref_pb
path = pathlib.Path(sys.argv[1])
path.write_bytes(bytes(4096) + b"nonce")
memory = ref_pb.SharedMemory(id="1", path=str(path), bytes=4096, nonce=b"nonce")
pool = Pool()
view = pool.view(pool.map(memory), 1)
pid = os.fork()
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
del view
assert pool.take(4096) is None
assert pool.unwanted() == ["1"]
view = pool.view(pool.map(memory), 1)
del view
assert pool.take(4096) is not None
"""


def test_what_a_forked_process_may_look_at_is_not_used_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKING, str(tmp_path / "memory")], check=True, timeout=60)
