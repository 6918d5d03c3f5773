"""The modules of a job that names none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import HashStore
from torch.nn.parallel import DistributedDataParallel

from rankbridge_server.job.found_modules import FoundModules
from rankbridge_server.job.named import NamedTensors


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script of this process, without variables."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


@pytest.fixture
def job() -> Iterator[None]:
    """A job of one rank, in which modules can be wrapped."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def found() -> Iterator[FoundModules]:
    it = FoundModules()
    handle = it.watch()
    yield it
    handle.remove()


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")
def test_a_compiled_module_has_the_names_of_what_was_compiled(
    script: ModuleType, found: FoundModules
) -> None:
    model = nn.Linear(2, 2)
    script.__dict__["model"] = torch.compile(model)
    assert found.by_name() == {"model": model}


def test_variables_of_the_script_are_found_by_their_names(script: ModuleType, found: FoundModules) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    script.__dict__.update(
        model=model, same=model, layer=model[0], other=nn.Linear(1, 1), _hidden=nn.ReLU(), n=3
    )
    assert found.by_name() == {"model": model, "other": script.other}
    del script.model
    assert found.by_name() == {"same": model, "other": script.other}


def test_what_is_wrapped_is_found_without_its_wrapper_and_forgotten_with_the_job(
    script: ModuleType, found: FoundModules, job: None
) -> None:
    script.__dict__["ddp"] = ddp = DistributedDataParallel(nn.Linear(2, 2))
    first, second = (DistributedDataParallel(nn.Bilinear(1, 1, 1)) for _ in range(2))
    assert found.by_name() == {
        "ddp": ddp.module,
        "Bilinear": first.module,
        "Bilinear_1": second.module,
    }
    kept = second.module
    del first, second
    assert found.by_name() == {"ddp": ddp.module, "Bilinear": kept}


def test_nothing_is_looked_for_where_something_is_named() -> None:
    tensors = NamedTensors()
    tensors.otherwise(lambda: {"found": nn.Linear(1, 1)})
    assert [(it.name, it.writable) for it in tensors.find("*.bias")] == [("found.bias", False)]
    tensors.expose("named", nn.Linear(1, 1))
    assert [it.name for it in tensors.find("*.bias")] == ["named.bias"]
