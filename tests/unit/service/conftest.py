"""What tests of the service share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.service.stages import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    it = Stage(tmp_path)
    yield it
    it.close()
