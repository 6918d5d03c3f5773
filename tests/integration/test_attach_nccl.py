"""A sidecar on NCCL beside a job. NCCL is a stand-in here, on tensors in host memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.foreign_jobs import job, torchrun

import rankbridge

SIZE = 2
WITHOUT = """
import torch.distributed as dist
import rankbridge_server
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
attachment = rankbridge_server.attach(backend="nccl")
try:
    attachment.wait(60)
except rankbridge_server.AttachError as error:
    print(error)
dist.barrier()
print("goes on")
"""


@pytest.mark.sampled
def test_controllers_calls_go_by_nccl_beside_the_jobs_own(tmp_path: Path) -> None:
    options = ["--line", "after", "--pause", "0.01", "--attach-backend", "nccl"]
    with job(tmp_path, torchrun(SIZE), [*options, "--nccl-on-cpu", str(tmp_path)]) as foreign:
        foreign.attached()
        with rankbridge.connect(foreign.endpoints_file) as gang:
            assert [it.backend for it in gang.status()] == ["nccl"] * SIZE
            refs = gang.put([np.full(3, rank + 1, np.float32) for rank in range(SIZE)])
            pair = gang.new_group("pair", range(SIZE)).name
            for group in ["world", pair] * 10:
                gang.barrier(group=group)
                sums = gang.get(gang.all_reduce(refs, group=group))
                np.testing.assert_array_equal(np.asarray(sums), [[3.0] * 3] * SIZE)
            taken = [it for it in gang.take("replica")["replica"] if it is not None]
            sums = gang.get(gang.all_reduce(taken))
            np.testing.assert_array_equal(np.asarray(sums), [[0.0, 2.0, 4.0, 6.0]] * SIZE)
            foreign.goes_on()
        foreign.goes_on()
        assert foreign.end() == 0


def test_without_a_device_the_job_goes_on_and_says_why_nobody_can_connect() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    reason, goes_on = done.stdout.splitlines()
    assert reason.startswith("NCCL did not connect: torch ")
    assert goes_on == "goes on"
