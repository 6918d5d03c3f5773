"""What a process says of torch.distributed in it."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

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
    try:
        found = torch_state(thread.ident or 0)
        while not found["arguments"]:
            found = torch_state(thread.ident or 0)
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


def test_it_is_written_whole(tmp_path: Path) -> None:
    write_torch_state(str(tmp_path / "answer"))
    assert json.loads((tmp_path / "answer").read_text())["arguments"] == {}
    assert [it.name for it in tmp_path.iterdir()] == ["answer"]
