"""A gang for each test, as the plugin for pytest lends it: ranks that other tests had before, a session, a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version

import numpy as np

from bench.subject import Ways, serve, timed
from rankbridge.harness.lending import Lender, LentGang

_TIMEOUT_S = 60.0


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Times whole tests, with what is done before and after each."""
    with closing(Lender()) as lender:

        def test() -> None:
            with lender.lent(size, "gloo", _TIMEOUT_S) as gang:
                _all_reduce(gang)

        def test_that_kills() -> None:
            with lender.lent(size, "gloo", _TIMEOUT_S) as gang:
                gang.kill(size - 1)
                gang.form()
                _all_reduce(gang)

        operations = {"own_gang": timed(test), "own_gang_killed": timed(test_that_kills)}
        yield Ways({"rankbridge": version("rankbridge")}, {"pytest": operations}, {})


def _all_reduce(gang: LentGang) -> None:
    refs = gang.put([np.ones(1, np.float32)] * len(gang))
    gang.get(gang.all_reduce(refs))


if __name__ == "__main__":
    serve(started)
