"""Tensors of a job by name."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn

from rankbridge_server.job.named import NamedTensors


class Tied(nn.Module):
    """Two layers with one weight, and buffers, of which one is not in the state dict."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("cache", torch.zeros(3), persistent=False)


def names(tensors: NamedTensors, pattern: str = "*") -> list[str]:
    return [it.name for it in tensors.find(pattern)]


def test_parameters_and_buffers_of_a_module_have_its_names() -> None:
    tensors = NamedTensors()
    tensors.expose("model", Tied())
    assert names(tensors) == [
        "model.first.weight",
        "model.first.bias",
        "model.second.weight",
        "model.seen",
        "model.cache",
    ]
    assert names(tensors, "model.*.weight") == ["model.first.weight", "model.second.weight"]
    assert names(tensors, "model.[fs]*.bias") == ["model.first.bias"]
    assert names(tensors, "MODEL.*") == []


def test_a_state_dict_is_walked_to_its_tensors() -> None:
    parameter = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(2)
    optimizer.step()
    tensors = NamedTensors()
    tensors.expose("optimizer", optimizer.state_dict())
    assert names(tensors) == [
        "optimizer.state.0.step",
        "optimizer.state.0.exp_avg",
        "optimizer.state.0.exp_avg_sq",
    ]
    tensors.expose("nested", OrderedDict(a=[torch.ones(1), {"b": torch.ones(1)}, "text"]))
    assert names(tensors, "nested.*") == ["nested.a.0", "nested.a.1.b"]


def test_what_a_job_puts_in_the_place_of_a_tensor_is_found() -> None:
    state = {"it": torch.zeros(1)}
    tensors = NamedTensors()
    tensors.expose("state", state)
    state["it"], state["other"] = torch.ones(2, dtype=torch.bfloat16), torch.ones(1)
    found = tensors.get("state.it")
    assert (found.dtype, found.shape, found.device, found.writable) == ("bfloat16", (2,), "cpu", False)
    assert found.tensor is state["it"]
    assert names(tensors) == ["state.it", "state.other"]


def test_a_single_tensor_has_the_name_itself_and_is_writable_if_the_job_says_so() -> None:
    tensors = NamedTensors()
    tensors.expose("loss", torch.tensor(1.0), writable=True)
    assert tensors.get("loss").writable
    tensors.forget("loss")
    assert names(tensors) == []


def test_a_name_that_is_not_there_says_which_are() -> None:
    tensors = NamedTensors()
    tensors.expose("model", Tied())
    with pytest.raises(KeyError, match=r"there are model\.first\.bias"):
        tensors.get("model.third.bias")
    with pytest.raises(KeyError, match="there are none"):
        NamedTensors().get("it")


@pytest.mark.parametrize("name", ["", "a.b", "a*", "a b"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a name is"):
        NamedTensors().expose(name, torch.ones(1))


def test_what_has_no_tensors_is_refused() -> None:
    with pytest.raises(TypeError, match="not a int"):
        NamedTensors().expose("it", 3)


def test_a_mapping_that_contains_itself_ends() -> None:
    state: dict[str, object] = {"it": torch.ones(1)}
    state["self"] = state
    tensors = NamedTensors()
    tensors.expose("state", state)
    assert names(tensors)[0] == "state.it"
