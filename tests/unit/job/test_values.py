"""Values as functions get and give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rankbridge_server.backends.torch_tensors import TORCH, TorchTensors
from rankbridge_server.job.values import Written, cloned, read

TENSORS = TorchTensors()


def there_and_back(value: object) -> Any:
    """What a function would get of what another gives, by value."""
    written = Written(value, None)
    return read(written.value, TENSORS, lambda ref_id: pytest.fail(ref_id))


@pytest.mark.parametrize(
    "value",
    [None, False, 0, -(2**63), 2**64, 1.5, "\u00fc", b"\x00", [], (), {}, [(1, {"a": None})], {1: 2, "1": 3}],
    ids=str,
)
def test_plain_values_come_back(value: object) -> None:
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)


def test_numpys_numbers_are_pythons() -> None:
    assert there_and_back([np.float32(1.5), np.int64(3), np.bool_(True)]) == [1.5, 3, True]
    assert there_and_back(np.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", TORCH.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_tensors_of_every_dtype_come_back(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.zeros(shape, dtype=torch.float32).to(dtype)
    found = there_and_back(tensor)
    assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
    assert found.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr() or not tensor.numel()


@pytest.mark.parametrize(
    "tensor",
    [torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag],
    ids=["conjugate", "negative"],
)
def test_a_tensor_that_is_to_be_changed_when_it_is_read_is_changed(tensor: torch.Tensor) -> None:
    found = there_and_back(tensor)
    assert found.tolist() == tensor.tolist()
    assert TENSORS.copied(tensor).is_conj() is TENSORS.copied(tensor).is_neg() is False  # type: ignore[attr-defined]


@pytest.mark.parametrize("copied", [TENSORS.copied, cloned], ids=["for refs", "for states"])
def test_a_view_becomes_a_tensor_of_its_own(copied: Callable[[torch.Tensor], Any]) -> None:
    whole = torch.arange(6.0).reshape(2, 3).requires_grad_()
    written = Written({"column": whole[:, 1]}, copied)
    (own,) = written.tensors
    assert own.is_contiguous()
    assert not own.requires_grad
    with torch.no_grad():
        whole.zero_()
    assert own.tolist() == [1.0, 4.0]
    assert written.value.map.entries[0].value.WhichOneof("kind") == "ref"
    assert [str(it) for it in written.specs] == ["float32[2]"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [1, {2}]}, r"set has no value at \['a'\]\[1\]"),
        (object(), "object has no value:"),
        ([torch.eye(2).to_sparse()], r"layout torch.sparse_coo has no value\[0\]"),
    ],
    ids=["set", "object", "sparse"],
)
def test_what_has_no_value_is_named_with_its_place(value: object, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Written(value, cloned)
