"""What a backend lacks is what it says it lacks: it is not announced, and refused by each way. Fake backend."""

from __future__ import annotations

import pytest
from tests.support.local_gang import LocalGang, a_call

from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase
from rankbridge_server.core.operations.agreements import Barrier, Ping, barrier, ping
from rankbridge_server.core.operations.point_to_point import Send, send
from rankbridge_server.core.programs.plan import coalesce, run_program
from rankbridge_server.core.programs.program import Coalesce, ProgramOperation, RunProgram
from rankbridge_server.service.operations.table import OPERATIONS
from rankbridge_server.service.wire import wire


class Lacking(FakeBackend):
    """A backend without two of the operations."""

    lacks = frozenset({"barrier", "send"})


@pytest.fixture
def gang() -> LocalGang:
    hub = FakeHub()
    return LocalGang(2, backends=[Lacking(hub) for _ in range(2)])


def test_what_it_lacks_is_not_announced(gang: LocalGang) -> None:
    announced = wire.pack_abilities(OPERATIONS, gang.ranks[0].backend).collectives
    assert set(OPERATIONS) - set(announced) == {"barrier", "send"}


PROGRAM = ProgramOperation(barrier, Barrier(), "")


@pytest.mark.parametrize(
    ("operation", "args", "said"),
    [
        (barrier, Barrier(), "backend 'fake' has no barrier"),
        (send, Send("any", 1, 0), "backend 'fake' has no send"),
        (
            coalesce,
            Coalesce(((barrier, Barrier()),)),
            "operation 0, barrier: backend 'fake' has no barrier",
        ),
        (run_program, RunProgram((PROGRAM,), ()), "step 0, barrier: backend 'fake' has no barrier"),
    ],
    ids=["a collective", "a send", "coalesced", "of a program"],
)
def test_what_it_lacks_is_refused(gang: LocalGang, operation: object, args: object, said: str) -> None:
    with pytest.raises(BridgeError) as raised:
        gang.ranks[0].submit(operation, args, a_call())  # type: ignore[arg-type]
    it = raised.value.failure
    assert (it.code, it.message, it.phase, it.indefinite) == (
        ErrorCode.UNSUPPORTED_OPERATION,
        said,
        Phase.CHECK,
        False,
    )
    assert gang.ranks[0].describe().pending == 0
    assert gang.run(ping, [Ping()] * 2) == [None, None]
