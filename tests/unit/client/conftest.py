"""Sidecars, and a gang connected to them, for both fronts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.fronts import connected
from tests.unit.client.sidecars import SidecarGang


@pytest.fixture
def sidecars(tmp_path: Path) -> Iterator[SidecarGang]:
    """Four sidecars."""
    gang = SidecarGang(4, tmp_path)
    yield gang
    gang.stop()


@pytest.fixture(params=["sync", "async"])
def front(request: pytest.FixtureRequest) -> str:
    """Name of each front in turn."""
    name: str = request.param
    return name


@pytest.fixture
def gang(front: str, sidecars: SidecarGang) -> Iterator[Any]:
    """A gang connected to the sidecars, of each front in turn."""
    with connected(front, sidecars.endpoints(), timeout=20) as gang:
        yield gang
