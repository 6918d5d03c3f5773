"""Shared cases on a gang on NCCL; with `--whole`, all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract import cases
from tests.contract.able import as_able
from tests.contract.test_cases import check_case, drawn
from tests.support.gangs import up

import rankbridge
from rankbridge import Gang

pytestmark = pytest.mark.gpu

SIZE = 4


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gang]:
    with (
        up(tmp_path_factory.mktemp("contract"), SIZE, "nccl") as running,
        rankbridge.connect(running.description, timeout=60, calls="ranks") as it,
    ):
        yield it


@pytest.mark.parametrize("case", drawn(100), ids=lambda case: case["case"])
def test_case(gang: Gang, case: cases.Json) -> None:
    abilities = gang[0].status().abilities
    assert abilities is not None
    check_case(gang, as_able(case, abilities))
    # A call that failed leaves the group as healthy as it was.
    gang.barrier(timeout=60)
