"""The record of a rank as others read it: in its file, while the rank runs and when it is dead."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase, Place
from rankbridge_server.core.record.memory import SPARE, BadRecord, RecordMemory
from rankbridge_server.core.record.record import Record
from rankbridge_server.core.record.slots import TEXT_BYTES
from rankbridge_server.core.task import Task


def task(record: Record, operation: str = "barrier", group: str = "world", contract: str = "") -> Task:
    made = Task(Place(2, group, operation, "an id", 7), 1.0, "a session", site="train.py:7")
    made.contract = contract
    made.note = record.note
    made.then(record.add)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rank-2.record"


def test_a_reader_sees_how_far_an_operation_has_come(path: Path) -> None:
    record = Record(4, path, 0o640)
    reader = RecordMemory.open(path)
    it = task(record, "all_reduce", contract="all_reduce dtype=float32")
    assert reader.unended() == []
    it.sequence = 3
    it.enter(Phase.ADMISSION)
    (seen,) = reader.unended()
    assert seen.place == it.place
    assert (seen.contract, seen.site, seen.session_id) == (
        "all_reduce dtype=float32",
        "train.py:7",
        "a session",
    )
    assert (seen.called, seen.announced, seen.entered, seen.done) == (it.began, it.announced, 0.0, 0.0)
    assert (seen.phase, seen.sequence, reader.ended) == (Phase.ADMISSION, 3, 0)
    it.enter(Phase.DATA)
    (seen,) = reader.unended()
    assert (seen.phase, seen.entered) == (Phase.DATA, it.entered)
    it.commit(lambda: None)
    assert reader.unended() == []
    (done,) = reader.entries()
    assert done._replace(done=0.0) == seen
    assert done.done >= seen.entered
    assert (reader.id, reader.ended, reader.pid) == (record.id, 1, record.pid)


def test_what_failed_has_its_error(path: Path) -> None:
    record = Record(4, path)
    for entered in (True, False):
        it = task(record)
        if entered:
            it.enter(Phase.ADMISSION)
        it.fail(BridgeError.of(ErrorCode.PEER_LOST, "rank 1 is lost", indefinite=True))
    found = RecordMemory.open(path).entries()
    assert [(it.code, it.message, it.indefinite) for it in found] == [
        (ErrorCode.PEER_LOST, "rank 1 is lost", True)
    ] * 2


def test_the_oldest_are_written_over_and_what_is_pending_is_not(path: Path) -> None:
    record = Record(2, path)
    first = task(record, "first")
    first.enter(Phase.ADMISSION)
    for name in "abcdef":
        it = task(record, name)
        it.enter(Phase.ADMISSION)
        it.commit(lambda: None)
    reader = RecordMemory.open(path)
    assert [it.place.operation for it in reader.entries()] == ["e", "f"]
    assert [it.place.operation for it in reader.entries(1)] == ["f"]
    assert [it.place.operation for it in reader.after(3, 9)[0]] == ["e", "f"]
    assert [it.place.operation for it in reader.unended()] == ["first"]


@pytest.mark.parametrize("kept", [0, 3])
def test_more_than_there_is_room_for_is_kept_when_it_ends(kept: int) -> None:
    record = Record(kept)
    tasks = [task(record, str(number)) for number in range(kept + SPARE + 5)]
    for it in tasks:
        it.enter(Phase.ADMISSION)
    assert len(record.unended()) == kept + SPARE
    for it in tasks:
        it.commit(lambda: None)
    assert [it.place.operation for it in record.entries()] == [it.place.operation for it in tasks[-kept:]][
        :kept
    ]
    assert (record.ended, record.unended()) == (len(tasks), [])


def test_a_queued_task_is_noted_and_its_contract_comes_later(path: Path) -> None:
    record = Record(1, path)
    it = task(record)
    it.note_now()
    reader = RecordMemory.open(path)
    assert [(one.phase, one.contract) for one in reader.unended()] == [(Phase.CHECK, "")]
    it.contract = "barrier"
    it.enter(Phase.ADMISSION)
    assert [(one.phase, one.contract) for one in reader.unended()] == [(Phase.ADMISSION, "barrier")]
    it.commit(lambda: None)
    it.note_now()
    assert reader.unended() == []


def test_long_texts_are_cut_and_differ_if_they_did() -> None:
    record = Record(2)
    for last in "ab":
        it = task(record, group="g" * 300, contract="all_reduce " + "x" * TEXT_BYTES + last)
        it.fail(BridgeError.of(ErrorCode.ABORTED, "m" * 600))
    one, other = record.entries()
    assert one.contract[:50] == other.contract[:50] == "all_reduce " + "x" * 39
    assert one.contract != other.contract
    assert one.place.operation_id == "an id"
    assert sum(len(it) for it in (one.contract, one.message, one.place.group)) > TEXT_BYTES - 100


def test_texts_that_are_no_text_are_kept_all_the_same() -> None:
    record = Record(2)
    task(record, group="a\0b").commit(lambda: None)
    task(record, contract="\ud800").commit(lambda: None)
    first, second = record.entries()
    assert first.place.operation == "barrier"
    assert second.contract == "\\ud800"


def test_the_newest_state_counts(path: Path) -> None:
    record = Record(0, path)
    reader = RecordMemory.open(path)
    assert reader.state == b""
    for state in (b"first", b"second", b""):
        record.describe(state)
        assert reader.state == state
    with pytest.raises(ValueError, match="the state of a rank has at most"):
        record.describe(b"x" * 10**6)
    assert not reader.is_orderly
    record.end()
    assert reader.is_orderly


def test_the_file_is_this_users_and_takes_the_place_of_the_last_ones(path: Path) -> None:
    first = Record(1, path)
    task(first).commit(lambda: None)
    old = RecordMemory.open(path)
    second = Record(1, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (RecordMemory.open(path).id, old.id) == (second.id, first.id)
    assert [it.name for it in path.parent.iterdir()] == [path.name]


DIES = """
import os, signal, sys
from pathlib import Path
from rankbridge_server.core.errors import Phase, Place
from rankbridge_server.core.record.record import Record
from rankbridge_server.core.task import Task
record = Record(8, Path(sys.argv[1]))
for name in ("done", "pending"):
    task = Task(Place(operation=name), 1.0, "", site="a.py:1")
    task.note = record.note
    task.then(record.add)
    task.enter(Phase.ADMISSION)
    if name == "done":
        task.commit(lambda: None)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_outlives_a_process_that_is_killed(path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", DIES, str(path)], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    reader = RecordMemory.open(path)
    assert [it.place.operation for it in reader.entries()] == ["done"]
    assert [it.place.operation for it in reader.unended()] == ["pending"]
    assert reader.since <= reader.alive


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"RBRECRD1" + bytes(5000)])
def test_what_is_no_record_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(BadRecord, match=r"rank-2\.record is"):
        RecordMemory.open(path)


def test_a_record_that_is_cut_off_is_refused(path: Path) -> None:
    Record(9, path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadRecord, match="is cut off"):
        RecordMemory.open(path)
