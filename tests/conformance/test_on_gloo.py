"""Some of the recorded cases on ranks that are processes of their own, on Gloo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance import tables
from tests.conformance.clients.python import PythonClient
from tests.conformance.gangs import Gangs
from tests.conformance.recorded import Case, cases
from tests.conformance.runner import replay
from tests.support.sampling import sample

TABLE = tables.read()
CHOSEN = {
    "vllm": ("props/", "all_gather/w4", "broadcast_tensor_dict/w4", "send_recv/w4"),
    "optimus_mesh": ("mesh_table",),
    "olmo": ("get_mesh_coordinates", "do_n_at_a_time"),
    "gfn_context_head": ("initialize_distributed_compute",),
    "gfn_p2p": ("send_int64", "buffer_manager_loop"),
    "hazards": ("rank_killed",),
}
"""By file, what the names begin with; of a world of four."""
EACH = 6
"""How many of a file, at most."""


@pytest.fixture(scope="module")
def gangs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gangs]:
    """Four ranks on Gloo."""
    with Gangs(tmp_path_factory.mktemp("gloo"), "gloo") as gangs:
        yield gangs


@pytest.mark.parametrize(
    "case",
    [
        case
        for suite, names in CHOSEN.items()
        for case in sample(
            [case for case in cases(suite) if case.world == 4 and case.name.startswith(names)], EACH
        )
    ],
    ids=str,
)
def test_the_bridge_does_what_was_recorded_or_a_deviation(case: Case, gangs: Gangs) -> None:
    verdict = replay(case, gangs, TABLE, PythonClient)
    assert verdict.failures == ()
    assert verdict.moments > 0
