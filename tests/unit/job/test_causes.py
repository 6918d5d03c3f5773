"""Why torch.distributed raises: exceptions that leave the user's code get the end of the generation as their cause."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from torch.distributed import c10d_logger

from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.job.causes import Causes

LOST = BridgeError.of(ErrorCode.PEER_LOST, "rank 2 is lost")


@pytest.fixture
def causes() -> Iterator[Causes]:
    made = Causes()
    yield made
    c10d_logger._c10d_logger.removeHandler(made)


def test_an_engines_failure_waits_until_the_links_have_said_who_is_lost(
    causes: Causes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankbridge_server.job.causes._GRACE_S", 60.0)
    causes.begin()
    # As from a backward pass, of which torch logs nothing.
    error = RuntimeError("[third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer")
    explained = threading.Thread(target=causes.explain, args=(error,))
    explained.start()
    causes.end(LOST)
    explained.join()
    assert error.__cause__ is LOST


def test_the_users_own_exception_does_not_wait(causes: Causes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankbridge_server.job.causes._GRACE_S", 60.0)
    causes.begin()
    error = ValueError("no batch")
    began = time.monotonic()
    causes.explain(error)
    assert time.monotonic() - began < 30
    assert error.__cause__ is None


def test_an_exception_that_has_a_cause_keeps_it(causes: Causes) -> None:
    causes.begin()
    causes.end(LOST)
    cause, error = KeyError("weight"), ValueError("no batch")
    error.__cause__ = cause
    causes.explain(error)
    assert error.__cause__ is cause
