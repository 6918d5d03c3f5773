"""Errors about several ranks show the line of code that made each one's call."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Iterator

import pytest
from tests.support.gangs import RunningGang

import rankbridge
from rankbridge_server.cli import main


@pytest.fixture(scope="module", params=["fake4", "gloo4"])
def gang(request: pytest.FixtureRequest) -> Iterator[rankbridge.Gang]:
    """A gang of four real ranks, on each backend in turn."""
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description, timeout=20) as gang:
        yield gang


def line(after: int = 0) -> str:
    """A line of the caller's own, so many after this one."""
    frame = inspect.stack()[1]
    return f"{frame.filename}:{frame.lineno + after}"


def test_a_mismatch_shows_the_line_of_each_side(gang: rankbridge.Gang) -> None:
    identity, here, there = uuid.uuid4().hex, line(1), line(2)
    barriers = [gang[rank].start("barrier", operation_id=identity) for rank in (0, 1)]
    others = [gang[rank].start("all_gather_object", 1, operation_id=identity) for rank in (2, 3)]
    for started in [*barriers, *others]:
        error = started.exception()
        assert isinstance(error, rankbridge.MismatchError)
        assert [(it.ranks, it.contract.split()[0], it.site) for it in error.sides] == [
            ((0, 1), "barrier", here),
            ((2, 3), "all_gather_object", there),
        ]
        assert error.message.splitlines()[1].endswith(f"ranks 0-1: barrier at {here}")
        assert error.message.splitlines()[2].endswith(f" at {there}")


def test_a_line_that_all_share_is_said_once(gang: rankbridge.Gang) -> None:
    refs = [gang[rank].put([1.0] * (rank + 1)) for rank in range(4)]
    with pytest.raises(rankbridge.MismatchError) as caught:
        gang.all_reduce(refs)
    assert caught.value.message.splitlines()[0].endswith(f" on world at {line(-1)}")
    assert caught.value.message.count(__file__) == 1


def test_a_send_and_a_receive_that_differ_show_both_lines(gang: rankbridge.Gang) -> None:
    here, there = line(1), line(2)
    sent = gang[0].isend_object("text", dst_rank_in_group=1, tag=6)
    received = gang[1].irecv(tag=6, expected=("int8", 2))
    for work in (sent, received):
        with pytest.raises(rankbridge.MismatchError) as caught:
            work.wait()
        assert {it.ranks: it.site for it in caught.value.sides} == {(0,): here, (1,): there}


def test_a_coroutine_has_the_line_that_awaits_it(fake4: RunningGang) -> None:
    async def lines() -> list[str]:
        async with rankbridge.aconnect(fake4.description) as gang:
            refs = [await gang[rank].put([1.0] * (rank + 1)) for rank in range(4)]
            sites = [line(2)]
            try:
                await gang.all_reduce(refs)
            except rankbridge.MismatchError as awaited:
                sites += {it.site for it in awaited.sides}
            # The loop, and nobody's line, calls the coroutine of a task.
            task = asyncio.create_task(gang.all_reduce(refs))
            await asyncio.wait([task])
            error = task.exception()
            assert isinstance(error, rankbridge.MismatchError)
            return sites + list({it.site for it in error.sides})

    expected, awaited, alone = asyncio.run(lines())
    assert awaited == expected
    assert alone == ""


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("jobs/nightly.toml, step 3", "jobs/nightly.toml, step 3"),
        ("a\nMISMATCH\x1b[31m", "a\\nMISMATCH\\x1b[31m"),
        ("é" * 10_000 + ":7", "é" * 127 + ":7"),
    ],
    ids=["of another", "hostile", "long"],
)
def test_a_site_is_one_short_line_whatever_is_said(gang: rankbridge.Gang, said: str, kept: str) -> None:
    identity = uuid.uuid4().hex
    with rankbridge.at_site(said):
        started = [gang[rank].start("barrier", operation_id=identity) for rank in range(3)]
    # As a client that says none.
    with rankbridge.at_site(""):
        started.append(gang[3].start("all_gather_object", 1, operation_id=identity))
    error = started[0].exception()
    assert isinstance(error, rankbridge.MismatchError)
    assert [it.site for it in error.sides] == [kept, ""]
    assert len(error.message.splitlines()) == 3


def test_the_command_line_is_named_in_place_of_a_line(
    fake4: RunningGang, capsys: pytest.CaptureFixture[str]
) -> None:
    target = ["--endpoints", str(fake4.endpoints_file)]
    assert main(["call", "barrier", "--rank", "1", "--timeout", "1", *target]) != 0
    said = capsys.readouterr().err
    assert "PEER_MISSING in barrier #" in said
    assert " on world at rankbridge call: 1 of 4 ranks came, missing: ranks 0, 2-3" in said
