"""What tests of the core share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.local_gang import LocalGang
from tests.support.programs import SIZE


@pytest.fixture
def gang() -> Iterator[LocalGang]:
    """Three ranks on the fake backend; they are closed afterwards."""
    it = LocalGang(SIZE)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")
