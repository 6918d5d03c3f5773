"""What every fuzzing test takes."""

from __future__ import annotations

import pytest
from tests.support import sampling


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Another with each commit; `make fuzz SEED=n` repeats a run."""
    given = request.config.getoption("--seed")
    return int(given) if given is not None else int.from_bytes(sampling.seed().encode()[:8])


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How many times as much as among the tests of every day."""
    return int(request.config.getoption("--rounds"))
