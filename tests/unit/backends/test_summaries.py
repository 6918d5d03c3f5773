"""Summaries of tensors of all kinds, against what numpy and Python say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rankbridge_server.backends import summaries
from rankbridge_server.backends.summaries import Difference, NoSummary, difference_of, summarize
from rankbridge_server.backends.torch_tensors import TORCH

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("dtype", [*FLOATS, *FLOAT8, *SIGNED], ids=str)
def test_numbers_of_every_signed_dtype(dtype: torch.dtype) -> None:
    found = summarize(torch.tensor([3.0, -4.0, 0.0, 2.0]).to(dtype))
    assert (found.least, found.most, found.mean) == (-4, 3, 0.25)
    assert found.norm == pytest.approx(math.sqrt(29), rel=1e-12)
    assert (found.nans, found.infs, found.shape) == (0, 0, (4,))
    assert found.dtype == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
def test_numbers_of_every_unsigned_dtype(dtype: torch.dtype) -> None:
    found = summarize(torch.tensor([3, 4, 0, 5]).to(dtype))
    assert (found.least, found.most, found.mean, found.nans) == (0, 5, 3.0, 0)
    assert found.norm == pytest.approx(math.sqrt(50), rel=1e-12)


def test_powers_of_two_alone() -> None:
    found = summarize(torch.tensor([0.5, 2.0, 4.0]).to(torch.float8_e8m0fnu))
    assert (found.least, found.most) == (0.5, 4.0)


def test_extremes_of_whole_numbers_are_exact() -> None:
    info = torch.iinfo(torch.int64)
    found = summarize(torch.tensor([info.min, info.max, info.max - 1]))
    assert (found.least, found.most) == (info.min, info.max)
    beyond = summarize(torch.from_numpy(np.array([1, 2**64 - 1], np.uint64)))
    assert beyond.most == pytest.approx(2.0**64)


def test_truths_are_zeros_and_ones() -> None:
    found = summarize(torch.tensor([True, False, True, True]))
    assert (found.least, found.most, found.mean) == (0, 1, 0.75)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_numbers_count_by_their_absolute_values(dtype: torch.dtype) -> None:
    values = torch.tensor([3 + 4j, 0, complex(math.nan, math.inf), complex(math.inf, 0)], dtype=dtype)
    found = summarize(values)
    assert (found.norm, found.least, found.most, found.mean) == (5.0, 0.0, 5.0, 2.5)
    assert (found.nans, found.infs) == (1, 1)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float8_e5m2], ids=str)
def test_what_is_not_finite_is_counted_and_left_out(dtype: torch.dtype) -> None:
    found = summarize(torch.tensor([math.nan, 1.0, math.inf, -math.inf, 3.0, math.nan]).to(dtype))
    assert (found.nans, found.infs) == (2, 2)
    assert (found.least, found.most, found.mean) == (1.0, 3.0, 2.0)


def test_without_any_finite_element_there_is_no_mean() -> None:
    found = summarize(torch.tensor([math.nan, math.inf]))
    assert (found.norm, found.least, found.most, found.mean) == (0.0, None, None, None)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_an_empty_tensor(shape: tuple[int, ...]) -> None:
    found = summarize(torch.empty(shape))
    assert (found.norm, found.least, found.mean, found.shape) == (0.0, None, None, shape)


def test_a_tensor_without_dimensions() -> None:
    found = summarize(torch.tensor(-2.5))
    assert (found.norm, found.least, found.most, found.mean, found.shape) == (2.5, -2.5, -2.5, -2.5, ())


def test_strides_do_not_matter() -> None:
    values = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    for view in (values.t(), values[:, ::2], values[0].expand(3, 6), values.flip(0)):
        assert summarize(view) == summarize(view.clone(memory_format=torch.contiguous_format))
    numbers = torch.tensor([[1 + 2j, 3 - 1j]])
    assert summarize(numbers.conj()) == summarize(numbers.conj().resolve_conj())


def test_the_digest_tells_bits_dtypes_and_shapes_apart() -> None:
    tensors = [
        torch.zeros(4),
        torch.tensor([0.0, 0.0, 0.0, -0.0]),
        torch.zeros(2, 2),
        torch.zeros(4, dtype=torch.int32),
        torch.zeros(5),
        torch.tensor([0.0, 0.0, 0.0, math.nan]),
    ]
    digests = [summarize(it).digest for it in tensors]
    assert len(set(digests)) == len(tensors)
    assert all(len(it) == 32 for it in digests)
    assert digests[0] == summarize(torch.zeros(4)).digest


def test_many_parts_are_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    whole = summarize(values)
    monkeypatch.setattr(summaries, "_CHUNK", 7)
    parts = summarize(values)
    assert (parts.digest, parts.least, parts.most) == (whole.digest, whole.least, whole.most)
    assert parts.norm == pytest.approx(float(np.linalg.norm(values.numpy())), rel=1e-12)
    assert parts.mean == pytest.approx(float(values.mean()), rel=1e-9)


def test_large_and_small_numbers_do_not_overflow_or_vanish() -> None:
    large = summarize(torch.tensor([1e308, 1e308], dtype=torch.float64))
    assert large.norm == pytest.approx(math.sqrt(2) * 1e308)
    assert large.mean == pytest.approx(1e308)
    assert summarize(torch.tensor([3e-200, 4e-200], dtype=torch.float64)).norm == pytest.approx(5e-200)


def test_a_tensor_is_only_read() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    version = parameter._version
    assert summarize(parameter).mean == 1.0
    assert parameter._version == version


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        (torch.zeros(3, device="meta"), "meta"),
        (torch.eye(2).to_sparse(), "sparse_coo"),
    ],
)
def test_what_has_no_elements_here_has_no_summary(tensor: torch.Tensor, kind: str) -> None:
    with pytest.raises(NoSummary, match=kind):
        summarize(tensor)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", TORCH.values(), ids=str)
def test_a_difference_is_counted_placed_and_measured_for_every_dtype(dtype: torch.dtype) -> None:
    one = torch.ones(2, 3).to(dtype)
    other = one.clone()
    assert difference_of(one, other) == Difference(0, -1, 0.0)
    other.view(-1)[4] = 0
    assert difference_of(one, other) == Difference(1, 4, 1.0)


def test_a_difference_is_found_in_any_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "_CHUNK", 4)
    whole = torch.arange(35.0).reshape(5, 7)
    other = whole.clone()
    other[3, 1] -= 2.5
    other[4, 6] = float("nan")
    assert difference_of(whole.T, other.T) == Difference(2, 8, 2.5)
    assert difference_of(torch.tensor([2**60]), torch.tensor([2**60 + 1])).elements == 1
