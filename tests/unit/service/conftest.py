"""What tests of the service share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.service.stages import ByGrpc, Locally, Stage, Way


@pytest.fixture(params=[ByGrpc, Locally])
def way(request: pytest.FixtureRequest) -> type[Way]:
    way: type[Way] = request.param
    return way


@pytest.fixture
def stage(tmp_path: Path, way: type[Way]) -> Iterator[Stage]:
    it = Stage(tmp_path, way)
    yield it
    it.close()
