"""A sidecar on NCCL beside a job that uses the devices, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.support.devices import MEMBERS, device_of
from tests.support.foreign_jobs import job, torchrun

import rankbridge

pytestmark = pytest.mark.gpu


def test_controllers_calls_go_beside_the_jobs(tmp_path: Path) -> None:
    options = ["--line", "after", "--backend", "cpu:gloo,cuda:nccl", "--attach-backend", "nccl"]
    with job(tmp_path, torchrun(MEMBERS), options) as foreign:
        foreign.attached()
        with rankbridge.connect(foreign.endpoints_file, timeout=60) as gang:
            found = [(it.backend, it.device) for it in gang.status()]
            assert found == [("nccl", str(device_of(rank))) for rank in range(MEMBERS)]
            refs = gang.put([np.full(1000, rank, np.float32) for rank in range(MEMBERS)])
            for _ in range(20):
                sums = np.asarray([np.asarray(it) for it in gang.get(gang.all_reduce(refs))])
                np.testing.assert_array_equal(sums, np.full((MEMBERS, 1000), sum(range(MEMBERS))))
            # The job's tensors are on the CPU: they become refs on the devices.
            taken = [it for it in gang.take("replica")["replica"] if it is not None]
            assert len(gang.get(gang.all_reduce(taken))) == MEMBERS
            foreign.goes_on()
        assert foreign.end() == 0
