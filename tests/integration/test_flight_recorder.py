"""The record of a gang as dumps of torch's flight recorder, judged by torch's own tool, and by ours."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, RunningGang, up

import rankbridge
from rankbridge import Gang, GangError
from rankbridge_server.doctor.judge import judge
from rankbridge_server.doctor.verdict import Kind
from rankbridge_server.job.outside import dumps

SIZE = 4
JUDGE = """
import sys
from torch.distributed.flight_recorder.fr_trace import main
for folder in sys.argv[1:]:
    print("== of", folder, file=sys.stderr)
    main([folder])
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    with up(tmp_path_factory.mktemp("dumped"), SIZE, "fake", PATIENT) as gang:
        yield gang


def write(running: RunningGang, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        RANKBRIDGE,
        "record",
        "--endpoints",
        str(running.endpoints_file),
        "--flight-recorder",
        str(folder),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def call_everything(gang: Gang) -> None:
    refs = gang.put([np.ones((4, 3), np.float32)] * SIZE)
    for summed in (gang.all_reduce(refs), gang.reduce_scatter(refs, dim=0), gang.all_gather(refs)):
        gang.all_to_all(gang.put([np.ones(SIZE, np.int64)] * SIZE))
        gang.broadcast(summed, src_rank_in_group=1)
    gang.gather(refs)
    gang.scan(refs)
    gang.all_gather_object([{"rank": rank} for rank in range(SIZE)])
    gang.barrier()


@pytest.mark.sampled
def test_torchs_tool_says_of_a_healthy_gang_nothing_and_of_others_what_is_wrong(
    running: RunningGang, tmp_path: Path
) -> None:
    healthy, broken = tmp_path / "healthy", tmp_path / "broken"
    with rankbridge.connect(running.description, timeout=30.0) as gang:
        call_everything(gang)
        assert write(running, healthy).returncode == 0
        shapes = gang.new_group("shapes", range(SIZE))
        gang.barrier(group=shapes)
        with pytest.raises(GangError):
            gang.all_reduce(
                gang.put([np.ones(2 + (rank == 3), np.float32) for rank in range(SIZE)], group=shapes),
                group=shapes,
            )
        absent = gang.new_group("absent", [3, 1, 2])
        gang.barrier(group=absent)
        # Without an id: what is of one operation shows in their times.
        waiting = [gang[rank].start("barrier", group=absent, timeout=2.0) for rank in (1, 3)]
        for it in waiting:
            with pytest.raises(rankbridge.PeerMissingError):
                it.result()
        assert write(running, broken).returncode == 0
    refused = write(running, broken)
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr
    judged = subprocess.run(
        [sys.executable, "-c", JUDGE, str(healthy), str(broken)], capture_output=True, text=True, timeout=120
    )
    assert judged.returncode == 0, judged.stderr
    of_healthy, of_broken = judged.stderr.split("== of ")[1:]
    assert of_healthy == f"{healthy}\n"
    of_shapes, of_absent = of_broken.split("Not all ranks joining collective, sequence number: 2")
    # Which side it calls the culprit is up to the file that it reads first.
    assert "Collective sequence number: 2 has errors" in of_shapes
    assert "group info: shapes:shapes\ncollective: gloo:all_reduce" in of_shapes
    assert re.search("Culprit rank [0-3]; Error type: SIZE_OR_SYNTAX_MISMATCH", of_shapes)
    assert "group info: absent:absent\ncollective: gloo:barrier\nmissing ranks: {2}\n" in of_absent
    assert re.search(r"barrier at \S+test_flight_recorder\.py:\d+\n$", of_absent)
    assert judge(dumps.collect(healthy)).kind is Kind.HEALTHY
    verdict = judge(dumps.collect(broken))
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.MISMATCH_SHAPE, [3])
