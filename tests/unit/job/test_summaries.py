"""What is said of a tensor without moving it."""

from __future__ import annotations

import pytest
import torch

from rankbridge_server.backends.torch_tensors import TORCH
from rankbridge_server.job import summaries
from rankbridge_server.job.summaries import difference_of, summary_of

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


@pytest.mark.parametrize("dtype", TORCH.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)], ids=str)
def test_tensors_of_every_dtype_have_a_summary_and_a_difference(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    tensor = torch.ones(shape).to(dtype)
    said = summary_of(tensor)
    assert said == summary_of(tensor.clone())
    assert (said.shape, said.dtype) == (shape, str(dtype).removeprefix("torch."))
    if tensor.numel():
        assert (said.min, said.max, said.mean) == (1.0, 1.0, 1.0)
        assert said.norm == pytest.approx(tensor.numel() ** 0.5)
        other = torch.zeros(shape).to(dtype)
        assert summary_of(other).hash != said.hash
        difference = difference_of(tensor, other)
        assert (difference.elements, difference.first, difference.most) == (tensor.numel(), 0, 1.0)
    else:
        assert (said.norm, said.min, said.mean) == (None, None, None)
    assert difference_of(tensor, tensor.clone()).elements == 0


def test_what_is_no_number_is_counted_and_left_out() -> None:
    tensor = torch.tensor([3.0, float("nan"), float("inf"), -float("inf"), -4.0])
    said = summary_of(tensor)
    assert (said.nans, said.infs, said.min, said.max, said.mean, said.norm) == (1, 2, -4.0, 3.0, -0.5, 5.0)
    assert summary_of(torch.tensor([float("nan")])).norm is None


def test_strides_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "_BLOCK", 4)
    whole = torch.arange(35.0).reshape(5, 7)
    assert summary_of(whole.T) == summary_of(whole.T.contiguous())
    assert summary_of(whole).norm == pytest.approx(float(whole.norm()))
    other = whole.clone()
    other[3, 1] -= 2.5
    other[4, 6] = float("nan")
    assert difference_of(whole, other) == summaries.Difference(elements=2, first=22, most=2.5)


def test_dtype_and_shape_are_part_of_the_hash() -> None:
    hashes = [
        summary_of(it).hash
        for it in (torch.zeros(4), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32), torch.zeros(3))
    ]
    assert len(set(hashes)) == 4


def test_large_integers_are_compared_exactly() -> None:
    one, other = torch.tensor([2**60]), torch.tensor([2**60 + 1])
    assert difference_of(one, other).elements == 1
    assert summary_of(one).hash != summary_of(other).hash
