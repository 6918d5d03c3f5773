"""Streams without gRPC, as the client has them: by connections to a rank that a test plays."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.interrupter import Interrupter
from tests.support.proc import open_files, thread_names
from tests.support.waiting import until
from tests.unit.client.answers import Answer, request, sent
from tests.unit.client.local_rank import END, Connection, LocalRank
from tests.unit.client.sidecars import WAIT

import rankbridge
from rankbridge._transport.aio.local_stream import AsyncLocalStream
from rankbridge._transport.framing import StreamLost, StreamOver
from rankbridge._transport.local import LocalStreams, dial
from rankbridge._transport.threads.local_stream import LocalStream
from rankbridge.v1 import error_pb2, gang_service_pb2 as pb

INTERRUPTIONS = 200
MANY = 300
LARGE = 60_000
REFUSAL = pb.ExecuteResponse(
    error=error_pb2.Error(code=error_pb2.ERROR_CODE_RESOURCE_EXHAUSTED, operation="execute")
).SerializeToString()


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[LocalRank]:
    it = LocalRank(tmp_path)
    yield it
    it.close()


@pytest.fixture
def streams(rank: LocalRank) -> Iterator[LocalStreams[LocalStream]]:
    it = LocalStreams([rank.target], LocalStream)
    yield it
    it.close()


@pytest.fixture
def stream(streams: LocalStreams[LocalStream]) -> LocalStream:
    opened = streams.open(0)
    assert opened is not None
    return opened


@pytest.fixture
def connection(rank: LocalRank, stream: LocalStream) -> Connection:
    return rank.accept()


def exchange(connection: Connection, answers: Sequence[str]) -> list[str]:
    """Answers each request when all are there, the last first; gives the ids of what was asked."""
    taken = [connection.taken() for _ in answers]
    for it, text in reversed(list(zip(taken, answers, strict=True))):
        connection.answer(it.number, text)
    return [it.call.call.operation_id for it in taken]


def answer_all(connection: Connection, taken: Sequence[pb.ExecuteRequest]) -> None:
    for it in taken:
        connection.answer(it.number, it.call.call.operation_id)


def close(connection: Connection) -> None:
    connection.close()


def break_off_in_a_length(connection: Connection) -> None:
    connection.say(b"\0\0")
    connection.close()


def break_off_in_an_answer(connection: Connection) -> None:
    connection.say(b"\0\0\0\x09abc")
    connection.close()


def say_nonsense(connection: Connection) -> None:
    connection.say(b"\xff" * 8)


def end(connection: Connection) -> None:
    connection.say(END)


ENDS: list[tuple[Callable[[Connection], None], type[Exception]]] = [
    (end, StreamOver),
    (close, StreamLost),
    (break_off_in_a_length, StreamLost),
    (break_off_in_an_answer, StreamLost),
    (say_nonsense, StreamLost),
]


# --- in threads ------------------------------------------------------------------------------------------------


def test_answers_are_told_apart_by_their_numbers(stream: LocalStream, connection: Connection) -> None:
    answers = [sent(stream, it) for it in "abc"]
    assert exchange(connection, ["1", "2", "3"]) == [*"abc"]
    assert [answer.wait(WAIT) for answer in answers] == ["1", "2", "3"]


def test_an_answer_of_any_size_comes_as_it_was(stream: LocalStream, connection: Connection) -> None:
    large = "0123456789" * 500_000
    answers = [sent(stream, it) for it in "abc"]
    with ThreadPoolExecutor(1) as telling:
        answers_future = telling.submit(exchange, connection, ["1", large, "3"])
        assert [answer.wait(WAIT) for answer in answers] == ["1", large, "3"]
        assert answers_future.result(WAIT) == [*"abc"]


@pytest.mark.parametrize(("ending", "error"), ENDS)
def test_the_end_fails_what_was_not_answered_and_nothing_is_sent_any_more(
    stream: LocalStream,
    connection: Connection,
    ending: Callable[[Connection], None],
    error: type[Exception],
) -> None:
    answers = [sent(stream, it) for it in "abc"]
    connection.answer(connection.taken().number, "a")
    ending(connection)
    assert answers[0].wait(WAIT) == "a"
    for answer in answers[1:]:
        with pytest.raises(error):
            answer.wait(WAIT)
    until(lambda: stream.over)
    assert stream.closed
    assert not stream.send(request("after"), Answer())
    # Too late, and no error.
    stream.withdraw("b", 2)
    stream.close()
    stream.hang_up()


def test_what_nobody_has_asked_ends_the_stream(stream: LocalStream, connection: Connection) -> None:
    first, second = sent(stream, "first"), sent(stream, "second")
    connection.answer(connection.taken().number, "1")
    connection.answer(99, "nobody has asked")
    assert first.wait(WAIT) == "1"
    with pytest.raises(rankbridge.ProtocolError):
        second.wait(WAIT)
    until(lambda: stream.over)
    assert not stream.send(request("after"), Answer())


def test_a_refusal_answers_also_what_could_not_be_sent_any_more(
    stream: LocalStream, connection: Connection
) -> None:
    connection.say_message(REFUSAL)
    connection.say(END)
    connection.close()
    answer = sent(stream, "first")
    with pytest.raises(rankbridge.ResourceExhaustedError):
        answer.wait(WAIT)
    until(lambda: stream.over)


@pytest.mark.parametrize("closing", [LocalStream.close, LocalStream.hang_up])
def test_one_by_which_nothing_was_sent_is_closed(
    stream: LocalStream, connection: Connection, closing: Callable[[LocalStream], None]
) -> None:
    closing(stream)
    assert stream.over
    assert connection.take() is None
    assert not stream.send(request("after"), Answer())
    closing(stream)


def test_who_sends_does_not_wait_for_a_rank_that_reads_nothing(
    stream: LocalStream, connection: Connection
) -> None:
    with ThreadPoolExecutor(1) as sending:
        answers = sending.submit(lambda: [sent(stream, str(it), LARGE) for it in range(MANY)]).result(WAIT)
    stream.withdraw("7", 7)
    stream.close()
    taken = [connection.taken() for _ in range(MANY)]
    assert [it.call.call.operation_id for it in taken] == [str(it) for it in range(MANY)]
    assert connection.taken_id() == "7"
    assert connection.take() is None
    answer_all(connection, taken)
    connection.say(END)
    assert [answer.wait(WAIT) for answer in answers] == [str(it) for it in range(MANY)]


def test_a_rank_that_never_reads_is_hung_up_on(stream: LocalStream, connection: Connection) -> None:
    answers = [sent(stream, str(it), LARGE) for it in range(MANY)]
    stream.hang_up()
    for answer in answers:
        with pytest.raises(StreamLost):
            answer.wait(WAIT)


def test_closing_ends_the_requests_and_what_was_sent_is_answered(
    stream: LocalStream, connection: Connection
) -> None:
    answer = sent(stream, "a")
    stream.close()
    assert not stream.send(request("after"), Answer())
    taken = connection.taken()
    assert connection.take() is None
    connection.answer(taken.number, "a")
    connection.say(END)
    assert answer.wait(WAIT) == "a"


def test_all_are_hung_up_on_when_the_gang_is_closed(
    streams: LocalStreams[LocalStream], stream: LocalStream, connection: Connection
) -> None:
    answer = sent(stream, "a")
    streams.close()
    with pytest.raises(StreamLost):
        answer.wait(WAIT)
    assert connection.taken_id() == "a"
    assert connection.take() is None
    # One that is opened all the same is, too.
    late = streams.open(0)
    assert late is not None
    assert not late.send(request("late"), Answer())


def test_nothing_is_left_of_one_that_has_ended(rank: LocalRank, streams: LocalStreams[LocalStream]) -> None:
    files, threads = set(open_files()), set(thread_names())
    for large in (False, True):
        opened = streams.open(0)
        assert opened is not None
        connection = rank.accept()
        for it in range(MANY if large else 1):
            sent(opened, str(it), LARGE)
        connection.close()
    # Those of a test before this one may end meanwhile.
    until(lambda: set(open_files()) <= files and set(thread_names()) <= threads)


def test_interruptions_leave_whole_messages_in_order(
    stream: LocalStream, connection: Connection, interrupter: Interrupter
) -> None:
    def echo() -> None:
        while (taken := connection.take()) is not None:
            connection.answer(taken.number, taken.call.call.operation_id)

    echoing = threading.Thread(target=echo)
    echoing.start()
    numbers = iter(range(10**9))

    def call() -> None:
        number = str(next(numbers))
        assert sent(stream, number, LARGE).wait(WAIT) == number

    for _ in range(INTERRUPTIONS):
        interrupter.interrupt(call)
    call()
    stream.close()
    echoing.join(WAIT)
    assert not echoing.is_alive()


# --- in an event loop ------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def opened(rank: LocalRank) -> AsyncIterator[tuple[AsyncLocalStream, Connection]]:
    streams = LocalStreams([rank.target], AsyncLocalStream)
    it = streams.open(0)
    assert it is not None
    yield it, rank.accept()
    streams.close()


def test_answers_in_a_loop(rank: LocalRank) -> None:
    large = "0123456789" * 500_000

    async def work() -> None:
        async with opened(rank) as (stream, connection):
            answers = [sent(stream, it) for it in "abc"]
            answers_future = asyncio.create_task(asyncio.to_thread(exchange, connection, ["1", large, "3"]))
            assert [await answer.awaited(WAIT) for answer in answers] == ["1", large, "3"]
            assert await answers_future == [*"abc"]

    asyncio.run(work())


@pytest.mark.parametrize(("ending", "error"), ENDS)
def test_the_end_in_a_loop(
    rank: LocalRank, ending: Callable[[Connection], None], error: type[Exception]
) -> None:
    async def work() -> None:
        async with opened(rank) as (stream, connection):
            answers = [sent(stream, it) for it in "ab"]
            connection.answer((await asyncio.to_thread(connection.taken)).number, "a")
            ending(connection)
            assert await answers[0].awaited(WAIT) == "a"
            with pytest.raises(error):
                await answers[1].awaited(WAIT)
            assert stream.over
            assert not stream.send(request("after"), Answer())
            stream.withdraw("b", 2)
            stream.close()

    asyncio.run(work())


def test_a_rank_that_reads_nothing_in_a_loop(rank: LocalRank) -> None:
    async def work() -> None:
        async with opened(rank) as (stream, connection):
            answers = [sent(stream, str(it), LARGE) for it in range(MANY)]
            stream.withdraw("7", 7)
            stream.close()
            *taken, last = await asyncio.to_thread(lambda: [connection.taken() for _ in range(MANY + 1)])
            assert [it.call.call.operation_id for it in taken] == [str(it) for it in range(MANY)]
            assert last.withdraw == "7"
            assert await asyncio.to_thread(connection.take) is None
            await asyncio.to_thread(answer_all, connection, taken)
            connection.say(END)
            assert [await answer.awaited(WAIT) for answer in answers] == [str(it) for it in range(MANY)]

    asyncio.run(work())


def test_a_backlog_is_not_copied_to_be_written(rank: LocalRank) -> None:
    async def work() -> int:
        async with opened(rank) as (stream, connection):
            for it in range(64):
                sent(stream, str(it), 1 << 19)
            tracemalloc.start()
            try:
                taken = await asyncio.to_thread(lambda: [connection.taken_id() for _ in range(64)])
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert taken == [str(it) for it in range(64)]
            return peak

    # 32 MiB wait. A bytearray that shrinks copies what is left of it once, when that is half.
    assert asyncio.run(work()) < 28 << 20


def test_a_refusal_in_a_loop(rank: LocalRank) -> None:
    async def work() -> None:
        async with opened(rank) as (stream, connection):
            connection.say_message(REFUSAL)
            await asyncio.to_thread(connection.take)
            assert stream.over

    asyncio.run(work())


# --- where there are none --------------------------------------------------------------------------------------


def test_a_rank_elsewhere_has_none() -> None:
    assert dial("127.0.0.1:1") is None
    assert dial("unix-abstract:rank") is None


def test_one_that_is_not_there_or_cannot_be(tmp_path: Path) -> None:
    assert dial(f"unix:{tmp_path}/nobody") is None
    assert dial(f"unix:{tmp_path}/{'long' * 40}") is None
    assert dial("unix:a\0b") is None
    (tmp_path / "file.stream").touch()
    assert dial(f"unix:{tmp_path}/file") is None


@pytest.mark.parametrize("form", ["unix:{}", "unix://{}"])
def test_forms_of_targets(rank: LocalRank, form: str) -> None:
    sock = dial(form.format(rank.target.removeprefix("unix:")))
    assert sock is not None
    sock.close()


def test_a_rank_that_accepts_nobody_is_not_waited_for(rank: LocalRank) -> None:
    with contextlib.ExitStack() as callers:
        found: list[socket.socket | None] = []
        for _ in range(8):
            sock = dial(rank.target)
            if sock is not None:
                callers.callback(sock.close)
            found.append(sock)
        assert found[0] is not None
        assert found[-1] is None


def test_what_is_encrypted_goes_by_grpc_alone() -> None:
    assert LocalStreams((), LocalStream).open(0) is None
