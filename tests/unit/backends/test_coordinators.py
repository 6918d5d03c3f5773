"""What every backend's coordinators give, in groups of one to four: the fake and the real one alike."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest
import torch
from tests.support.members import Members, members
from tests.support.sampling import sample

from rankbridge_server.backends.reductions import reduces
from rankbridge_server.backends.torch_tensors import TORCH
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError

TIMEOUT_S = 30.0


@pytest.fixture(
    scope="module",
    params=[(backend, size) for backend in ("fake", "gloo") for size in (1, 2, 3, 4)],
    ids=lambda param: f"{param[0]}{param[1]}",
)
def group(request: pytest.FixtureRequest) -> Iterator[Members]:
    with members(*request.param) as it:
        yield it


def equal(left: object, right: object) -> bool:
    """Whether two tensors are equal in dtype, shape and every byte, and contiguous both."""
    a, b = cast(torch.Tensor, left), cast(torch.Tensor, right)
    return (
        (a.dtype, a.shape, True) == (b.dtype, b.shape, a.is_contiguous() and b.is_contiguous())
        and a.reshape(-1).view(torch.uint8).equal(b.reshape(-1).view(torch.uint8))
    )  # fmt: skip


def along(dim: int, shape: Sequence[int], size: int) -> list[int]:
    """The shape with another size."""
    return [*shape[:dim], size, *shape[dim + 1 :]]


def uneven(total: int, members: int) -> list[int]:
    """Sizes that differ, with a zero among those of two or more."""
    return [total] if members == 1 else [0, *[1] * (members - 2), total - members + 2]


# --- reductions ----------------------------------------------------------------------------------------------

COMBINE: dict[ReduceOp, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: operator.add,
    ReduceOp.PRODUCT: operator.mul,
    ReduceOp.MIN: min,
    ReduceOp.MAX: max,
    ReduceOp.AVG: operator.add,
    ReduceOp.BAND: operator.and_,
    ReduceOp.BOR: operator.or_,
    ReduceOp.BXOR: operator.xor,
}
REDUCTIONS = [(op, dtype) for op in ReduceOp for dtype in Dtype if reduces(op, dtype)]
# Twelve elements of member r are these, from the r-th on. Products and sums of four are exact in every dtype.
NUMBERS = [1, 0, 2, 3, 1, 1, 0, 0, 4, 1, 2, 1, 3, 1, 0]


def numbers(rank: int, op: ReduceOp, dtype: Dtype) -> list[int]:
    mine = NUMBERS[rank : rank + 12]
    if dtype is Dtype.BOOL:
        return [int(it != 0) for it in mine]
    # Averages of two, three and four are whole.
    return [12 * it for it in mine] if op is ReduceOp.AVG else mine


def reduced(size: int, op: ReduceOp, dtype: Dtype) -> torch.Tensor:
    """Of all members' numbers, by Python."""
    columns = zip(*(numbers(rank, op, dtype) for rank in range(size)), strict=True)
    values = [functools.reduce(COMBINE[op], column) for column in columns]
    if op is ReduceOp.AVG:
        values = [it / size for it in values]
    return torch.tensor(values, dtype=torch.float64).to(TORCH[dtype]).reshape(3, 4)


def inputs(size: int, op: ReduceOp, dtype: Dtype) -> list[torch.Tensor]:
    return [torch.tensor(numbers(rank, op, dtype)).to(TORCH[dtype]).reshape(3, 4) for rank in range(size)]


@pytest.mark.parametrize(("op", "dtype"), sample(REDUCTIONS, 40), ids=str)
def test_every_reduction_gives_what_python_does(group: Members, op: ReduceOp, dtype: Dtype) -> None:
    given = inputs(len(group), op, dtype)
    kept = [it.clone() for it in given]
    expected = reduced(len(group), op, dtype)
    dst = len(group) - 1
    everywhere = group.call("all_reduce", [(it, op, TIMEOUT_S) for it in given])
    assert all(equal(it, expected) for it in everywhere)
    *others, there = group.call("reduce", [(it, op, dst, TIMEOUT_S) for it in given])
    assert equal(there, expected)
    assert others == [None] * dst
    for sizes in ([2] * len(group), uneven(2 * len(group), len(group))):
        whole = [it.repeat(1, len(group)).narrow(1, 0, 2 * len(group)) for it in given]
        parts = group.call("reduce_scatter", [(it, op, 1, sizes, TIMEOUT_S) for it in whole])
        of_whole = torch.split(expected.repeat(1, len(group)), [*sizes, 2 * len(group)], 1)
        assert all(equal(part, it.contiguous()) for part, it in zip(parts, of_whole[:-1], strict=True))
    assert all(equal(mine, before) for mine, before in zip(given, kept, strict=True))


@pytest.mark.parametrize("dtype", [Dtype.UINT16, Dtype.UINT32, Dtype.UINT64], ids=str)
def test_unsigned_integers_of_the_upper_half_keep_their_order_and_wrap_around(
    group: Members, dtype: Dtype
) -> None:
    highest = torch.iinfo(TORCH[dtype]).max
    column = [highest - 2 * rank if rank % 2 else 3 + rank for rank in range(len(group))]
    given = [torch.tensor([it], dtype=TORCH[dtype]) for it in column]
    for op, expected in (
        (ReduceOp.MIN, min(column)),
        (ReduceOp.MAX, max(column)),
        (ReduceOp.SUM, sum(column) & highest),
        (ReduceOp.PRODUCT, math.prod(column) & highest),
    ):
        results = group.call("all_reduce", [(it, op, TIMEOUT_S) for it in given])
        assert [cast(torch.Tensor, it).tolist() for it in results] == [[expected]] * len(group), op


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", [Dtype.INT32, Dtype.UINT16, Dtype.COMPLEX64], ids=str)
def test_a_scan_gives_each_the_reduction_up_to_it(group: Members, dtype: Dtype, exclusive: bool) -> None:
    given = [it.t() for it in inputs(len(group), ReduceOp.SUM, dtype)]
    results = group.call("scan", [(it, ReduceOp.SUM, exclusive, TIMEOUT_S) for it in given])
    for rank, result in enumerate(results):
        before = [it.to(torch.complex128) for it in given[: rank + (not exclusive)]]
        expected = sum(before, torch.zeros(4, 3, dtype=torch.complex128))
        assert torch.as_tensor(result).dtype is TORCH[dtype]
        assert torch.as_tensor(result).to(torch.complex128).equal(expected)


@pytest.mark.parametrize("op", ReduceOp, ids=str)
def test_gloo_itself_cannot_do_what_is_refused(op: ReduceOp) -> None:
    # Sums of complex32 it does; torch calls them experimental.
    refused = [dtype for dtype in Dtype if not reduces(op, dtype) and dtype is not Dtype.COMPLEX32]
    assert refused
    with members("gloo", 2) as pair:
        for dtype in refused:
            given = torch.zeros(4, dtype=TORCH[dtype])
            with pytest.raises(BridgeError, match="Gloo failed"):
                pair.call("all_reduce", [(given, op, TIMEOUT_S)] * 2)
            with pytest.raises(BridgeError, match="Gloo failed"):
                pair.call("reduce", [(given, op, 0, TIMEOUT_S)] * 2)


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_reduce_scatter_divides_along_every_dimension(group: Members, dim: int) -> None:
    size = len(group)
    shape = along(dim, (2, 3, 2, 3), 12)
    given = [torch.arange(math.prod(shape)).reshape(shape) * (rank + 1) for rank in range(size)]
    total = torch.stack(given).sum(0)
    for sizes in ([12 // size] * size, uneven(12, size)):
        parts = group.call("reduce_scatter", [(it, ReduceOp.SUM, dim, sizes, TIMEOUT_S) for it in given])
        for part, expected in zip(parts, torch.split(total, sizes, dim), strict=True):
            assert equal(part, expected.contiguous())
            # It does not keep the whole for the part.
            assert part.untyped_storage().nbytes() == part.nbytes


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)], ids=str)
def test_a_reduction_of_one_element_or_none_keeps_its_shape(group: Members, shape: Sequence[int]) -> None:
    given, total = torch.ones(shape), torch.full(shape, float(len(group)))
    for outcome in group.call("all_reduce", [(given, ReduceOp.SUM, TIMEOUT_S)] * len(group)):
        assert equal(outcome, total)
    there, *_ = group.call("reduce", [(given, ReduceOp.SUM, 0, TIMEOUT_S)] * len(group))
    assert equal(there, total)


# --- moves ---------------------------------------------------------------------------------------------------

SHAPES = [(2, 3, 2), (1, 1), (0, 2), (2, 0)]
PLACES = [(shape, dim) for shape in SHAPES for dim in range(len(shape))]
# They differ by the size of their elements alone: some of them with each commit.
DTYPES = sample(list(Dtype), 5)


def noise(seed: int, dtype: Dtype, shape: Sequence[int]) -> torch.Tensor:
    """Random bytes as elements; of bool 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is Dtype.BOOL:
        return torch.randint(0, 2, shape, generator=generator).bool()
    count = math.prod(shape) * dtype.itemsize
    made = torch.randint(0, 256, (count,), dtype=torch.uint8, generator=generator)
    return made.view(TORCH[dtype]).reshape(shape)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scatter_moves_parts_of_every_dtype(group: Members, dtype: Dtype) -> None:
    size, src = len(group), len(group) - 1
    for shape, dim in PLACES:
        for sizes in ([shape[dim]] * size, uneven(size + 1, size), [0] * size):
            whole = noise(1, dtype, along(dim, shape, sum(sizes)))
            named = [noise(2, dtype, along(dim, shape, mine)) for mine in sizes[:src]] + [whole]
            parts = group.call("scatter", [(it, src, dim, sizes, TIMEOUT_S) for it in named])
            for rank, part in enumerate(parts):
                assert equal(part, whole.narrow(dim, sum(sizes[:rank]), sizes[rank]).contiguous())


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gathers_put_together_tensors_of_every_dtype(group: Members, dtype: Dtype) -> None:
    size, dst = len(group), len(group) - 1
    for shape, dim in PLACES:
        for sizes in ([shape[dim]] * size, uneven(size + 1, size), [0] * size):
            given = [noise(rank, dtype, along(dim, shape, mine)) for rank, mine in enumerate(sizes)]
            expected = together(given, dim)
            everywhere = group.call("all_gather", [(it, dim, sizes, TIMEOUT_S) for it in given])
            assert all(equal(it, expected) for it in everywhere)
            *others, there = group.call("gather", [(it, dst, dim, sizes, TIMEOUT_S) for it in given])
            assert equal(there, expected)
            assert others == [None] * dst


def together(tensors: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """Their concatenation, as torch does it on integers of the same size: it lacks some dtypes."""
    dtype = tensors[0].dtype
    wide = [it.contiguous().unsqueeze(-1).view(torch.uint8) for it in tensors]
    return torch.cat(wide, dim).view(dtype).squeeze(-1)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_to_all_exchanges_parts_of_every_dtype(group: Members, dtype: Dtype) -> None:
    size = len(group)
    for shape, dim in PLACES:
        for sizes in (
            [[shape[dim]] * size] * size,
            # Every size from 0 to 3, and a member that sends nothing.
            [[(3 * a + b) % 4 for b in range(size)] if a else [0] * size for a in range(size)],
            # One member gets everything, and one thing moves.
            [[a + 1 if b == 0 else 0 for b in range(size)] for a in range(size)],
            [[int((a, b) == (0, size - 1)) for b in range(size)] for a in range(size)],
            [[0] * size] * size,
        ):
            given = [noise(rank, dtype, along(dim, shape, sum(row))) for rank, row in enumerate(sizes)]
            kept = [it.clone() for it in given]
            results = group.call("all_to_all", [(it, dim, sizes, TIMEOUT_S) for it in given])
            parts = [torch.split(it, row, dim) for it, row in zip(given, sizes, strict=True)]
            for rank, result in enumerate(results):
                assert equal(result, together([row[rank] for row in parts], dim))
            assert all(equal(it, before) for it, before in zip(given, kept, strict=True))


def test_many_members_exchange_large_parts_of_different_sizes() -> None:
    size, elements = 7, 20_000
    with members("gloo", size) as group:
        for turn in range(3):
            sizes = [elements * ((rank + turn) % size) for rank in range(size)]
            given = [torch.full((mine,), rank, dtype=torch.int16) for rank, mine in enumerate(sizes)]
            expected = torch.cat(given)
            for gathered in group.call("all_gather", [(it, 0, sizes, TIMEOUT_S) for it in given]):
                assert equal(gathered, expected)
            gathered = group.call("gather", [(it, turn, 0, sizes, TIMEOUT_S) for it in given])[turn]
            assert equal(gathered, expected)
            rows = [[elements * ((a + b + turn) % size) for b in range(size)] for a in range(size)]
            given = [torch.arange(sum(row), dtype=torch.int32) + rank for rank, row in enumerate(rows)]
            parts = [torch.split(it, row) for it, row in zip(given, rows, strict=True)]
            swapped = group.call("all_to_all", [(it, 0, rows, TIMEOUT_S) for it in given])
            for rank, it in enumerate(swapped):
                assert equal(it, torch.cat([row[rank] for row in parts]))
            given = [torch.full((2, elements * size), rank + 1) for rank in range(size)]
            uneven_sizes = uneven(elements * size, size)
            reduced = group.call(
                "reduce_scatter", [(it, ReduceOp.SUM, 1, uneven_sizes, TIMEOUT_S) for it in given]
            )
            for mine, it in zip(uneven_sizes, reduced, strict=True):
                assert equal(it, torch.full((2, mine), 28))
