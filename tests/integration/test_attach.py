"""A sidecar beside a job that torchrun has started: controllers call it, and are never in the job's way."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.foreign_jobs import Job, job, torchrun
from tests.support.missing import missing, once_all_say
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang
from rankbridge.errors import RankBridgeError

SIZE = 4


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A job of four ranks with groups of all kinds. Tests leave it as it is: attached, and running."""
    directory = tmp_path_factory.mktemp("foreign")
    with job(directory, torchrun(SIZE), ["--line", "after", "--groups", "--pause", "0.01"]) as it:
        it.attached()
        # It names its tensors before its first step.
        it.goes_on()
        yield it


@pytest.fixture
def gang(foreign: Job) -> Iterator[Gang]:
    with rankbridge.connect(foreign.endpoints_file) as it:
        yield it


def results(gang: Gang, values: Any) -> list[Any]:
    return [np.asarray(it).tolist() for it in gang.get(values)]


def works(gang: Gang) -> bool:
    gang.barrier()
    refs = gang.put([np.full(3, rank, np.float32) for rank in range(SIZE)])
    return results(gang, gang.all_reduce(refs)) == [[6.0] * 3] * SIZE


def test_of_a_missing_rank_it_is_said_where_its_script_is(gang: Gang) -> None:
    error = once_all_say(lambda: gang[0].start("barrier", timeout=1.0).exception())
    activities = missing(error).values()
    assert [it.doing for it in activities] == ["idle"] * (SIZE - 1)
    assert all(re.fullmatch(r"foreign_job\.py:\d+ in \w+", it.where) for it in activities)
    assert re.search(r"it has no call, for [\d.]+ s; its script is at foreign_job\.py:\d+ in ", str(error))


def test_a_jobs_groups_are_found_by_name(gang: Gang) -> None:
    assert {it.name: it.ranks for it in gang.groups() if it.name != "late"} == {
        "world": (0, 1, 2, 3),
        "ends": (0, 3),
        "group_2": (0, 1, 2),
        "dp/0": (0, 2),
        "dp/1": (1, 3),
        "tp/0": (0, 1),
        "tp/1": (2, 3),
        "pp/0": (0, 3),
        "pp/1": (1, 2),
    }


def test_a_controllers_calls_go_beside_the_jobs(foreign: Job, gang: Gang) -> None:
    refs = gang.put([np.full(2, rank, np.float32) for rank in range(SIZE)])
    for _ in range(20):
        gang.barrier()
        assert results(gang, gang.all_reduce(refs)) == [[6.0, 6.0]] * SIZE
        gathered = results(gang, gang.all_gather(refs))
        assert (
            gathered == [[[float(rank)] * 2 for rank in range(SIZE)]] * SIZE
            or gathered == [[float(rank) for rank in range(SIZE) for _ in range(2)]] * SIZE
        )
    gang.barrier(group="tp/1")
    foreign.goes_on()


def test_a_jobs_tensors_are_found_and_the_replica_that_differs_too(foreign: Job, gang: Gang) -> None:
    assert list(gang.named()) == [
        "model.0.bias",
        "model.0.weight",
        "model.2.bias",
        "model.2.weight",
        "replica",
    ]
    (found,) = gang.compare("replica")
    assert (found.reference, list(found.differing)) == (0, [2])
    difference = found.differing[2]
    assert difference is not None
    assert (difference.elements, difference.first, difference.most) == (1, 2, 0.25)
    (summaries,) = gang.summary("model.0.weight").values()
    assert all(it is not None and it.shape == (32, 16) and it.nans == 0 for it in summaries)
    taken = [it for it in gang.take("model.0.bias")["model.0.bias"] if it is not None]
    assert np.array(gang.get(gang.all_gather(taken, layout="stacked"))[0]).shape == (SIZE, 32)
    assert all(step > 0 for step in gang.call("step"))
    foreign.goes_on()


def test_garbage_on_its_ports_does_not_harm_the_job(foreign: Job, gang: Gang) -> None:
    for status in gang.status():
        path, tcp = status.endpoints
        host, port = tcp.split(":")
        sockets = Path(path.removeprefix("unix:")).parent
        targets: list[Any] = [(host, int(port)), *map(str, sockets.glob("*-*"))]
        for target in targets:
            with socket.socket(socket.AF_UNIX if isinstance(target, str) else socket.AF_INET) as stranger:
                stranger.connect(target)
                stranger.sendall(os.urandom(4096))
    foreign.goes_on()
    assert works(gang)


def controller(foreign: Job, does: str) -> subprocess.Popen[str]:
    """Another controller, which prints a line before it does something, and then does it for ever."""
    program = f"""
import numpy as np, rankbridge
gang = rankbridge.connect({str(foreign.endpoints_file)!r})
big = gang.put([np.ones(1 << 22, np.float32)] * {SIZE})
print("begins", flush=True)
while True:
    {does}
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


@pytest.mark.parametrize(
    ("does", "how"),
    [
        ("gang.release(gang.all_reduce(big))", signal.SIGKILL),
        ("gang.release(gang.all_reduce(big))", signal.SIGSTOP),
        ("gang.get(big)", signal.SIGSTOP),
        ("gang[1].barrier()", signal.SIGKILL),
    ],
)
def test_a_controller_that_dies_or_stops_in_a_call_does_not_harm_the_job(
    foreign: Job, gang: Gang, does: str, how: signal.Signals
) -> None:
    with controller(foreign, does) as process:
        foreign.goes_on()
        os.kill(process.pid, how)
        try:
            foreign.goes_on()
            gang.barrier(group="dp/0")
        finally:
            process.kill()
    foreign.goes_on()


def test_a_group_that_the_job_makes_later_is_found(foreign: Job, gang: Gang) -> None:
    generation = gang.status()[0].generation
    if "late" not in {it.name for it in gang.groups()}:
        foreign.do("group", SIZE)
    # Its members know it one after another.
    until(lambda: all("late" in {it.name for it in gang[rank].status().groups} for rank in (1, SIZE - 1)))
    gang.barrier(group="late")
    # Nobody's calls were ended for it.
    assert gang.status()[0].generation == generation


def test_a_job_detaches_and_attaches_again(foreign: Job) -> None:
    with rankbridge.connect(foreign.endpoints_file) as gang:
        assert works(gang)
        foreign.do("detach", SIZE)
        with pytest.raises(RankBridgeError):
            gang.barrier()
    assert not foreign.endpoints_file.exists()
    foreign.goes_on()
    foreign.do("attach", SIZE)
    until(foreign.endpoints_file.exists)
    with rankbridge.connect(foreign.endpoints_file) as again:
        assert works(again)
        again.barrier(group="ends")
    foreign.goes_on()
