"""What small collectives of a guarded job give, beside Gloo."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
from torch._C import _distributed_c10d as c10d

from rankbridge_server.backends.gloo.raw import make_group, make_store
from rankbridge_server.job.guard.carried import content_of
from rankbridge_server.job.guard.carried_reductions import reduced

TIMEOUT = timedelta(seconds=30)
COUNTS = (1, 2, 3, 7, 8, 9, 16, 17, 64, 100)
REALS = (torch.float32, torch.float64)
WHOLE = (torch.int8, torch.uint8, torch.int32, torch.int64)
OPS = ("sum", "product", "min", "max")
BITWISE = ("band", "bor", "bxor")
SPECIAL = (float("nan"), 0.0, -0.0, float("inf"), -float("inf"), 3e38)


def values(members: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """By member and element."""
    seeded = torch.Generator().manual_seed(count)
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.randint(limits.min, limits.max, (members, count), generator=seeded, dtype=dtype)
    exponents = torch.randint(-3, 4, (members, count), generator=seeded)
    made = torch.randn(members, count, generator=seeded) * 10.0**exponents
    special = torch.tensor(SPECIAL)[torch.randint(0, len(SPECIAL), (members, count), generator=seeded)]
    return torch.where(torch.rand(members, count, generator=seeded) < 0.1, special, made).to(dtype)


def like(tensor: torch.Tensor, content: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=tensor.dtype)


@pytest.mark.parametrize("members", [2, 3, 4, 5, 8])
def test_reductions_are_those_of_gloo_bit_by_bit(members: int) -> None:
    store = make_store(TIMEOUT)
    with ThreadPoolExecutor(members) as pool:
        groups = list(
            pool.map(lambda it: make_group(store, it, members, "127.0.0.1", 1, TIMEOUT), range(members))
        )
        for dtype in (*REALS, *WHOLE):
            for op in OPS if dtype in REALS else (*OPS, *BITWISE):
                options = c10d.AllreduceOptions()
                options.reduceOp = getattr(c10d.ReduceOp, op.upper())
                for count in COUNTS:
                    given = values(members, count, dtype)
                    mine = like(given, reduced([content_of(it) for it in given], str(dtype), op))
                    theirs = given.clone()
                    works = [it.allreduce([row], options) for it, row in zip(groups, theirs, strict=True)]
                    assert all(it.wait() for it in works)
                    for row in theirs:
                        # Of what is no number, bits are nobody's business.
                        numbers = row == row
                        assert torch.equal(mine == mine, numbers)
                        same = content_of(mine[numbers]) == content_of(row[numbers])
                        assert same, (dtype, op, count, mine, row)
