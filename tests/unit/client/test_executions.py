"""Streams of gang calls: one, those by which a gang's calls go, and those of a caller's own."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from tests.support.waiting import until
from tests.unit.client.answers import Answer, request, response, sent
from tests.unit.client.sidecars import WAIT, SidecarGang, executed

import rankbridge
from rankbridge import errors
from rankbridge._transport.framing import StreamLost, StreamOver
from rankbridge._transport.streams import Streams
from rankbridge._transport.threads.grpc_stream import GrpcStream
from rankbridge.v1 import error_pb2, gang_service_pb2 as pb, operation_service_pb2 as operation_pb, value_pb2

NONE = operation_pb.OperationResult(value=value_pb2.Value(none=value_pb2.NoneValue()))


def done(operation_id: str, size: int = 4) -> pb.CallResponse:
    members = [pb.MemberOutcome(rank=rank, result=NONE) for rank in range(size)]
    return pb.CallResponse(outcomes=pb.MemberOutcomes(operation_id=operation_id, members=members))


def doing(asked: Any, _: Any) -> pb.CallResponse:
    return done(asked.call.operation_id)


class Script:
    """Answers of a rank to streams that a test gives one by one, and what it was told."""

    def __init__(self, sidecars: SidecarGang) -> None:
        self.sidecar = sidecars[0]
        self.calls: list[str] = []
        self.withdrawn: list[str] = []
        self.streams = 0
        self._answers: SimpleQueue[Callable[[grpc.ServicerContext], pb.CallResponse | None]] = SimpleQueue()
        self.sidecar.answers["Execute"] = self._execute
        self.sidecar.answers["Call"] = doing

    def answer(self, code: str = "") -> None:
        """Answers the next call that is not yet; with an error, if there is a code."""
        error = pb.CallResponse(error=self.sidecar.error(code, "a test")) if code else None
        self._answers.put(lambda _: error or done(""))

    def break_off(self, status: grpc.StatusCode | None = None) -> None:
        """Ends the stream of the next call instead; with a status that is not OK, if there is one."""

        def broken(context: grpc.ServicerContext) -> None:
            if status is not None:
                context.abort(status, "a test")

        self._answers.put(broken)

    def unary(self) -> int:
        """How many calls came by themselves."""
        return len(self.sidecar.requests.get("Call", ()))

    def _execute(self, requests: Iterator[pb.ExecuteRequest], context: Any) -> Iterator[pb.ExecuteResponse]:
        self.streams += 1
        asked: SimpleQueue[int] = SimpleQueue()
        threading.Thread(target=self._read, args=(requests, asked), daemon=True).start()
        while number := asked.get(timeout=WAIT):
            answer = self._answer_while(context)
            given = answer(context) if answer else None
            if given is None:
                return
            yield executed(given, number)

    def _answer_while(self, context: Any) -> Callable[[grpc.ServicerContext], Any] | None:
        while context.is_active():
            with contextlib.suppress(queue.Empty):
                return self._answers.get(timeout=0.05)
        return None

    def _read(self, requests: Iterator[pb.ExecuteRequest], asked: SimpleQueue[int]) -> None:
        with contextlib.suppress(grpc.RpcError):
            for it in requests:
                if it.WhichOneof("kind") == "withdraw":
                    self.withdrawn.append(it.withdraw)
                else:
                    self.calls.append(it.call.call.operation_id)
                    asked.put(it.number)
        asked.put(0)


@pytest.fixture
def script(sidecars: SidecarGang) -> Script:
    return Script(sidecars)


@pytest.fixture
def blocking(sidecars: SidecarGang) -> Iterator[rankbridge.Gang]:
    with rankbridge.connect(sidecars.endpoints(), calls="gang", timeout=20) as it:
        yield it


# --- one stream ------------------------------------------------------------------------------------------------


class Responses:
    """What grpcio gives for a stream: an iterator that can be cancelled."""

    def __init__(self) -> None:
        self.sent: SimpleQueue[pb.ExecuteRequest | None] = SimpleQueue()
        self.cancelled = False
        self.opened = threading.Event()
        self._requests: Iterator[bytes] = iter(())
        self._come: SimpleQueue[bytes | Exception] = SimpleQueue()
        self._sending = threading.Thread(target=self._send, daemon=True)

    def open(self, requests: Iterator[bytes]) -> Responses:
        self._requests = requests
        self.opened.set()
        return self

    def _send(self) -> None:
        assert self.opened.wait(WAIT)
        for it in self._requests:
            self.sent.put(pb.ExecuteRequest.FromString(it))
        self.sent.put(None)

    def come(self, answer: bytes | Exception) -> None:
        self._come.put(answer)

    def take(self) -> None:
        """Takes what is to be sent, from now on."""
        self._sending.start()

    def cancel(self) -> None:
        self.cancelled = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        answer = self._come.get(timeout=WAIT)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Opened:
    """An execution, and the other end of it."""

    def __init__(self, *, taking: bool = True) -> None:
        self.responses = Responses()
        self.execution = GrpcStream(self.responses.open)
        if taking:
            self.responses.take()

    def send(self, operation_id: str) -> Answer:
        return sent(self.execution, operation_id)

    def sent(self) -> pb.ExecuteRequest | None:
        return self.responses.sent.get(timeout=WAIT)

    def asked(self) -> tuple[str, int]:
        """Operation id and number of the next request."""
        it = self.sent()
        assert it is not None
        return it.call.call.operation_id, it.number


def test_answers_are_told_apart_by_their_numbers() -> None:
    it = Opened()
    answers = [it.send(name) for name in "abc"]
    asked = [it.asked() for _ in "abc"]
    assert [name for name, _ in asked] == [*"abc"]
    assert len({number for _, number in asked}) == 3
    for name, number in reversed(asked):
        it.responses.come(response(number, name))
    assert [answer.wait(WAIT) for answer in answers] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("end", "error"), [(StopIteration(), StreamOver), (grpc.RpcError("a test"), grpc.RpcError)]
)
def test_the_end_fails_all_that_were_not_answered_and_none_is_sent_any_more(
    end: Exception, error: type[Exception]
) -> None:
    it = Opened()
    first, *others = [it.send(name) for name in "abc"]
    it.responses.come(response(it.asked()[1], "a"))
    it.responses.come(end)
    assert first.wait(WAIT) == "a"
    for answer in others:
        with pytest.raises(error):
            answer.wait(WAIT)
    assert it.execution.closed
    assert not it.execution.send(request("after"), Answer())
    # Who sends has been let go.
    until(lambda: it.sent() is None)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (response(99, ""), rankbridge.ProtocolError),
        (response(0, ""), rankbridge.ProtocolError),
        (b"\xff", StreamLost),
    ],
)
def test_an_answer_to_nothing_ends_the_stream(answer: bytes, error: type[Exception]) -> None:
    it = Opened()
    answered, waiting = it.send("answered"), it.send("waiting")
    it.responses.come(response(it.asked()[1], "1"))
    it.responses.come(answer)
    assert answered.wait(WAIT) == "1"
    with pytest.raises(error):
        waiting.wait(WAIT)
    until(lambda: it.execution.closed)
    assert it.responses.cancelled


def test_an_error_that_comes_before_anything_was_sent_is_that_of_every_call() -> None:
    it = Opened(taking=False)
    error = error_pb2.Error(code=error_pb2.ERROR_CODE_RESOURCE_EXHAUSTED, operation="execute")
    answers = [it.send(name) for name in "ab"]
    it.responses.come(pb.ExecuteResponse(error=error).SerializeToString())
    for answer in answers:
        with pytest.raises(rankbridge.ResourceExhaustedError):
            answer.wait(WAIT)
    # What was still to be sent is not any more.
    it.responses.take()
    until(lambda: it.sent() is None)


def test_closing_sends_nothing_more_and_what_was_sent_is_answered() -> None:
    it = Opened()
    answer = it.send("sent")
    it.execution.withdraw("sent", 1)
    it.execution.close()
    assert not it.execution.send(request("after"), Answer())
    first, second, end = it.sent(), it.sent(), it.sent()
    assert first is not None
    assert second is not None
    assert (first.call.call.operation_id, second.withdraw, end) == ("sent", "sent", None)
    it.responses.come(response(first.number, "answered"))
    assert answer.wait(WAIT) == "answered"


def test_threads_that_send_while_it_ends_are_all_told() -> None:
    it = Opened()
    begun_answers: SimpleQueue[Answer] = SimpleQueue()
    begun = threading.Event()

    def work() -> None:
        while it.execution.send(request("it"), answer := Answer()):
            begun_answers.put(answer)
            begun.set()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert begun.wait(WAIT)
    it.responses.come(StopIteration())
    for worker in workers:
        worker.join(WAIT)
        assert not worker.is_alive()
    while not begun_answers.empty():
        with pytest.raises(StreamOver):
            begun_answers.get().wait(WAIT)


def test_a_stream_that_has_as_many_as_a_rank_reads_gets_another_beside_it() -> None:
    opened: list[Opened] = []

    def open_one(rank: int) -> GrpcStream:
        opened.append(Opened())
        return opened[-1].execution

    streams = Streams(open_one)
    answers = [Answer() for _ in range(300)]
    for it in answers:
        assert streams.send(0, request("it"), it)
    assert len(opened) == 2
    first = opened[0]
    for _ in range(100):
        first.responses.come(response(first.asked()[1], "done"))
    until(lambda: sum(it.done() for it in answers) == 100)
    # There is room on the first again.
    again = Answer()
    assert streams.send(0, request("again"), again)
    assert again._stream is first.execution


# --- a gang's calls --------------------------------------------------------------------------------------------


def test_calls_one_after_another_go_by_one_stream(gang: Any, sidecars: SidecarGang) -> None:
    sidecars[0].answers["Call"] = doing
    for _ in range(5):
        gang.ping()
        gang.barrier(calls="gang")
    assert len(sidecars[0].requests["Execute"]) == 1
    assert len(sidecars[0].requests["Call"]) == 10


def test_no_thread_waits_for_the_answer_to_anothers_call(
    blocking: rankbridge.Gang, sidecars: SidecarGang
) -> None:
    arrived, go = threading.Semaphore(0), threading.Event()

    def call(asked: Any, _: Any) -> pb.CallResponse:
        if asked.call.operation_id != "short":
            arrived.release()
            go.wait(WAIT)
        return done("")

    sidecars[0].answers["Call"] = call
    with ThreadPoolExecutor(6) as threads:
        long = [threads.submit(blocking.ping) for _ in range(6)]
        for _ in long:
            assert arrived.acquire(timeout=WAIT)
        # All by one stream, on which what is done is answered.
        blocking.ping(operation_id="short")
        assert len(sidecars[0].requests["Execute"]) == 1
        go.set()
        for it in long:
            it.result(WAIT)


def test_tasks_wait_for_each_other_no_more(sidecars: SidecarGang) -> None:
    go = threading.Event()

    def call(asked: Any, _: Any) -> pb.CallResponse:
        if asked.call.operation_id != "short":
            go.wait(WAIT)
        return done("")

    sidecars[0].answers["Call"] = call

    async def work() -> None:
        async with await rankbridge.aconnect(sidecars.endpoints(), timeout=20) as gang:
            long = [asyncio.create_task(gang.ping()) for _ in range(3)]
            await gang.ping(operation_id="short")
            assert not any(it.done() for it in long)
            go.set()
            await asyncio.gather(*long)

    asyncio.run(work())


def test_a_rank_that_refuses_streams_is_called_without(
    gang: Any, sidecars: SidecarGang, script: Script
) -> None:
    def refuse(requests: Any, context: Any) -> Iterator[pb.ExecuteResponse]:
        yield pb.ExecuteResponse(
            error=sidecars[0].error("RESOURCE_EXHAUSTED", "too many streams", operation="execute")
        )

    sidecars[0].answers["Execute"] = refuse
    for _ in range(3):
        gang.ping()
    assert len(sidecars[0].requests["Execute"]) == 1
    assert script.unary() == 3


def test_another_exhaustion_is_the_calls_own(gang: Any, script: Script) -> None:
    script.answer("RESOURCE_EXHAUSTED")
    with pytest.raises(rankbridge.ResourceExhaustedError):
        gang.ping()
    assert script.unary() == 0


def test_what_was_not_begun_when_the_stream_ended_goes_by_itself(gang: Any, script: Script) -> None:
    script.break_off()
    gang.ping()
    assert (script.streams, script.unary()) == (1, 1)


def test_a_stream_that_breaks_fails_its_call_and_the_next_has_another(gang: Any, script: Script) -> None:
    script.break_off(grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(rankbridge.UnavailableError) as raised:
        gang.ping()
    assert raised.value.indefinite
    script.answer()
    # The end of the first stream may have ended the second, too: what it had not begun goes by itself.
    gang.ping()
    assert script.streams == 2


def test_an_interruption_withdraws_the_call(blocking: rankbridge.Gang, script: Script) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        until(lambda: script.calls == ["interrupted"])
        signal.pthread_kill(main, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        blocking.ping(operation_id="interrupted")
    interrupting.join()
    until(lambda: script.withdrawn == ["interrupted"])
    # It is not answered yet, and the next goes all the same.
    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(blocking.ping)
        until(lambda: len(script.calls) == 2)
        script.answer()
        script.answer()
        following.result(WAIT)
    assert script.streams == 1


def test_cancelling_a_task_withdraws_the_call(sidecars: SidecarGang, script: Script) -> None:
    async def work() -> None:
        async with await rankbridge.aconnect(sidecars.endpoints(), timeout=20) as gang:
            task = asyncio.create_task(gang.ping(operation_id="cancelled"))
            await asyncio.to_thread(until, lambda: script.calls == ["cancelled"])
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until, lambda: script.withdrawn == ["cancelled"])

    asyncio.run(work())


def test_closing_the_gang_fails_what_is_under_way(blocking: rankbridge.Gang, script: Script) -> None:
    with ThreadPoolExecutor(2) as threads:
        direct = threads.submit(blocking.ping, operation_id="direct")
        stream = blocking.stream()
        streamed = stream.submit("ping")
        until(lambda: len(script.calls) == 2)
        blocking.close()
        for failed in (direct.exception(WAIT), streamed.outcomes()[0].error):
            assert isinstance(failed, errors.CallCancelledError)
            assert failed.indefinite
        with pytest.raises(rankbridge.CallCancelledError):
            stream.submit("ping")


def test_a_program_ends_with_a_stream_open(sidecars: SidecarGang) -> None:
    sidecars[0].answers["Call"] = doing
    program = f"import rankbridge; rankbridge.connect({sidecars.unix!r}).ping()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=WAIT)


# --- a caller's own --------------------------------------------------------------------------------------------


def test_results_are_those_of_the_direct_calls(gang: Any, sidecars: SidecarGang) -> None:
    sidecars[0].answers["Call"] = doing
    with gang.stream() as stream:
        many = [stream.submit("barrier", operation_id=str(number)) for number in range(600)]
        assert [it.result() for it in many] == [None] * 600
        assert many[7].done()
        assert (many[7].operation, many[7].operation_id, many[7].ranks) == ("barrier", "7", (0, 1, 2, 3))
    sent = [it.call.operation_id for it in sidecars[0].requests["Call"]]
    assert sent == [str(number) for number in range(600)]
    assert len(sidecars[0].requests["Execute"]) == 1


def test_one_counts_as_answered_no_earlier_than_those_before_it(gang: Any, sidecars: SidecarGang) -> None:
    go = threading.Event()

    def call(asked: Any, _: Any) -> pb.CallResponse:
        if asked.call.operation_id == "first":
            assert go.wait(WAIT)
        return done("")

    sidecars[0].answers["Call"] = call
    with gang.stream() as stream:
        first, second = (stream.submit("ping", operation_id=it) for it in ("first", "second"))
        until(lambda: _come(second))
        assert not second.done()
        assert not first.done()
        go.set()
        assert second.result() is None
        assert first.done()


def _come(streamed: Any) -> bool:
    """Whether an answer to it has come, whatever is before it. In a loop, asking has it run."""
    return bool(streamed.done() or getattr(streamed, "_target", streamed)._pending.done())


def test_very_many_are_not_sent_before_some_are_answered(blocking: rankbridge.Gang, script: Script) -> None:
    sent = 0

    def work() -> None:
        nonlocal sent
        with blocking.stream() as stream:
            for _ in range(300):
                stream.submit("ping")
                sent += 1

    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        until(lambda: len(script.calls) == 256)
        # The one that is the limit was sent, and waits.
        assert sent == 255
        script.answer()
        until(lambda: len(script.calls) == 257)
        for _ in range(300):
            script.answer()
        working.result(WAIT)
    assert sent == 300


def test_the_first_failure_that_nobody_was_told_is_raised_at_the_end(gang: Any, script: Script) -> None:
    def work(*places: int) -> None:
        for code in ("", "UNKNOWN_REF", "", "MISMATCH", "NOT_FORMED"):
            script.answer(code)
        with gang.stream() as stream:
            begun = [stream.submit("ping") for _ in range(5)]
            for place in places:
                assert begun[place].outcomes()[0].error is not None

    with pytest.raises(rankbridge.UnknownRefError) as raised:
        work()
    assert isinstance(raised.value, rankbridge.GangError)
    with pytest.raises(rankbridge.MismatchError):
        work(1)
    with pytest.raises(rankbridge.NotFormedError):
        work(3, 1)
    work(3, 1, 4)


def test_a_failure_is_kept_however_much_went_well_since(gang: Any, script: Script) -> None:
    script.answer("UNKNOWN_REF")
    for _ in range(601):
        script.answer()

    def work() -> None:
        with gang.stream() as stream:
            for _ in range(601):
                last = stream.submit("ping")
            assert last.result() is None
            stream.submit("ping").result()
            # The last one is there, too, unless it was answered as soon as it was sent.
            assert len(list(_unreported(stream))) <= 2

    with pytest.raises(rankbridge.UnknownRefError):
        work()


def _unreported(stream: Any) -> Any:
    return getattr(stream, "_target", stream)._unreported


def test_a_block_that_fails_withdraws_what_it_has_begun_and_raises_its_own(gang: Any, script: Script) -> None:
    def leave() -> None:
        with gang.stream() as stream:
            for name in "abc":
                stream.submit("ping", operation_id=name)
            until(lambda: script.calls == [*"abc"] or stream.submit is None)
            threading.Thread(target=answer).start()
            raise ZeroDivisionError

    def answer() -> None:
        until(lambda: script.withdrawn == [*"cba"])
        for _ in "abc":
            script.answer("CANCELLED")

    with pytest.raises(ZeroDivisionError):
        leave()


def test_one_is_withdrawn_and_answered(gang: Any, script: Script) -> None:
    with gang.stream() as stream:
        first = stream.submit("ping", operation_id="first")
        first.cancel()
        until(lambda: script.withdrawn == ["first"] or first.done())
        script.answer("CANCELLED")
        with pytest.raises(rankbridge.CallCancelledError):
            first.result()
        first.cancel()
    assert script.withdrawn == ["first"]


def test_a_refused_stream_fails_its_calls_definitely(gang: Any, sidecars: SidecarGang) -> None:
    def refuse(requests: Any, context: Any) -> Iterator[pb.ExecuteResponse]:
        yield pb.ExecuteResponse(
            error=sidecars[0].error("RESOURCE_EXHAUSTED", "too many streams", operation="execute")
        )

    sidecars[0].answers["Execute"] = refuse
    with pytest.raises(rankbridge.ResourceExhaustedError) as raised, gang.stream() as stream:
        stream.submit("ping")
    assert not raised.value.indefinite


def test_a_stream_that_breaks_fails_what_is_under_way_and_the_next_has_another(
    gang: Any, script: Script
) -> None:
    with gang.stream() as stream:
        begun = [stream.submit("ping") for _ in range(3)]
        script.answer()
        script.break_off(grpc.StatusCode.UNAVAILABLE)
        kinds = [[type(it.error) for it in each.outcomes()] for each in begun]
        assert kinds[0] == [type(None)] * 4
        assert kinds[1:] == [[rankbridge.UnavailableError] * 4] * 2


def test_a_stream_that_breaks_while_it_is_sent_to_is_unavailable(gang: Any, sidecars: SidecarGang) -> None:
    def hang_up(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        next(requests)
        context.abort(grpc.StatusCode.UNAVAILABLE, "a test")
        yield

    sidecars[0].answers["Execute"] = hang_up
    for _ in range(5):
        with gang.stream() as stream:
            begun = [stream.submit("barrier", operation_id="x" * 3000) for _ in range(60)]
            kinds = {type(it.error) for each in begun for it in each.outcomes()}
        assert kinds == {rankbridge.UnavailableError}


@pytest.mark.parametrize(
    ("operation", "given", "options"),
    [
        ("unheard-of", None, {}),
        ("send", None, {"dst_rank_in_group": 0}),
        ("barrier", None, {"group": "world"}),
        ("barrier", None, {"calls": "ranks"}),
        ("broadcast_object", bytes(100_000), {}),
        ("all_reduce", [], {}),
    ],
)
def test_what_cannot_be_streamed_is_refused_and_nothing_is_sent(
    gang: Any, sidecars: SidecarGang, operation: str, given: Any, options: dict[str, Any]
) -> None:
    with gang.stream() as stream, pytest.raises((rankbridge.InvalidArgumentError, TypeError)):
        stream.submit(operation, given, **options)
    assert "Execute" not in sidecars[0].requests


def test_a_closed_stream_takes_nothing(gang: Any, sidecars: SidecarGang) -> None:
    sidecars[0].answers["Call"] = doing
    with gang.stream() as stream:
        stream.submit("ping")
    stream.close()
    with pytest.raises(rankbridge.InvalidArgumentError, match="closed"):
        stream.submit("ping")
    assert len(sidecars[0].requests["Call"]) == 1
