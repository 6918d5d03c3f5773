"""Shared cases once more, with every tensor that has elements brought and fetched by shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract import cases
from tests.contract.test_cases import check_case, drawn
from tests.support.gangs import RunningGang

import rankbridge
from rankbridge import Gang
from rankbridge._transport import shared_memory as _shared_memory


@pytest.fixture(scope="module")
def gang(fake4: RunningGang) -> Iterator[Gang]:
    """A gang that shares memory for one byte already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_shared_memory, "MIN_BYTES", 1)
        with rankbridge.connect(fake4.description) as it:
            yield it
            went = [rank.transfers for rank in it]
            assert all(each.shared > 50 and not each.streamed for each in went), went


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in drawn()])
def test_case(gang: Gang, case: cases.Json) -> None:
    check_case(gang, case)
