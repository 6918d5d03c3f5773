"""A program that answers lines: what is left of one that has ended."""

from __future__ import annotations

import pytest
from tests.support.proc import open_files
from tests.support.waiting import until

from rankbridge_server.backends.program.process import Program, ProgramError


def pipes() -> set[str]:
    return {it for it in open_files() if it.startswith("pipe:")}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sh -c 'read line; exec sleep 100'", "it did not return in"),
        ("sh -c 'read line; exit 7'", "has ended with status 7"),
        ("sh -c 'read line; echo {}'", "this is no answer"),
    ],
)
def test_a_program_that_failed_leaves_no_pipe(command: str, said: str) -> None:
    before = pipes()
    program = Program(command)
    own = pipes() - before
    assert len(own) == 2
    with pytest.raises(ProgramError, match=said):
        program.ask("open", 0.05 if "sleep" in command else 20)
    # The thread that waited for the answer closes them.
    until(lambda: not own & pipes())
    with pytest.raises(ProgramError, match="has ended with status"):
        program.ask("open", 20)
