from __future__ import annotations

from typing import Any

import pytest

import rankbridge
from rankbridge import Init
from rankbridge._plan.inits import fill
from rankbridge.v1 import ref_service_pb2 as pb


def _written(init: Init) -> pb.CreateTensorRequest:
    request = pb.CreateTensorRequest()
    fill(request, init)
    return request


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        (rankbridge.zeros(), pb.CreateTensorRequest(zeros=pb.Zeros())),
        (rankbridge.full(True), pb.CreateTensorRequest(full=pb.Full(bool=True))),
        (rankbridge.full(0), pb.CreateTensorRequest(full=pb.Full(int=0))),
        (rankbridge.full(0.0), pb.CreateTensorRequest(full=pb.Full(float=0))),
        (rankbridge.full(-(2**63)), pb.CreateTensorRequest(full=pb.Full(int=-(2**63)))),
        (rankbridge.arange(), pb.CreateTensorRequest(arange=pb.Arange(start=0, step=1))),
        (rankbridge.arange(5, -2), pb.CreateTensorRequest(arange=pb.Arange(start=5, step=-2))),
        (rankbridge.uniform(7), pb.CreateTensorRequest(uniform=pb.Uniform(seed=7, low=0, high=1))),
        (
            rankbridge.normal(2**64 - 1, 1, 0),
            pb.CreateTensorRequest(normal=pb.Normal(seed=2**64 - 1, mean=1, std=0)),
        ),
    ],
)
def test_each_description_is_written_as_it_was_given(init: Init, expected: pb.CreateTensorRequest) -> None:
    assert _written(init) == expected


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (rankbridge.full, [1j]),
        (rankbridge.full, [2**63]),
        (rankbridge.full, ["1"]),
        (rankbridge.arange, [0, 0]),
        (rankbridge.uniform, [-1]),
        (rankbridge.uniform, [2**64]),
        (rankbridge.uniform, [1, 2, 2]),
        (rankbridge.uniform, [1, 0, float("nan")]),
        (rankbridge.normal, [1, 0, -1]),
    ],
)
def test_impossible_descriptions_are_refused(make: Any, arguments: list[Any]) -> None:
    with pytest.raises(rankbridge.InvalidArgumentError):
        make(*arguments)
