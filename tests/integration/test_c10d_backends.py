"""Backends that somebody else wrote: `rankbridge up --backend c10d:MODULE`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.contract.able import as_able
from tests.contract.cases import Json, load
from tests.contract.test_cases import check_case
from tests.support.gangs import up, why_not
from tests.support.sampling import sample

import rankbridge
from rankbridge import ErrorCode, Gang, GangError

BACKENDS = Path(__file__).parent.parent / "support" / "backends"
CONTRACT = [it for it in load() if it["ranks"] <= 4]


def named(module: str) -> str:
    return f"c10d:{BACKENDS / module}.py"


def started(directory: Path, module: str, *options: str) -> Iterator[Gang]:
    with (
        up(directory, 4, named(module), ["--heartbeat-misses", "300", *options]) as running,
        rankbridge.connect(running.description) as gang,
    ):
        yield gang


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gang]:
    """Four ranks on a backend of pure Python."""
    yield from started(tmp_path_factory.mktemp("toy"), "toy")


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gang]:
    """Four ranks on a backend that has little, and does that badly."""
    yield from started(tmp_path_factory.mktemp("partial"), "partial", "--data-timeout", "4")


@pytest.mark.parametrize("case", sample(CONTRACT, 30), ids=lambda it: it["case"])
def test_a_backend_of_pure_python_keeps_the_contract(toy: Gang, case: Json) -> None:
    abilities = toy[0].status().abilities
    assert abilities is not None
    check_case(toy, as_able(case, abilities))


def test_a_backend_in_cpp_is_taken_from_where_its_module_registers_it(tmp_path: Path) -> None:
    for gang in started(tmp_path, "mine"):
        before = gang.status()
        assert before[0].backend == named("mine")
        for place in (1, 50, 100):
            check_case(gang, CONTRACT[place])
        refs = gang.put([np.full(3, rank, np.int32) for rank in range(4)])
        assert [np.asarray(gang.get(it)).tolist() for it in gang.all_reduce(refs, op="max")] == [[3] * 3] * 4


def test_what_a_backend_does_not_implement_is_refused_before_anything_runs(partial: Gang) -> None:
    abilities = partial[0].status().abilities
    assert abilities is not None
    assert {"broadcast", "broadcast_object", "all_reduce", "barrier"} <= set(abilities.collectives)
    assert not {"gather", "all_to_all", "send", "scan"} & set(abilities.collectives)
    assert set(abilities.reductions["sum"]) == {"float32"}
    refs = partial.put([np.zeros(4, np.float32)] * 4)
    with pytest.raises(GangError) as raised:
        partial.gather(refs)
    assert {it.error.code for it in raised.value.outcomes if it.error} == {ErrorCode.UNSUPPORTED_OPERATION}
    with pytest.raises(GangError) as raised:
        partial.all_reduce(partial.put([np.zeros(4, np.int64)] * 4))
    assert {it.error.code for it in raised.value.outcomes if it.error} == {ErrorCode.UNSUPPORTED_DTYPE}
    partial.barrier(timeout=10)


@pytest.mark.parametrize(("first", "said"), [(13, "did not return|timeout"), (14, "LookupError: the author")])
def test_a_backend_that_hangs_or_raises_ends_the_generation_and_no_rank(
    partial: Gang, first: float, said: str
) -> None:
    before = partial.status()
    given = [np.full(4, first if rank == 2 else 0, np.float32) for rank in range(4)]
    refs = partial.put(given)
    begun = time.monotonic()
    with pytest.raises(GangError) as raised:
        partial.all_reduce(refs, timeout=60)
    assert time.monotonic() - begun < 30
    errors = [it.error for it in raised.value.outcomes if it.error]
    assert len(errors) == 4
    # The first one to fail ends the generation of the others.
    assert {it.code for it in errors} <= {ErrorCode.BACKEND_FAILED, ErrorCode.ABORTED}
    assert all(it.indefinite and re.search(said, str(it)) for it in errors)
    partial.form(timeout=30)
    assert [it.pid for it in partial.status()] == [it.pid for it in before]
    assert [np.asarray(partial.get(it)).tolist() for it in refs] == [it.tolist() for it in given]
    sums = partial.all_reduce(partial.put([np.ones(2, np.float32)] * 4))
    assert [np.asarray(partial.get(it)).tolist() for it in sums] == [[4.0, 4.0]] * 4


def test_a_gang_on_a_module_without_a_backend_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("")
    assert "has no function create(store, rank, size, timeout)" in why_not(f"c10d:{tmp_path / 'none.py'}")
