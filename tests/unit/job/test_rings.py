"""The record of a rank, as its writer leaves it at any moment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankbridge_server.job.outside import rings
from rankbridge_server.job.watch.ring import (
    CAPACITY,
    HAS_FAILED,
    HEADER_BYTES,
    IS_WHOLE,
    KINDS,
    ON_DEVICE,
    TEXT_BYTES,
    Ring,
    packed_shape,
)


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring.create(tmp_path / "record", 2, 4)


def write(
    ring: Ring,
    number: int,
    group: int,
    site: int = 0,
    kind: str = "all_reduce",
    at: float = 5.0,
    flags: int = 0,
) -> int:
    shape = packed_shape((2, 3))
    return ring.begin(at, number, KINDS.index(kind), 1, 2, flags, group, 1, site, 4, 3, -1, -1, 6, shape)


def test_a_call_is_read_as_it_was_written(ring: Ring) -> None:
    group = ring.text({"group": "dp", "ranks": [0, 2], "description": "data parallel"})
    site = ring.text({"site": "step", "file": "/job/train.py", "line": 7})
    ring.end(write(ring, 1, group, site), 6.0)
    record = rings.read(ring.path)
    assert (record.rank, record.world_size, record.pid) == (2, 4, os.getpid())
    assert record.groups[0].ranks == (0, 2)
    (call,) = record.calls
    assert (call.group, call.number, call.kind, call.dtypes, call.shapes) == (
        "dp", 1, "all_reduce", ("float32",), ((2, 3),)
    )  # fmt: skip
    assert (call.op, call.root, call.peer, call.tag, call.done, str(call.site)) == (
        "max", 3, None, None, None, "step train.py:7"
    )  # fmt: skip
    assert record.newest == 6.0


def test_a_record_that_is_being_made_is_none_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    allocate = os.posix_fallocate

    def look(file: int, offset: int, size: int) -> None:
        seen.append(len(rings.in_directory(tmp_path)))
        allocate(file, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", look)
    ring = Ring.create(tmp_path, 2, 4)
    assert seen == [0]
    assert [it.rank for it in rings.in_directory(tmp_path)] == [2]
    assert list(tmp_path.iterdir()) == [ring.path]


def test_calls_on_devices_are_told_from_others(ring: Ring) -> None:
    group = ring.text({"group": "0", "ranks": [2], "description": ""})
    for number, flags in enumerate((0, ON_DEVICE), 1):
        write(ring, number, group, flags=flags)
    assert [it.on_device for it in rings.read(ring.path).calls] == [False, True]


@pytest.mark.parametrize(
    ("flags", "has_returned", "was_waited_for", "done"),
    [
        (0, False, False, None),
        (0, True, False, None),
        (0, True, True, True),
        (ON_DEVICE, True, True, None),
        (HAS_FAILED, True, True, None),
        (IS_WHOLE, False, False, False),
        (IS_WHOLE, True, False, True),
        (IS_WHOLE | ON_DEVICE, True, False, None),
        (IS_WHOLE | HAS_FAILED, True, False, None),
    ],
)
def test_a_call_is_done_when_its_wait_is_over_or_a_coordinator_has_returned(
    ring: Ring, flags: int, has_returned: bool, was_waited_for: bool, done: bool | None
) -> None:
    place = write(
        ring, 1, ring.text({"group": "0", "ranks": [2], "description": ""}), flags=flags & ~HAS_FAILED
    )
    if flags & HAS_FAILED:
        ring.failed(place)
    if has_returned:
        ring.end(place, 6.0)
    if was_waited_for:
        ring.waited(place, 7.0)
    (call,) = rings.read(ring.path).calls
    assert call.done is done
    assert call.on_device == (flags == ON_DEVICE)


def test_the_newest_calls_are_kept_in_their_order(ring: Ring) -> None:
    group = ring.text({"group": "0", "ranks": [2], "description": ""})
    for number in range(1, CAPACITY + 11):
        write(ring, number, group)
    calls = rings.read(ring.path).calls
    assert [it.number for it in calls] == list(range(11, CAPACITY + 11))
    assert [it.number for it in rings.read(ring.path, most=2).calls] == [CAPACITY + 9, CAPACITY + 10]


def test_a_call_whose_writing_was_cut_off_is_not_there(ring: Ring) -> None:
    group = ring.text({"group": "0", "ranks": [2], "description": ""})
    write(ring, 1, group)
    place = write(ring, 2, group)
    with ring.path.open("r+b") as file:
        file.seek(place)
        file.write(bytes(8))
    assert [it.number for it in rings.read(ring.path).calls] == [1]


def test_how_a_process_ended_is_read(ring: Ring) -> None:
    assert not ring.has_ended
    ring.ended(2, "ValueError: a bad batch")
    record = rings.read(ring.path)
    assert (record.how, record.reason) == (2, "ValueError: a bad batch")
    assert record.ended_at is not None


def test_texts_that_have_no_room_are_left_out(ring: Ring) -> None:
    while ring.text({"site": "f", "file": "x" * 60_000, "line": 1}):
        pass
    group = ring.text({"group": "0", "ranks": [2], "description": ""})
    assert group > 0
    write(ring, 1, group, 0)
    assert rings.read(ring.path).calls[0].site is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: HEADER_BYTES + 5],
        lambda data: b"WRONG" + data[5:],
        lambda data: data[:8] + b"\xff" * 8 + data[16:],
        lambda data: data[:HEADER_BYTES] + b"{" * 20 + data[HEADER_BYTES + 20 :],
        lambda data: (
            data[: HEADER_BYTES + TEXT_BYTES + 28] + b"\xff" + data[HEADER_BYTES + TEXT_BYTES + 29 :]
        ),
    ],
)
def test_a_file_that_is_damaged_or_none_is_refused_with_its_path(ring: Ring, damage: object) -> None:
    group = ring.text({"group": "0", "ranks": [2], "description": ""})
    write(ring, 1, group)
    ring.path.write_bytes(damage(ring.path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(rings.BadRing, match=str(ring.path)):
        rings.read(ring.path)


_WRITER = """
import sys
from pathlib import Path
from rankbridge_server.job.watch.ring import Ring

ring = Ring.create(Path(sys.argv[1]), 2, 4)
print(ring.path, flush=True)
sys.stdin.read()
"""


def test_a_process_that_has_mapped_its_record_is_found_by_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        path = writer.stdout.readline().strip()
        found = rings.of_process(writer.pid)
        assert found is not None
        assert found.samefile(path)
