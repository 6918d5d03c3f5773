"""What tensors on ranks are like, as the ranks say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.support.gangs import RunningGang

import rankbridge
from rankbridge import Gang, Summary
from rankbridge.errors import ReleasedRefError


@pytest.fixture(params=["gloo4", "fake4"])
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description, timeout=30.0) as it:
        yield it


def test_a_tensor_is_summarized_where_it_is(gang: Gang) -> None:
    ref = gang[1].put(np.array([[1.5, np.nan], [-2.0, np.inf]], np.float64))
    found = gang[1].summarize(ref)
    assert isinstance(found, Summary)
    assert (found.dtype, found.shape, found.device) == ("float64", (2, 2), "cpu")
    assert (found.min, found.max, found.mean, found.norm) == (-2.0, 1.5, -0.25, 2.5)
    assert (found.nans, found.infs, len(found.hash)) == (1, 1, 32)


def test_equal_tensors_of_two_ranks_have_equal_summaries(gang: Gang) -> None:
    refs = gang.put([np.arange(10, dtype=np.int32)] * 4)
    summaries = [gang[ref.rank].summarize(ref) for ref in refs]
    assert summaries == [summaries[0]] * 4
    assert (summaries[0].min, summaries[0].max, summaries[0].mean) == (0, 9, 4.5)
    other = gang[2].summarize(gang[2].put(np.arange(11, dtype=np.int32)))
    assert other.hash != summaries[0].hash


def test_a_tensor_without_elements_has_no_extremes(gang: Gang) -> None:
    found = gang[0].summarize(gang[0].put(np.zeros((0, 3), np.float32)))
    assert (found.shape, found.min, found.max, found.mean, found.norm) == ((0, 3), None, None, None, 0.0)


def test_what_is_released_has_no_summary(gang: Gang) -> None:
    ref = gang[0].put(np.zeros(2, np.float32))
    gang.release(ref)
    with pytest.raises(ReleasedRefError):
        gang[0].summarize(ref)
