"""NCCL beside a job: its groups are set as ours are, and nothing of the job's process is changed for long."""

from __future__ import annotations

import os

import pytest
import torch
from torch._C import _distributed_c10d as c10d

from rankbridge_server.backends.nccl import engine_beside_job
from rankbridge_server.backends.nccl.engine import GROUP_SETTINGS
from rankbridge_server.backends.nccl.stores import ReadingStore
from rankbridge_server.core.errors import BridgeError


class Properties:
    uuid = "2f6e5b2a"
    total_memory = 2**37


class TorchsGroup:
    """Keeps the environment in which it was made."""

    class Options:
        pass

    def __init__(self, *given: object) -> None:
        self.environment = dict(os.environ)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that has two devices."""
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(c10d, "ProcessGroupNCCL", TorchsGroup, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: object())
    monkeypatch.delenv("TORCH_NCCL_USE_COMM_NONBLOCKING", raising=False)


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize(("index", "local_rank", "device"), [(None, 3, "cuda:1"), (0, 1, "cuda:0")])
def test_it_is_on_the_jobs_device(index: int | None, local_rank: int, device: str) -> None:
    engine = engine_beside_job(index, local_rank, 4)
    assert (str(engine.device), engine.tensors.device) == (device, device)


@pytest.mark.usefixtures("devices")
def test_only_its_own_groups_have_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_NCCL_BLOCKING_WAIT", "0")
    monkeypatch.delenv("TORCH_NCCL_ENABLE_MONITORING", raising=False)
    before = dict(os.environ)
    engine = engine_beside_job(None, 0, 2)
    assert dict(os.environ) == before
    group = engine.group(ReadingStore(), 0, 2)
    assert isinstance(group, TorchsGroup)
    assert group.environment == {**before, **GROUP_SETTINGS}
    assert dict(os.environ) == before


@pytest.mark.usefixtures("devices")
def test_nothing_is_captured() -> None:
    assert engine_beside_job(None, 0, 2).side().graph() is None


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize(
    ("nonblocking", "size", "says"),
    [("1", 2, "the job sets TORCH_NCCL_USE_COMM_NONBLOCKING"), ("0", 129, "the job has too many ranks")],
)
def test_a_job_with_which_groups_would_not_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, nonblocking: str, size: int, says: str
) -> None:
    monkeypatch.setenv("TORCH_NCCL_USE_COMM_NONBLOCKING", nonblocking)
    with pytest.raises(BridgeError, match=says):
        engine_beside_job(None, 0, size)
