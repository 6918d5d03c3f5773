"""docs/torchrun.md: its command forms a gang, and a rank that is lost is what the page says."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.support.waiting import until

import rankbridge

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "torchrun.md").read_text()
BIN = Path(sys.executable).parent


@pytest.fixture
def torchrun(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """The command of the page. It runs in a folder of its own, and beside other jobs on this host."""
    (command,) = re.findall(r"<!-- command: begin -->\n```sh\n(.*?)\n```", PAGE, re.DOTALL)
    words = [
        *command.split()[:1],
        *("--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"),
        *command.split()[1:],
    ]
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    with subprocess.Popen(
        words, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def ready(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert any(line.startswith("ready: 2 ranks") for line in process.stdout)


def summed(gang: rankbridge.Gang) -> list[list[float]]:
    refs = gang.put([np.array([1.0, rank], np.float32) for rank in range(2)])
    return [np.asarray(it).tolist() for it in gang.get(gang.all_reduce(refs))]


@pytest.mark.sampled
def test_a_lost_rank_takes_all_along_and_they_are_started_again(
    torchrun: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    ready(torchrun)
    with rankbridge.connect(tmp_path / "endpoints.json", timeout=20) as gang:
        assert summed(gang) == [[2.0, 1.0]] * 2
        before = [status.pid for status in gang.status()]
        held = gang[0].start("barrier")
        # A call that comes after the loss fails because the generation is over.
        until(lambda: gang[0].status().pending_operations == 1)
        os.kill(before[1], signal.SIGKILL)
        with pytest.raises((rankbridge.PeerLostError, rankbridge.UnavailableError)):
            held.result()
    ready(torchrun)
    with rankbridge.connect(tmp_path / "endpoints.json") as gang:
        assert summed(gang) == [[2.0, 1.0]] * 2
        assert not {status.pid for status in gang.status()} & set(before)
        assert {status.generation for status in gang.status()} == {1}
