"""Guard: what a job's ranks do not agree on raises in the script, on every rank, and the group goes on afterwards."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rankbridge_server.job.guard.crossings import Wait, channel_of, crossing
from rankbridge_server.job.outside import rings

SCRIPT = Path(__file__).parent / "guarded_script.py"
SIZE = 4
TIMEOUT_S = 5.0
# Where nobody waits for so long: on a busy machine ranks may take a while to begin, to end, and to see others end.
LONG_S = 60.0
SENDS = ("ring", "pipeline", "any_source", "sending_threads", "in_pair")
SENT_WRONG = ("sent_dtype", "sent_size", "tags", "recv_and_barrier", "recv_circle", "unreceived")
AGREE = ("late", "threads", "groups", "right", "small", *SENDS)
DISAGREE = (
    *("op", "root", "dtype", "shape", "order", "parts", "membership", "no_group", "asynchronous"),
    *("missing", "crossed", "circle"),
    *SENT_WRONG,
)

Said = dict[str, Any]


def run(folder: Path, what: str, timeout_s: float = TIMEOUT_S, **environment: str) -> list[list[Said]]:
    """What each rank said."""
    folder = folder / uuid.uuid4().hex
    folder.mkdir()
    environ = {**os.environ, "WORLD_SIZE": str(SIZE), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environ |= environment
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), what, str(timeout_s), str(folder)],
            env={**environ, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(SIZE)
    ]
    done = [it.communicate(timeout=100) for it in ranks]
    said = [[json.loads(line) for line in out.splitlines()] for out, _ in done]
    assert any(said), [err for _, err in done]
    return said


def said_by_name(folder: Path, names: Sequence[str], **environment: str) -> dict[str, list[Said]]:
    """What each rank said of each thing that leaves all ranks where they are, all in one job."""
    said = run(folder, ",".join(names), TIMEOUT_S, **environment)
    assert [[it["what"] for it in each] for each in said] == [list(names)] * SIZE
    return {name: [each[place] for each in said] for place, name in enumerate(names)}


@pytest.fixture(scope="module")
def by_name(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Said]]:
    """Of all."""
    return said_by_name(tmp_path_factory.mktemp("guarded"), (*AGREE, *DISAGREE, "twice"))


@pytest.mark.parametrize("name", [*AGREE, *DISAGREE, "twice"])
def test_groups_go_on_after_what_was_wrong(by_name: dict[str, list[Said]], name: str) -> None:
    assert [it["after"] for it in by_name[name]] == [[SIZE, SIZE]] * SIZE


@pytest.mark.parametrize("name", AGREE)
def test_nothing_is_said_of_what_is_right(by_name: dict[str, list[Said]], name: str) -> None:
    assert [(it["code"], it["text"]) for it in by_name[name]] == [("", "")] * SIZE


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("op", ["ranks 0-2: float32[4] sum", "rank 3:    float32[4] max"]),
        ("root", ["rank 1:       float32[4] src_rank_in_group=1"]),
        ("dtype", ["rank 0:    float64[4] sum", "ranks 1-3: float32[4] sum"]),
        ("shape", ["ranks 0-1: float32[4] sum", "ranks 2-3: float32[5] sum"]),
        ("order", ["ranks 0-1, 3: barrier at", "rank 2:       all_reduce float32[1] sum at"]),
        ("parts", ["ranks 0, 2-3: float32[2] tensors=4", "rank 1:       float32[3] tensors=4"]),
        ("membership", ["ranks 0-2: ranks=[0, 1]", "rank 3:    ranks=[0, 2]"]),
        (
            "no_group",
            ["ranks 0-1, 3: new_group ranks=[0, 1] at", "rank 2:       all_reduce float32[4] sum at"],
        ),
        ("asynchronous", ["rank 3:    float32[4] max"]),
        ("twice", ["rank 3:    float32[4] max"]),
    ],
)
def test_all_ranks_hear_both_sides_and_the_line_at_once(
    by_name: dict[str, list[Said]], name: str, sides: list[str]
) -> None:
    for it in by_name[name]:
        assert (it["code"], it["ranks"]) == ("MISMATCH", list(range(SIZE)))
        assert it["text"].startswith("MISMATCH in ")
        assert [side for side in sides if side not in it["text"]] == []
        assert str(SCRIPT) in it["text"]
        assert it["seconds"] < TIMEOUT_S


def test_who_has_not_come_is_named_with_its_line(by_name: dict[str, list[Said]]) -> None:
    for rank, it in enumerate(by_name["missing"]):
        if rank == 2:
            assert it["code"] == ""
            continue
        assert it["code"] == "PEER_MISSING"
        assert "3 of 4 ranks came, missing: rank 2" in it["text"]
        doing = it["text"].splitlines()[-1]
        # A busy machine may keep it from saying so in time.
        assert "in missing" in doing or "did not say within 200 ms" in doing
        assert it["seconds"] >= TIMEOUT_S


@pytest.mark.parametrize(
    ("name", "members"),
    [
        *[("crossed", [0, 1]), ("circle", [0, 1, 2])],
        *[("tags", [0, 1]), ("recv_and_barrier", [0, 1]), ("recv_circle", [0, 1, 2])],
    ],
)
def test_ranks_that_wait_for_each_other_are_found_long_before_the_timeout(
    by_name: dict[str, list[Said]], name: str, members: list[int]
) -> None:
    for rank, it in enumerate(by_name[name]):
        assert it["code"] == ("MISMATCH" if rank in members else "")
        if rank in members:
            assert it["ranks"] == members
            assert f"{len(members)} ranks wait for each other" in it["text"]
            assert all(f"rank {each} waits on" in it["text"] for each in members)
            assert it["seconds"] < TIMEOUT_S


@pytest.mark.parametrize(
    ("name", "sender", "receiver", "sides"),
    [
        (
            *("sent_dtype", 0, 1),
            [
                "rank 0: send of 4 elements of float32 to rank 1 tag=0 at",
                "rank 1: receive of 4 elements of float64 from rank 0 tag=0 at",
            ],
        ),
        (
            *("sent_size", 2, 3),
            [
                "rank 2: send of 8 elements of float32 to rank 3 tag=0 at",
                "rank 3: receive of 4 elements of float32 from rank 2 tag=0 at",
            ],
        ),
    ],
)
def test_both_ends_of_what_is_sent_hear_both_sides_and_their_lines(
    by_name: dict[str, list[Said]], name: str, sender: int, receiver: int, sides: list[str]
) -> None:
    for rank, it in enumerate(by_name[name]):
        assert it["code"] == ("MISMATCH" if rank in (sender, receiver) else "")
        if it["code"]:
            assert sorted(it["ranks"]) == [sender, receiver]
            assert it["text"].startswith(f"MISMATCH in {'send' if rank == sender else 'recv'} on world")
            assert [side for side in sides if side not in it["text"]] == []
            assert it["text"].count(f"at {SCRIPT}:") == 2
            assert it["seconds"] < TIMEOUT_S


def test_who_does_not_receive_or_send_is_named_with_what_it_does_instead(
    by_name: dict[str, list[Said]],
) -> None:
    said = by_name["unreceived"]
    assert [it["code"] for it in said] == ["PEER_MISSING", "", "PEER_MISSING", "PEER_MISSING"]
    assert [it["ranks"] for it in said] == [[0, 1], [], [2, 3], [3, 2]]
    assert "rank 1 has not come in 5 s" in said[0]["text"]
    assert "send of 4 elements of float32 to rank 1 tag=0" in said[0]["text"]
    assert "rank 1: has not come: it has no call, for" in said[0]["text"]
    assert "in unreceived" in said[0]["text"].splitlines()[-1]
    assert "rank 2: has not come: it waits in recv from rank 3 tag=2 on world, for" in said[3]["text"]
    # What `wait` is given is shorter.
    assert "rank 2 has not come in 3 s" in said[3]["text"]
    assert said[3]["seconds"] >= 3
    assert min(said[0]["seconds"], said[2]["seconds"]) >= TIMEOUT_S


@pytest.mark.sampled
def test_calls_fare_alike_whether_they_enter_gloo_or_travel_with_their_announcement(
    by_name: dict[str, list[Said]], tmp_path: Path
) -> None:
    # Of the pipeline, some of one tag do, and others do not.
    names = (*AGREE, *DISAGREE)
    said = run(tmp_path, ",".join(names), GUARDED_MOST_CARRIED="8")
    for place, name in enumerate(names):
        for rank, alike in enumerate(by_name[name]):
            it = said[rank][place]
            assert [it[key] for key in ("what", "code", "ranks", "after")] == [
                name, alike["code"], alike["ranks"], alike["after"],
            ]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("what", "code"),
    [("sender_gone", "PEER_MISSING"), ("sender_killed", "PEER_LOST"), ("receiver_killed", "PEER_LOST")],
)
def test_the_other_end_that_has_gone_is_named_at_once(tmp_path: Path, what: str, code: str) -> None:
    said = run(tmp_path, what, LONG_S)
    assert said[1] == []
    for (it,) in (each for rank, each in enumerate(said) if rank != 1):
        assert (it["code"], it["ranks"]) == (code, [1])
        assert " on world: rank 1 has gone: " in it["text"]
        assert it["seconds"] < LONG_S / 2


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("what", "gone", "code"),
    [("gone", 1, "PEER_MISSING"), ("killed", 1, "PEER_LOST"), ("killed_first", 0, "PEER_LOST")],
)
def test_a_rank_that_has_gone_is_named_at_once(tmp_path: Path, what: str, gone: int, code: str) -> None:
    said = run(tmp_path, what, LONG_S)
    assert said[gone] == []
    for (it,) in (each for rank, each in enumerate(said) if rank != gone):
        assert (it["code"], it["ranks"]) == (code, [gone])
        assert f"{code} in all_reduce on world: rank {gone} has gone" in it["text"]
        assert it["seconds"] < LONG_S / 2


@pytest.mark.sampled
def test_ranks_that_have_done_all_that_they_had_to_may_leave(tmp_path: Path) -> None:
    said = run(tmp_path, "left")
    assert [[it["code"] for it in each] for each in said] == [[""], [""], [], []]


def test_a_whole_job_is_guarded_without_a_line_in_its_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "from rankbridge_server.job.dispatch import begun\n"
        "before = begun(dist.group.WORLD)\n"
        "dist.barrier()\n"
        "(dist.recv if dist.get_rank() else dist.send)(torch.ones(5), 1 - dist.get_rank())\n"
        "assert dist.all_reduce(large := torch.ones(5000)) is None and large[-1] == 2\n"
        "assert dist.all_reduce(small := torch.ones(3)) is None and small[-1] == 2\n"
        "assert begun(dist.group.WORLD) - before == 3\n"
        "op = dist.ReduceOp.MAX if dist.get_rank() else dist.ReduceOp.SUM\n"
        "dist.all_reduce(torch.ones(3), op)\n"
    )
    bin = Path(sys.executable).parent
    command = [str(bin / "rankbridge"), "watch", "--guard", "--guard-timeout", "30", "--record"]
    command += [str(tmp_path / "record"), "--", str(bin / "torchrun"), "--standalone"]
    command += ["--nproc-per-node", "2", str(script)]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode != 0
    assert f"GuardError: MISMATCH in all_reduce #4 on world at {script}:11" in done.stderr
    assert "rank 0: float32[3] sum" in done.stderr
    calls = [[(it.kind, it.number) for it in rank.calls] for rank in rings.in_directory(tmp_path / "record")]
    later = [("all_reduce", 2), ("all_reduce", 3), ("all_reduce", 4)]
    assert calls == [[("barrier", 1), (it, 1), *later] for it in ("send", "recv")]


def a_wait(group: str, ranks: tuple[int, ...], number: int = 0, **passed: int) -> Wait:
    """A wait in a group, of a rank that has passed so many in each."""
    return Wait(attempt=1, group=group, name=group, number=number, ranks=ranks, passed=passed, text="")


def test_a_circle_is_one_of_waits_that_were_not_over_when_they_were_written() -> None:
    a, b = a_wait("a", (0, 1)), a_wait("b", (0, 1))
    assert crossing({0: a, 1: b}, 0) == [0, 1]
    assert crossing({0: a, 1: b}, 1) == [1, 0]
    # Rank 1 had passed what rank 0 waited for: what rank 0 has written is old.
    assert crossing({0: a, 1: a_wait("b", (0, 1), a=1)}, 0) == []
    # Both have come to the same.
    assert crossing({0: a, 1: a}, 0) == []
    # The one that is waited for does not wait.
    assert crossing({0: a}, 0) == []
    # A rank that waits for a circle is in none.
    assert crossing({0: a, 1: b, 2: a_wait("c", (0, 2))}, 2) == []


def test_a_circle_goes_also_through_sends_and_receives() -> None:
    def a_transfer(channel: str, number: int, other: int, posted: dict[str, int] | None) -> Wait:
        base = a_wait("0", (other,), number)
        return replace(base, channel=channel, posted=posted)

    there, back = channel_of("0", 0, 1, 5), channel_of("0", 1, 0, 5)
    sends = a_transfer(there, 2, 1, {there: 2})
    assert crossing({0: sends, 1: a_transfer(back, 1, 0, {there: 1, back: 1})}, 0) == [0, 1]
    # Rank 1 had asked for the second: what rank 0 has written is old.
    assert crossing({0: sends, 1: a_transfer(back, 1, 0, {there: 2, back: 1})}, 0) == []
    # It may take it by a receive from any.
    assert crossing({0: sends, 1: a_transfer(back, 1, 0, {channel_of("0", None, 1, 5): 2})}, 0) == []
    # It has not said for what it has asked.
    assert crossing({0: sends, 1: a_transfer(back, 1, 0, None)}, 0) == []
    # It waits in a collective with rank 0.
    collective = replace(a_wait("1", (0, 1)), posted={})
    assert crossing({0: sends, 1: collective}, 1) == [1, 0]
