"""Shared memory of one rank: its files, who holds which segment, and what a killed process leaves behind."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.refs.refs import RefStore
from rankbridge_server.core.shared_memory.copying import copy
from rankbridge_server.core.shared_memory.memory import SharedMemory, make_shared_memory
from rankbridge_server.core.shared_memory.segments import MAX_ADOPTED, MAX_SEGMENTS, Segments

PAGE = os.sysconf("SC_PAGE_SIZE")
SESSION = "a"


class Store:
    """Segments of open sessions "a" and "b"."""

    def __init__(self, max_bytes: int = 100 * PAGE) -> None:
        self.refs = RefStore(Limits())
        self._made: list[tuple[Path, int]] = []
        for session in "ab":
            self.refs.open_session(session)
        self.segments = Segments(max_bytes, self.refs.renew_session, self.make)

    def make(self, nbytes: int) -> SharedMemory:
        made = make_shared_memory(nbytes)
        self._made.append((made.path, made.path.stat().st_ino))
        return made

    @property
    def files(self) -> list[Path]:
        """The paths of what is not closed."""
        return [path for path, inode in self._made if path.exists() and path.stat().st_ino == inode]


@pytest.fixture
def store() -> Iterator[Store]:
    it = Store()
    yield it
    it.segments.close_all()
    assert it.files == []


def refused(code: ErrorCode, call: Callable[[], object]) -> BridgeError:
    """The error of a call that is refused."""
    with pytest.raises(BridgeError) as raised:
        call()
    assert raised.value.failure.code is code
    return raised.value


def adopt(store: Store, segment_id: str, nbytes: int = PAGE) -> memoryview:
    """Memory of a tensor that was put."""
    with store.segments.using(SESSION, segment_id, nbytes) as use:
        memory = use.lend()
        use.keep()
    return memory


def test_memory_is_opened_by_its_path_and_ends_with_its_nonce() -> None:
    made = make_shared_memory(PAGE + 1)
    assert made.nbytes == 2 * PAGE
    assert made.path.stat().st_uid == os.geteuid()
    assert made.path.stat().st_blocks * 512 >= 2 * PAGE
    assert made.path.read_bytes()[2 * PAGE :] == made.nonce
    assert len(set(made.nonce)) > 1
    with made.path.open("r+b") as opened:
        opened.write(b"seen")
    assert made.map[:4] == b"seen"
    inode = made.path.stat().st_ino
    made.close()
    assert not made.path.exists() or made.path.stat().st_ino != inode


def test_nobody_makes_memory_smaller_under_its_reader() -> None:
    made = make_shared_memory(2 * PAGE)
    with made.path.open("r+b") as opened:
        for size in (0, PAGE, 100 * PAGE):
            with pytest.raises(PermissionError):
                opened.truncate(size)
    assert made.map[-1:] == b"\0"
    made.close()


@pytest.mark.parametrize("nbytes", [0, 1, 3 * PAGE, 9 << 20])
def test_copying(nbytes: int) -> None:
    source = bytearray(os.urandom(nbytes))
    target = bytearray(nbytes + 1)
    copy(memoryview(target), memoryview(source))
    assert target == source + b"\0"
    copy(memoryview(target)[1:], memoryview(bytes(source)))
    assert target[1:] == source


def test_segments_are_counted_and_limited() -> None:
    store = Store(4 * PAGE)
    first = store.segments.open(SESSION, PAGE + 1)
    assert (first.nbytes, store.segments.nbytes) == (2 * PAGE, 2 * PAGE)
    error = refused(ErrorCode.RESOURCE_EXHAUSTED, lambda: store.segments.open("b", 2 * PAGE + 1))
    assert error.failure.expected == f"at most {4 * PAGE} bytes of shared memory"
    assert error.failure.got == f"{2 * PAGE} held and {2 * PAGE + 1} more"
    second = store.segments.open("b", 2 * PAGE)
    assert len(store.files) == 2
    assert store.segments.close(SESSION, [first.id, "unknown"]) == 1
    assert store.segments.close(SESSION, [first.id]) == 0
    assert store.files == [second.file.path]
    assert store.segments.nbytes == 2 * PAGE
    store.segments.close_all()


def test_there_are_so_many_segments_and_no_more() -> None:
    store = Store(2 * MAX_SEGMENTS * PAGE)
    for _ in range(MAX_SEGMENTS):
        store.segments.open(SESSION, 1)
    refused(ErrorCode.RESOURCE_EXHAUSTED, lambda: store.segments.open(SESSION, 1))
    store.segments.close_all()


def test_where_the_host_has_no_memory_there_is_no_room(store: Store) -> None:
    def full(nbytes: int) -> SharedMemory:
        raise OSError(errno.ENOSPC, "no space")

    segments = Segments(10 * PAGE, store.refs.renew_session, full)
    refused(ErrorCode.RESOURCE_EXHAUSTED, lambda: segments.open(SESSION, 1))
    assert segments.nbytes == 0


def test_who_gets_none(store: Store) -> None:
    refused(ErrorCode.INVALID_ARGUMENT, lambda: store.segments.open("", 1))
    refused(ErrorCode.INVALID_ARGUMENT, lambda: store.segments.open(SESSION, 0))
    refused(ErrorCode.UNKNOWN_SESSION, lambda: store.segments.open("c", 1))
    refused(ErrorCode.UNSUPPORTED_OPERATION, lambda: Store(0).segments.open(SESSION, 1))
    assert store.files == []


def test_who_knows_one_segments_name_knows_no_others(store: Store) -> None:
    names = [store.segments.open(session, PAGE).id for session in "ab" * 10]
    assert len({name[:8] for name in names}) == len({name[-8:] for name in names}) == len(names)
    assert {len(name) for name in names} == {32}


def test_a_call_names_its_own_segment_and_has_it_alone(store: Store) -> None:
    segment = store.segments.open(SESSION, PAGE)

    def use(session: str = SESSION, segment_id: str = segment.id, nbytes: int = PAGE) -> None:
        with store.segments.using(session, segment_id, nbytes):
            pass

    refused(ErrorCode.WRONG_SESSION, lambda: use(session="b"))
    refused(ErrorCode.UNKNOWN_SESSION, lambda: use(session="c"))
    refused(ErrorCode.UNKNOWN_SHARED_MEMORY, lambda: use(segment_id="0.1"))
    error = refused(ErrorCode.INVALID_ARGUMENT, lambda: use(nbytes=PAGE + 1))
    assert (error.failure.expected, error.failure.got) == (f"{PAGE + 1} bytes or more", f"{PAGE} bytes")
    refused(ErrorCode.WRONG_SESSION, lambda: store.segments.close("b", [segment.id]))
    with store.segments.using(SESSION, segment.id, 3) as mine:
        assert len(mine.memory) == 3
        refused(ErrorCode.INVALID_ARGUMENT, use)
    use()
    store.segments.close(SESSION, [segment.id])
    refused(ErrorCode.UNKNOWN_SHARED_MEMORY, use)


def test_an_adopted_segment_comes_again_when_its_tensor_is_gone(store: Store) -> None:
    segment = store.segments.open(SESSION, PAGE)
    memory = adopt(store, segment.id)
    memory[:2] = b"ab"
    view = memory[1:]
    del memory
    refused(ErrorCode.UNKNOWN_SHARED_MEMORY, lambda: adopt(store, segment.id))
    assert store.segments.close(SESSION, [segment.id]) == 0
    other = store.segments.open(SESSION, PAGE)
    assert other.id != segment.id
    assert bytes(view[:1]) == b"b"
    del view
    assert store.segments.open("b", PAGE).id not in (segment.id, other.id)
    assert store.segments.open(SESSION, PAGE).id == segment.id
    adopt(store, segment.id)
    # Far too large.
    assert store.segments.open(SESSION, 1).id != segment.id


def test_what_a_call_lent_and_did_not_keep_is_the_callers_again(store: Store) -> None:
    segment = store.segments.open(SESSION, PAGE)

    def fail() -> None:
        with store.segments.using(SESSION, segment.id, PAGE) as use:
            use.lend()
            assert store.segments.nbytes == PAGE
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    memory = adopt(store, segment.id)
    assert store.segments.open(SESSION, PAGE).id != segment.id
    del memory
    assert store.segments.open(SESSION, PAGE).id == segment.id


def test_so_many_segments_of_a_session_are_tensors_and_no_more(store: Store) -> None:
    tensors = [adopt(store, store.segments.open(SESSION, PAGE).id) for _ in range(MAX_ADOPTED)]
    segment = store.segments.open(SESSION, PAGE)
    with store.segments.using(SESSION, segment.id, PAGE) as use:
        assert not use.may_lend
    with store.segments.using("b", store.segments.open("b", PAGE).id, PAGE) as use:
        assert use.may_lend
    tensors.pop()
    with store.segments.using(SESSION, segment.id, PAGE) as use:
        assert use.may_lend


def test_of_what_is_the_ranks_a_few_are_kept(store: Store) -> None:
    for pages in range(1, MAX_ADOPTED + 4):
        adopt(store, store.segments.open(SESSION, pages * PAGE).id, PAGE)
    assert store.segments.nbytes == sum(range(4, MAX_ADOPTED + 4)) * PAGE
    assert len(store.files) == MAX_ADOPTED


def test_what_is_the_ranks_makes_room() -> None:
    store = Store(4 * PAGE)
    for _ in range(2):
        adopt(store, store.segments.open(SESSION, 2 * PAGE).id, 2 * PAGE)
    kept = store.segments.open(SESSION, 2 * PAGE)
    store.segments.open("b", 2 * PAGE)
    assert len(store.files) == 2
    refused(ErrorCode.RESOURCE_EXHAUSTED, lambda: store.segments.open("b", 1))
    assert kept.file.path in store.files
    store.segments.close_all()


def test_a_closed_sessions_segments_go_and_count_while_they_are_used(store: Store) -> None:
    lent, idle, used = (store.segments.open(SESSION, PAGE) for _ in range(3))
    memory = adopt(store, lent.id)
    memory[:1] = b"x"
    with store.segments.using(SESSION, used.id, PAGE) as use:
        store.refs.close_session(SESSION)
        store.segments.forget(SESSION)
        assert store.files == []
        assert store.segments.nbytes == 2 * PAGE
        use.memory[:1] = b"y"
    assert store.segments.nbytes == PAGE
    assert bytes(memory[:1]) == b"x"
    del memory
    assert store.segments.nbytes == 0
    refused(ErrorCode.UNKNOWN_SESSION, lambda: store.segments.close(SESSION, [idle.id]))


def test_a_session_that_is_closed_while_its_file_is_made_keeps_none(store: Store) -> None:
    def slow(nbytes: int) -> SharedMemory:
        made = store.make(nbytes)
        store.refs.close_session(SESSION)
        store.segments.forget(SESSION)
        return made

    segments = Segments(10 * PAGE, store.refs.renew_session, slow)
    refused(ErrorCode.UNKNOWN_SESSION, lambda: segments.open(SESSION, PAGE))
    assert segments.nbytes == 0
    assert store.files == []


def test_many_threads_take_and_return(store: Store) -> None:
    failures: list[BaseException] = []

    def turn() -> None:
        try:
            for _ in range(50):
                segment = store.segments.open(SESSION, PAGE)
                memory = adopt(store, segment.id)
                memory[:8] = segment.id.encode().ljust(8)[:8]
                assert bytes(memory[:8]) == segment.id.encode().ljust(8)[:8]
                del memory
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=turn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert store.segments.nbytes <= 4 * PAGE


def open_memory() -> set[int]:
    """The pieces of shared memory that this process has open, by inode."""
    found = set()
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if str(fd.readlink()).startswith("/memfd:rankbridge-tensor"):
                found.add(fd.stat().st_ino)
    return found


def test_what_a_call_had_lent_is_freed_when_its_session_was_closed_meanwhile() -> None:
    before, store = open_memory(), Store()
    segment = store.segments.open(SESSION, PAGE)
    with store.segments.using(SESSION, segment.id, PAGE) as use:
        lent = use.lend()
        store.segments.forget(SESSION)
    assert len(open_memory() - before) == 1
    del segment, use, lent
    # No other call has come since.
    assert not open_memory() - before
