"""torchgfn: what ranks send each other."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from tests.conformance import launches, programs
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import Stage
from tests.conformance.systems.calls import Replay, one_each
from tests.conformance.values import Tensor

from rankbridge import Work

EXIT = 255
"""What a trainer tells a buffer manager when it needs it no more."""
REQUESTS = 3


def octets(*data: int) -> Tensor:
    """Some bytes, as the records send them."""
    return Tensor.of("uint8", list(data), [len(data)])


def sent_in(case: Case) -> Tensor:
    """What a case of one message sends."""
    inputs = case.inputs
    if "shape" in inputs:
        count = int(np.prod(inputs["shape"]))
        return Tensor.of("uint8", np.arange(count), inputs["shape"])
    match inputs["data"]:
        case "arange(8,u8)[::2]":
            return Tensor("uint8", np.arange(8, dtype=np.uint8)[::2])
        case "(arange(2^22) % 251) u8":
            return Tensor("uint8", (np.arange(2**22) % 251).astype(np.uint8))
    return Tensor.of(inputs.get("dtype", "uint8"), inputs["data"], [len(inputs["data"])])


class Ends:
    """Both ends of messages of one case.

    A failure of any call fails the case: here all of them succeed.
    """

    def __init__(self, stage: Stage) -> None:
        """Knows the stage."""
        self._stage = stage

    def send(self, rank: int, to: int, tensor: Tensor, tag: int = 0) -> None:
        """Sends a tensor."""
        assert self.sent(rank, to, tensor, tag) is None

    def sent(self, rank: int, to: int, tensor: Tensor, tag: int = 0) -> Any:
        """Sends a tensor, and gives what comes of it."""
        options = {"dst_rank_in_group": to, "tag": tag}
        return self._one(rank, "send", (self._stage.put(rank, tensor),), options)

    def recv(self, rank: int, source: int | None = None, tag: int = 0) -> dict[str, Any]:
        """Receives a tensor: who sent it, and what it is."""
        value, src = self._one(rank, "recv", (), {"src_rank_in_group": source, "tag": tag})
        return {"src": src, "data": value}

    def _one(self, rank: int, method: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        answer = self._stage.one(rank, method, args, options)
        assert "ok" in answer, answer
        return answer["ok"]


def one_message(case: Case, stage: Stage) -> Iterator[Moment]:
    """The first sends a tensor to the second."""
    ends, tensor, tag = Ends(stage), sent_in(case), case.inputs.get("tag", 0)
    source = None if "src_rank" in case.inputs else 0

    def receive() -> Any:
        got = ends.recv(1, source, tag)
        if "sha256" in case.inputs:
            data = got.pop("data").array
            got |= {"n": data.size, "sha256": hashlib.sha256(data.tobytes()).hexdigest()}
        return got

    yield from _played(case, {0: lambda: ends.sent(0, 1, tensor, tag), 1: receive})


def in_order(case: Case, stage: Stage) -> Iterator[Moment]:
    """Several messages arrive in their order."""
    ends, messages = Ends(stage), case.inputs["data"]
    yield from _played(
        case,
        {
            0: lambda: [ends.sent(0, 1, octets(*data)) for data in messages],
            1: lambda: [ends.recv(1, 0) for _ in messages],
        },
    )


def isend(case: Case, stage: Stage) -> Iterator[Moment]:
    """A send that is begun, asked after and waited for, twice."""
    ends, tensor = Ends(stage), sent_in(case)

    def send() -> Any:
        work = stage.gang[0].isend(stage.put(0, tensor), dst_rank_in_group=1)
        return {
            "poll_true_within_1s": _becomes_complete(work),
            "wait": {"ok": work.wait()},
            "is_complete_after_wait": work.is_complete(),
            "second_wait": {"ok": work.wait()},
        }

    yield from _played(case, {0: send, 1: lambda: ends.recv(1, 0)})


def _becomes_complete(work: Work[None]) -> bool:
    """Whether a send is complete before it is waited for. How soon is not compared."""
    end = time.monotonic() + programs.PATIENCE_S / 2
    while not work.is_complete():
        if time.monotonic() > end:
            return False
    return True


def request_reply(case: Case, stage: Stage) -> Iterator[Moment]:
    """A request, and a reply to it; with two tags or with one."""
    ends = Ends(stage)
    by_tag = case.name.startswith("metadata")
    request, reply, tag = (octets(7), octets(70, 71), 1) if by_tag else (octets(1), octets(2), 0)

    def ask() -> Any:
        ends.send(0, 1, request)
        return ends.recv(0, 1, tag)

    def answer() -> Any:
        got = ends.recv(1, 0)
        ends.send(1, 0, reply, tag)
        return got

    yield from _played(case, {0: ask, 1: answer})


def fan_in(case: Case, stage: Stage) -> Iterator[Moment]:
    """All others send to the first, which takes them as they come."""
    ends = Ends(stage)

    def collect() -> Any:
        got = [ends.recv(0) for _ in range(case.world - 1)]
        return sorted([it["src"], it["data"].array.tolist()] for it in got)

    others = {rank: _sender(ends, rank) for rank in range(1, case.world)}
    yield from _played(case, {0: collect, **others})


def _sender(ends: Ends, rank: int) -> Callable[[], None]:
    return lambda: ends.sent(rank, 0, octets(*[rank] * rank))


def buffer_manager_loop(case: Case, stage: Stage) -> Iterator[Moment]:
    """The last rank serves the requests of all others, until none needs it any more."""
    ends, buffer = Ends(stage), case.world - 1

    def trainer(rank: int) -> Callable[[], Any]:
        def program() -> Any:
            replies = []
            for request in range(REQUESTS):
                ends.send(rank, buffer, octets(rank + request))
                replies.append(ends.recv(rank, buffer, 1))
            ends.send(rank, buffer, octets(EXIT))
            return replies

        return program

    def serve() -> Any:
        requests: dict[str, int] = {}
        exits = 0
        while exits < buffer:
            got = ends.recv(buffer)
            if got["data"].array.tolist() == [EXIT]:
                exits += 1
                continue
            requests[str(got["src"])] = requests.get(str(got["src"]), 0) + 1
            ends.send(buffer, got["src"], got["data"], 1)
        return {"requests": requests, "exits": exits}

    yield from _played(case, {**{rank: trainer(rank) for rank in range(buffer)}, buffer: serve})


def _played(case: Case, parts: Mapping[int, Callable[[], Any]]) -> Iterator[Moment]:
    answers: dict[int, Answer] = {rank: {"ok": value} for rank, value in programs.run(parts).items()}
    yield from one_each(case, answers)


def unknown_backend(case: Case, stage: Stage) -> Iterator[Moment]:
    """What moves the data is said when ranks are started."""
    yield from one_each(case, dict.fromkeys(case.ranks, launches.start_on(case.inputs["backend"])))


def default_backend(case: Case, stage: Stage) -> Iterator[Moment]:
    """What moves the data if nothing else is said."""
    answer: Answer = {"ok": launches.default_backend()}
    yield from one_each(case, dict.fromkeys(case.ranks, answer))


REPLAYS: dict[str, dict[str, Replay]] = {
    "gfn_p2p": {
        "unknown_backend": unknown_backend,
        "default_backend": default_backend,
        "in_order_same_tag": in_order,
        "isend": isend,
        "request_reply": request_reply,
        "metadata_request_tag0_reply_tag1": request_reply,
        "fan_in_any_source": fan_in,
        "buffer_manager_loop": buffer_manager_loop,
        "send_*": one_message,
    },
}
