"""What coordinators on MPI give: what all backends do, and what only MPI has. Each member is a process."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from tests.support.mpi_job import MpiMembers, mpi_job
from tests.unit.backends.test_coordinators import (
    COMBINE,
    REDUCTIONS,
    TIMEOUT_S,
    equal,
    inputs,
    noise,
    test_a_reduction_of_one_element_or_none_keeps_its_shape,
    test_all_to_all_exchanges_parts_of_every_dtype,
    test_every_reduction_gives_what_python_does,
    test_gathers_put_together_tensors_of_every_dtype,
    test_reduce_scatter_divides_along_every_dimension,
    test_scatter_moves_parts_of_every_dtype,
)

from rankbridge_server.backends.torch_tensors import TORCH
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode

# What every backend must give, asked of this one.
__all__ = [
    "test_a_reduction_of_one_element_or_none_keeps_its_shape",
    "test_all_to_all_exchanges_parts_of_every_dtype",
    "test_every_reduction_gives_what_python_does",
    "test_gathers_put_together_tensors_of_every_dtype",
    "test_reduce_scatter_divides_along_every_dimension",
    "test_scatter_moves_parts_of_every_dtype",
]


@pytest.fixture(scope="module", params=[1, 3], ids=lambda size: f"mpi{size}")
def group(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MpiMembers]:
    with mpi_job(request.param, tmp_path_factory.mktemp("job")) as job:
        members = job.group("world", range(request.param))
        yield members
        members.close()


SCANS = [(op, dtype) for op, dtype in REDUCTIONS if op is not ReduceOp.AVG]


@pytest.mark.parametrize(("op", "dtype"), SCANS, ids=str)
def test_every_scan_gives_what_python_does(group: MpiMembers, op: ReduceOp, dtype: Dtype) -> None:
    given = inputs(len(group), op, dtype)
    kept = [it.clone() for it in given]
    rows = [it.reshape(-1).tolist() for it in given]
    # torch's own bools: Python's sum of them is a number.
    columns = [itertools.accumulate(column, COMBINE[op]) for column in zip(*rows, strict=True)]
    expected = [
        torch.tensor([bool(it) if dtype is Dtype.BOOL else it for it in row]).to(TORCH[dtype]).reshape(3, 4)
        for row in zip(*columns, strict=True)
    ]
    inclusive = group.call("scan", [(it, op, False, TIMEOUT_S) for it in given])
    assert all(equal(it, wanted) for it, wanted in zip(inclusive, expected, strict=True))
    if op is ReduceOp.SUM:
        exclusive = group.call("scan", [(it, op, True, TIMEOUT_S) for it in given])
        shifted = [torch.zeros_like(given[0]), *expected[:-1]]
        assert all(equal(it, wanted) for it, wanted in zip(exclusive, shifted, strict=True))
    assert all(equal(mine, before) for mine, before in zip(given, kept, strict=True))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_few_elements_or_none_are_scanned_and_reduced(
    group: MpiMembers, shape: Sequence[int], dtype: torch.dtype
) -> None:
    size = len(group)
    given = torch.ones(shape, dtype=dtype)
    scanned = group.call("scan", [(given, ReduceOp.SUM, False, TIMEOUT_S)] * size)
    assert all(equal(it, given * (rank + 1)) for rank, it in enumerate(scanned))
    for it in group.call("all_reduce", [(given, ReduceOp.SUM, TIMEOUT_S)] * size):
        assert equal(it, given * size)


@pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_min_and_max_of_a_nan_are_nan_whoever_brings_it(
    group: MpiMembers, op: ReduceOp, dtype: torch.dtype
) -> None:
    size = len(group)
    given = torch.eye(size, dtype=dtype) * math.nan
    given[given == 0] = 1
    for it in group.call("all_reduce", [(row, op, TIMEOUT_S) for row in given]):
        assert it.isnan().all()


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", Dtype, ids=str)
def test_sends_and_receives_pass_each_other_and_collectives(group: MpiMembers, dtype: Dtype) -> None:
    """Every member sends to every other, tags in one order, received in another, during all_gathers."""
    size = len(group)
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b]
    messages = [
        (a, b, tag, noise(size * a + b, dtype, shape))
        for a, b in pairs
        for tag, shape in ((0, (5,)), (2**31 - 1, (0,)), (7, (3, 100_000)))
    ]
    receiving = [
        group.ranks[b].start("kit", "receive", group.name, it.shape, it.dtype, a, tag, TIMEOUT_S)
        for a, b, tag, it in reversed(messages)
    ]
    sending = [group.ranks[a].start(group.name, "send", it, b, tag, TIMEOUT_S) for a, b, tag, it in messages]
    ones = torch.ones(3)
    for it in group.call("all_gather", [(ones, 0, [3] * size, TIMEOUT_S)] * size):
        assert it.sum() == 3 * size
    for future in sending:
        future.result(TIMEOUT_S)
    for future, (_, _, _, sent) in zip(receiving, reversed(messages), strict=True):
        # An empty tensor does not travel.
        assert equal(future.result(TIMEOUT_S), sent)


def test_a_message_of_another_size_is_an_error(tmp_path: Path) -> None:
    with mpi_job(2, tmp_path) as job:
        pair = job.group("pair", [0, 1])
        for sent, wanted in ((3, 4), (4, 3)):
            pair.ranks[0].call(pair.name, "send", torch.ones(sent), 1, sent, TIMEOUT_S)
            with pytest.raises(BridgeError) as error:
                pair.ranks[1].call("kit", "receive", pair.name, (wanted,), torch.float32, 0, sent, TIMEOUT_S)
            assert (error.value.failure.code, error.value.failure.indefinite) == (
                ErrorCode.BACKEND_FAILED,
                True,
            )
