from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankbridge import InvalidArgumentError, Tensor, UnsupportedDtypeError
from rankbridge._plan.dtypes import DTYPES, dtype_of
from rankbridge._plan.tensor import as_tensor

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 3)])
def test_every_dtype_goes_in_and_comes_out_bit_for_bit(name: str, shape: tuple[int, ...]) -> None:
    dtype = getattr(torch, name)
    count = int(np.prod(shape)) * DTYPES[name].itemsize
    data = bytes(count) if name == "bool" else bytes(range(1, count + 1))
    made = Tensor(name, shape, data).torch()
    assert (made.dtype, tuple(made.shape)) == (dtype, shape)
    assert as_tensor(made) == Tensor(name, shape, data)
    assert dtype_of(dtype).name == name


def test_any_strides_are_made_contiguous() -> None:
    base = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
    for strided in (
        base.permute(2, 0, 1),
        base[:, ::2, 1::2],
        base[0, 0].expand(3, 4),
        base[1, 1:2, ::3][:, 1:],
    ):
        assert as_tensor(strided).numpy().tolist() == strided.tolist()


def test_lazy_conjugates_and_negatives_are_resolved() -> None:
    value = torch.tensor([1 + 2j, 3 - 4j])
    assert as_tensor(value.conj()).numpy().tolist() == [1 - 2j, 3 + 4j]
    assert as_tensor(value.conj().imag).numpy().tolist() == [-2.0, 4.0]


def test_parameters_travel_without_their_gradient() -> None:
    assert as_tensor(torch.nn.Parameter(torch.ones(2))).numpy().tolist() == [1, 1]


def test_contiguous_elements_are_not_copied_either_way() -> None:
    value = torch.zeros(4)
    tensor = as_tensor(value)
    value[1] = 1
    assert tensor.numpy().tolist() == [0, 1, 0, 0]
    assert tensor.torch().data_ptr() == value.data_ptr()


def test_read_only_bytes_are_copied_for_torch() -> None:
    tensor = Tensor("uint8", (2,), b"ab")
    tensor.torch()[0] = 0
    assert bytes(tensor.data) == b"ab"


def test_tensors_without_plain_elements_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="meta"):
        as_tensor(torch.empty(2, device="meta"))
    with pytest.raises(InvalidArgumentError, match="strided"):
        as_tensor(torch.eye(2).to_sparse())
    with pytest.raises(UnsupportedDtypeError):
        as_tensor(torch.empty(2, dtype=torch.bits8))
