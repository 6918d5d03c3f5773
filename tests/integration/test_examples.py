"""The Python and Node parts of the examples of the Elixir client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import node_project
from tests.support.gangs import up

import rankbridge

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "elixir_client" / "examples"
SIZE = 4
# A loaded machine is not to lose ranks by itself.
PATIENCE = ["--heartbeat-misses", "300"]


@pytest.mark.sampled
def test_a_training_that_loses_a_rank_has_the_weights_of_one_under_torchrun(tmp_path: Path) -> None:
    folder, size = EXAMPLES / "transformer" / "priv", 2
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    options = ["--load", str(folder / "app.py"), "--preload", "torch._dynamo", *PATIENCE]
    with subprocess.Popen(
        [*torchrun, str(folder / "train.py"), "--steps", "8"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        text=True,
    ) as plain:
        with (
            up(tmp_path, size, "gloo", options) as running,
            rankbridge.connect(running.description, timeout=120.0) as gang,
        ):
            gang.call("train", 3)
            os.kill(gang[1].status().pid, signal.SIGKILL)
            gang.form()
            call = gang.function("train").start(to=8)
            steps = [(it.rank, it.value["step"]) for it in call.reports()]
            assert sorted(steps) == [(rank, step) for rank in range(size) for step in range(4, 9)]
            digests = call.result()
            assert gang[0].call("sample", "Alice ", 5).startswith("Alice ")
        printed, _ = plain.communicate(timeout=240)
    assert digests == [json.loads(printed)["digest"]] * size


@pytest.mark.sampled
def test_node_gets_every_answer_of_a_model_on_four_ranks_of_which_one_is_lost(tmp_path: Path) -> None:
    folder = EXAMPLES / "tensor_parallel"
    project = node_project.install(folder / "node")
    with (
        up(tmp_path, SIZE, "gloo", ["--load", str(folder / "priv" / "app.py"), *PATIENCE]) as running,
        rankbridge.connect(running.description, timeout=120.0) as gang,
        # Long texts: on a busy machine the rank is killed a while after a quarter of them is there.
        subprocess.Popen(
            ["node", "ask.mjs", str(ROOT / "proto"), running.endpoints_file, "20", "24"],
            cwd=project,
            stdout=subprocess.PIPE,
            text=True,
        ) as node,
    ):
        assert node.stdout is not None
        victim = gang[2].status().pid
        assert node.stdout.readline() == "Node: 5 of 20 answers\n"
        os.kill(victim, signal.SIGKILL)
        gang.form()
        printed = node.stdout.read()
        assert node.wait(120) == 0
    lines = printed.splitlines()
    assert lines[-1] == "Node: all are what one rank with all weights answers"
    assert "rank 2 is lost" in lines[-2]
    assert lines[-3].startswith("Node: 20 answers in ")
    assert not lines[-3].endswith(" 0 cut off and asked again")
