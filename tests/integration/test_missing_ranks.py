"""Errors about missing ranks say what these do instead."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.gangs import RunningGang, up
from tests.support.missing import missing, once_all_say
from tests.support.processes import stop
from tests.support.waiting import until

import rankbridge
from rankbridge import Activity, CallCancelledError, PeerMissingError, RankBridgeError


@pytest.fixture(scope="module", params=["fake4", "gloo4"])
def gang(request: pytest.FixtureRequest) -> Iterator[rankbridge.Gang]:
    """A gang of four real ranks, on each backend in turn."""
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description, timeout=20) as gang:
        yield gang


def barrier_without(gang: rankbridge.Gang, absent: int) -> RankBridgeError | None:
    """The error of the first rank that comes to a barrier to which one does not."""
    *others, last = (rank for rank in range(len(gang)) if rank != absent)

    def fail() -> RankBridgeError | None:
        identity = uuid.uuid4().hex
        started = [gang[rank].start("barrier", operation_id=identity) for rank in others]
        # Who has the short timeout comes last, so that nobody else is missing.
        until(lambda: arrived(gang, identity) == set(others))
        started.append(gang[last].start("barrier", operation_id=identity, timeout=1.0))
        errors = [it.exception() for it in started]
        assert all(str(it) == str(errors[0]) for it in errors)
        return errors[0]

    return once_all_say(fail)


def arrived(gang: rankbridge.Gang, identity: str) -> set[int]:
    """Who has come to an operation of the world."""
    return {rank for it in gang[0].pending().admissions if it.operation_id == identity for rank in it.arrived}


def receive_fails(gang: rankbridge.Gang, rank: int, **options: Any) -> RankBridgeError | None:
    """The error of a receive to which nobody comes."""

    def fail() -> RankBridgeError | None:
        with pytest.raises(PeerMissingError) as caught:
            gang[rank].recv_object(tag=7, timeout=1.0, **options)
        return caught.value

    return once_all_say(fail)


@pytest.mark.parametrize("absent", [0, 3], ids=["the leader", "another"])
def test_a_rank_without_a_call_is_idle(gang: rankbridge.Gang, absent: int) -> None:
    gang.barrier()
    error = barrier_without(gang, absent)
    (activity,) = missing(error).values()
    assert (activity.doing, activity.group, activity.operation) == ("idle", "", "")
    assert 150 < activity.for_ms < 60_000
    assert f"rank {absent}:" in str(error)
    assert f"has not come: it has no call, for {activity.for_ms / 1000:.1f} s" in str(error)


def test_a_rank_that_waits_elsewhere_is_shown_there_with_its_line(gang: rankbridge.Gang) -> None:
    pair = gang.new_group(f"pair-{uuid.uuid4().hex}", [3, 2])
    elsewhere = gang[3].start("barrier", group=pair, operation_id="elsewhere" + pair.name)
    until(lambda: any(it.phase == "admission" for it in gang[3].pending().operations))
    error = barrier_without(gang, 3)
    assert gang[3].cancel("elsewhere" + pair.name)
    assert isinstance(elsewhere.exception(), CallCancelledError)
    (activity,) = missing(error).values()
    assert (activity.doing, activity.group, activity.operation) == ("waiting", pair.name, "barrier")
    assert activity.operation_id == "elsewhere" + pair.name
    assert activity.site.startswith(f"{__file__}:")
    assert f"has not come: it waits in barrier on {pair.name}, for " in str(error)
    assert str(error).count(f" at {activity.site}") == 1
    gang.destroy_group(pair)


def test_a_receive_from_anyone_names_those_who_have_sent_nothing(gang: rankbridge.Gang) -> None:
    # Another tag: it has sent, and not that.
    sent = gang[0].isend_object("other", dst_rank_in_group=2, tag=8)
    until(lambda: [it.phase for it in gang[0].pending().operations] == ["admission"])
    error = receive_fails(gang, 2)
    assert gang[2].recv_object(tag=8) == ("other", 0)
    sent.wait()
    found = missing(error)
    assert {rank: (it.doing, it.operation) for rank, it in found.items()} == {
        0: ("waiting", "send_object"),
        1: ("idle", ""),
        3: ("idle", ""),
    }
    assert error is not None
    assert [it.ranks for it in error.sides] == [(2,)]
    headline, mine, *theirs = [line.partition(":")[::2] for line in error.message.splitlines()]
    assert headline == ("PEER_MISSING in recv_object on world", " nobody came")
    assert mine[0] == "  rank 2"
    assert mine[1].strip().startswith(f"receive of object from any tag=7 at {__file__}:")
    # Of those that are idle, one may be so for longer.
    assert theirs[0][0] == "  rank 0"
    assert theirs[0][1].strip().startswith("has not come: it waits in send_object on world, for ")
    assert all(" it has no call, for " in said for _, said in theirs[1:])


def test_a_receive_from_one_says_what_that_one_does(gang: rankbridge.Gang) -> None:
    error = receive_fails(gang, 0, src_rank_in_group=1)
    assert "PEER_MISSING in recv_object on world: rank 1 did not come" in str(error)
    assert {rank: activity.doing for rank, activity in missing(error).items()} == {1: "idle"}


def test_a_stopped_rank_is_said_to_be_stopped(tmp_path: Path) -> None:
    # No sign of life is missed meanwhile.
    options = ["--heartbeat-interval", "20"]
    with (
        up(tmp_path, 2, options=options) as running,
        rankbridge.connect(running.description) as gang,
    ):
        gang.barrier()
        stop(running.pids[1])
        try:
            error = barrier_without(gang, 1)
        finally:
            os.kill(running.pids[1], signal.SIGCONT)
        (activity,) = missing(error).values()
        assert activity == Activity(doing="stopped")
        assert "  rank 1: has not come: its process is stopped" in str(error).splitlines()
        gang.barrier()
