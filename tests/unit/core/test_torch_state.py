"""What a process says of torch.distributed in it."""

import ctypes
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist
from tests.support.waiting import until
from torch._C import _distributed_c10d as c10d

from rankbridge_server.core import torch_state as module
from rankbridge_server.core.torch_state import torch_state, write_torch_state

C10D = "/site-packages/torch/distributed/distributed_c10d.py"


def in_call(source: str) -> dict[str, object]:
    """The state of a thread that is in a function of torch's file, which has called something in C."""
    names: dict[str, Callable[..., None]] = {}
    exec(compile(source, C10D, "exec"), names)
    gate = threading.Lock()
    gate.acquire()
    begun = threading.Event()

    class Work:
        def __init__(self) -> None:
            self.wait = gate.acquire

    def run() -> None:
        begun.set()
        names["call"](Work(), 3, tag=7)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    found: dict[str, object] = {}

    def waits() -> bool:
        # It may be seen in torch's function before it has come to what that calls.
        found.update(torch_state(thread.ident or 0))
        return found["calling"] == "wait"

    try:
        until(waits)
    finally:
        gate.release()
        thread.join()
    return found


def test_peer_and_tag_of_the_call_that_a_thread_is_in_are_said() -> None:
    found = in_call("def call(work, dst, tag=0, group=None):\n    work.wait()\n")
    assert found["arguments"] == {"dst": 3, "tag": 7}
    assert found["calling"] == "wait"


def test_values_that_are_no_whole_numbers_are_not_kept() -> None:
    found = in_call("def call(work, src, tag=0):\n    tag = 'x'\n    work.wait()\n")
    assert found["arguments"] == {"src": 3}


@pytest.mark.parametrize(
    ("backend", "recorders", "has", "trouble"),
    [
        ("gloo", ("fr", "nccl"), {"trace"}, False),
        ("nccl", ("fr", "nccl"), {"trace", "device_trace"}, False),
        ("cpu:gloo,cuda:nccl", ("fr", "nccl"), {"trace", "device_trace"}, False),
        ("nccl", ("nccl",), {"device_trace"}, False),
        ("cpu:gloo,cuda:nccl", ("nccl",), {"device_trace"}, True),
        ("gloo", ("nccl",), set(), True),
        # Without what goes by NCCL, a rank that waits in it would seem to be idle.
        ("nccl", ("fr",), set(), True),
        ("cpu:gloo,cuda:nccl", ("fr",), set(), True),
    ],
)
def test_the_recorders_of_the_backends_are_read(
    monkeypatch: pytest.MonkeyPatch, backend: str, recorders: tuple[str, ...], has: set[str], trouble: bool
) -> None:
    modes: list[int] = []

    def exchange(mode: Any) -> int:
        given = ctypes.cast(mode, ctypes.POINTER(ctypes.c_int)).contents
        modes.append(given.value)
        given.value = 1
        return 0

    cudart = SimpleNamespace(cudaThreadExchangeStreamCaptureMode=exchange)
    monkeypatch.setattr(module, "_cudart", lambda: cudart)
    group = SimpleNamespace(group_desc="default_pg")
    names, ranks, where = {id(group): "0"}, {id(group): {0: 0}}, {id(group): (backend, None)}
    world = SimpleNamespace(pg_names=names, pg_group_ranks=ranks, pg_map=where, default_pg=None)
    monkeypatch.setattr(dist.distributed_c10d, "_world", world)
    for it in ("fr", "nccl"):
        name = f"_dump_{it}_trace_json"
        if it in recorders:
            monkeypatch.setattr(c10d, name, lambda *_: '{"entries": []}', raising=False)
        else:
            monkeypatch.delattr(c10d, name, raising=False)
    found = torch_state(threading.get_ident())
    assert {it for it in found if it.endswith("trace")} == has
    assert ("trouble" in found) is trouble
    # Relaxed, and back to what it was.
    assert modes == ([2, 1] if "device_trace" in has else [])


def test_it_is_written_whole(tmp_path: Path) -> None:
    write_torch_state(str(tmp_path / "answer"))
    assert json.loads((tmp_path / "answer").read_text())["arguments"] == {}
    assert [it.name for it in tmp_path.iterdir()] == ["answer"]
