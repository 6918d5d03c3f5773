"""What is known of somebody else's backend before any group of it."""

# mypy: disable-error-code="override, call-arg, arg-type, return-value, assignment, comparison-overlap"
# As of the toy in tests/support/backends; and groups here are stood for by what is simpler.

from __future__ import annotations

import threading
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from rankbridge_server.backends.bounded import DidNotReturn, bounded
from rankbridge_server.backends.c10d import C10dBackend, NoCreator, creator_of, registered
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode


def made(given: Any, *_: Any) -> tuple[str, Any]:
    return "made", given


def register(monkeypatch: pytest.MonkeyPatch, **extended: bool) -> None:
    plugins = {name: dist.Backend._BackendPlugin(made, it) for name, it in extended.items()}
    monkeypatch.setattr(dist.Backend, "_plugins", {**dist.Backend._plugins, **plugins})


def test_a_function_create_comes_before_what_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ONE=False)
    module = ModuleType("mine")
    module.create = made  # type: ignore[attr-defined]
    assert creator_of(module, []) is made


def test_the_one_backend_that_was_registered_meanwhile_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, OLD=False)
    before = registered()
    register(monkeypatch, NEW=True)
    made_of: Any = creator_of(ModuleType("mine"), before)(HashStore(), 2, 3, timedelta(seconds=4))
    what, given = made_of
    assert (what, given.group_rank, given.group_size, given.timeout) == ("made", 2, 3, timedelta(seconds=4))
    assert list(given.global_ranks_in_group) == [0, 1, 2]


@pytest.mark.parametrize("names", [[], ["ONE", "TWO"]])
def test_none_or_several_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    before = registered()
    register(monkeypatch, **dict.fromkeys(names, False))
    if not names:
        monkeypatch.setattr(dist.Backend, "_plugins", {})
    with pytest.raises(NoCreator, match=f"mine registers {', '.join(names) or 'none'} with"):
        creator_of(ModuleType("mine"), before)


class Refusing(dist.ProcessGroup):
    """Of floats it has sums alone; its broadcast hangs; others it has not."""

    def allreduce(self, tensors: Any, opts: Any) -> None:
        """As the docstring of the class."""
        if not tensors[0].is_floating_point():
            raise RuntimeError("Invalid scalar type")
        if opts.reduceOp != dist.ReduceOp.SUM:
            raise ValueError("a defect, and no refusal")

    def broadcast(self, tensors: Any, opts: Any) -> None:
        """As the docstring of the class."""
        threading.Event().wait()


def test_what_says_that_it_is_not_supported_is_lacking_and_what_fails_is_not() -> None:
    class NoBroadcast(Refusing):
        broadcast = dist.ProcessGroup.broadcast

    backend = C10dBackend("c10d:mine", lambda store, rank, size, timeout: NoBroadcast(rank, size), "", 30.0)
    assert {"broadcast", "all_gather", "send", "scan", "gather"} <= backend.lacks
    assert not {"all_reduce", "reduce_scatter", "barrier"} & backend.lacks
    assert backend.reduces(ReduceOp.SUM, Dtype.FLOAT64)
    assert backend.reduces(ReduceOp.MAX, Dtype.FLOAT64)
    assert not backend.reduces(ReduceOp.SUM, Dtype.INT32)


def test_a_method_that_hangs_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = C10dBackend("c10d:mine", lambda store, rank, size, timeout: Refusing(rank, size), "", 1.0)
    assert not {"broadcast", "all_reduce"} & backend.lacks


def test_a_group_that_cannot_be_made_fails_the_backend() -> None:
    with pytest.raises(BridgeError, match="ZeroDivisionError") as raised:
        C10dBackend("c10d:mine", lambda *_: 1 / 0, "", 1.0)
    assert raised.value.failure.code is ErrorCode.BACKEND_FAILED


def test_a_call_is_waited_for_so_long_and_gives_its_own_error() -> None:
    with pytest.raises(DidNotReturn, match=r"it did not return in 0\.1 s"):
        bounded(threading.Event().wait, 0.1, "it")
    with pytest.raises(ZeroDivisionError):
        bounded(lambda: 1 // 0, 10, "it")
