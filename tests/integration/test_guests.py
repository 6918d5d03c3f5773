"""Guests on real ranks: two who do not own the gang, and its owner."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy
import pytest
from tests.conftest import PATIENT
from tests.integration.test_strangers import resident_mib
from tests.support.gangs import RunningGang, up
from tests.support.proc import open_files
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang
from rankbridge.errors import (
    ResourceExhaustedError,
    UnknownOperationError,
    UnknownQueueError,
    UnknownSessionError,
)
from rankbridge.v1 import dtype_pb2, operation_service_pb2, ref_service_pb2
from rankbridge_server.cli import main
from rankbridge_server.core import guests
from rankbridge_server.core.limits import MAX_SESSIONS
from rankbridge_server.service.gate import bearing

TIMEOUT_S = 20.0
MAX_PENDING = 64
MAX_REFS = 400
GIVEN_BACK_S = 25.0
MIB = 1 << 20
OPTIONS = [
    *("--max-pending", str(MAX_PENDING), "--max-refs", str(MAX_REFS)),
    *("--max-bytes", str(512 * MIB), "--max-shared-bytes", str(64 * MIB)),
]
MEMORY_MIB = 64


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tokens of a gang with two guests."""
    file = tmp_path_factory.mktemp("tokens") / "gang"
    assert main(["tokens", str(file)]) == 0
    for new in ("alice=drive", "bob=drive", "carol=observe", "dave=drive", "eve=drive"):
        assert main(["tokens", str(file), "--guest", new]) == 0
    return file


@pytest.fixture(scope="module")
def running(tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    options = [*PATIENT, "--token-file", str(tokens), *OPTIONS]
    with up(tmp_path_factory.mktemp("guests"), 2, "gloo", options) as gang:
        yield gang


@pytest.fixture
def owner(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.endpoints_file, timeout=TIMEOUT_S) as gang:
        yield gang


Guest = Callable[..., Gang]


@pytest.fixture
def guest(running: RunningGang, tokens: Path) -> Iterator[Guest]:
    """Connects as a guest, by TCP."""
    with ExitStack() as stack:

        def connect(name: str, **options: Any) -> Gang:
            token = tokens.with_name(f"gang.{name}").read_text().strip()
            it = rankbridge.connect(running.tcp, token=token, timeout=TIMEOUT_S, **options)
            return stack.enter_context(it)

        yield connect


def test_the_files_of_tokens_are_for_their_owner_alone(tokens: Path) -> None:
    assert {it.stat().st_mode & 0o777 for it in tokens.parent.iterdir()} == {0o600}


def test_two_guests_with_the_same_names_do_not_meet(guest: Guest) -> None:
    found = {}
    for number, name in enumerate(("alice", "bob"), 1):
        gang = guest(name)
        for rank in gang:
            assert rank.open_session("mine") == "mine"
        refs = gang.create("float32", (2,), init=rankbridge.full(number))
        gang.new_queue("letters", writer_rank_in_group=0)
        gang[0].enqueue("letters", name)
        sums = gang.all_reduce(refs, operation_id="the-same")
        found[name] = [numpy.asarray(gang[1].get(sums[1])).tolist(), gang[1].dequeue("letters")]
        assert gang.find("the-same").poll()[0].state == "done"
        assert [it.name for it in gang[0].queues()].count("letters") == 1
    assert found == {"alice": [[2.0, 2.0], "alice"], "bob": [[4.0, 4.0], "bob"]}


def test_a_guest_names_nothing_of_anothers(guest: Guest, owner: Gang) -> None:
    alice, bob = guest("alice"), guest("bob")
    (ref, _) = alice.create("float32", (2,))
    mine = owner.create("float32", (2,))[0]
    alice[0].submit("recv", operation_id="alone", timeout=TIMEOUT_S)
    alice.new_queue("hers", writer_rank_in_group=0)
    for theirs in (ref, mine):
        with pytest.raises(UnknownSessionError):
            bob[0].get(theirs)
        with pytest.raises(UnknownSessionError):
            bob[0].close_session(theirs.session_id)
    for call in (bob[0].poll, bob[0].await_operation, bob[0].cancel):
        with pytest.raises(UnknownOperationError):
            call("alone")
    with pytest.raises(UnknownQueueError):
        bob[0].shut_down_queue("hers")
    assert {it.session_id for it in bob[0].status().sessions}.isdisjoint({ref.session_id, mine.session_id})
    # The owner names all by the guest's name.
    assert owner[0].cancel("~alice/alone") is True
    assert numpy.asarray(owner[0].get(ref_of(ref, "~alice/"))).tolist() == [0.0, 0.0]


def ref_of(ref: rankbridge.Ref, home: str) -> rankbridge.Ref:
    """A ref as its owner knows it, in the words of the gang's owner."""
    return rankbridge.Ref(ref.id, ref.rank, home + ref.session_id, ref.dtype, ref.shape, ref.device)


def test_who_observes_sees_and_does_nothing(guest: Guest) -> None:
    carol = guest("carol", session=False)
    assert [it.generation_state for it in carol.status()] == ["formed", "formed"]
    with pytest.raises(rankbridge.RankBridgeError, match="the caller may observe; the call needs drive"):
        carol.barrier()


@contextmanager
def stubs(running: RunningGang, tokens: Path, name: str) -> Iterator[Callable[..., Any]]:
    """Gives a function that begins a call to rank 0, as a guest; with `end=False`, the call's requests do not end."""
    token = tokens.with_name(f"gang.{name}").read_text().strip()
    over = threading.Event()
    with ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel(running.tcp_targets[0]))
        stack.callback(over.set)

        def begin(method: str, sent: bytes, end: bool = True) -> Any:
            call = channel.stream_stream(f"/rankbridge.v1.{method}", bytes, bytes)
            requests = iter([sent]) if end else _without_end(sent, over)
            return call(requests, metadata=bearing(token), timeout=TIMEOUT_S)

        yield begin


def _without_end(sent: bytes, over: threading.Event) -> Iterator[bytes]:
    yield sent
    over.wait()


def test_each_limit_of_a_guest_is_its_own(guest: Guest, owner: Gang) -> None:
    dave, bob = guest("dave"), guest("bob")
    refused = pytest.raises(ResourceExhaustedError, match="of guest 'dave'")
    kept = [dave[0].create("uint8", ()) for _ in range(MAX_REFS // guests.SHARE)]
    with refused:
        dave[0].create("uint8", ())
    dave[0].release(kept)
    begun = [
        dave[0].submit("recv", tag=at, operation_id=f"recv-{at}", timeout=TIMEOUT_S)
        for at in range(MAX_PENDING // guests.SHARE)
    ]
    with refused:
        dave[0].submit("recv", operation_id="more", timeout=TIMEOUT_S)
    for operation_id in begun:
        assert dave[0].cancel(operation_id) is True
    for number in range(guests.MAX_GROUPS):
        dave.new_group(f"of-dave-{number}", [0])
    with refused:
        dave.new_group("one-more", [0])
    for number in range(guests.MAX_QUEUES):
        dave.new_queue(f"queue-{number}", writer_rank_in_group=0, max_chunk_bytes=64, max_chunks=1)
    with refused:
        dave.new_queue("one-more", writer_rank_in_group=0, max_chunk_bytes=64, max_chunks=1)
    # The others have their own.
    for gang in (bob, owner):
        gang.barrier()
        gang[0].create("uint8", ())
        gang.new_queue("of-others", writer_rank_in_group=0)
        for rank in gang:
            rank.shut_down_queue("of-others")
        gang.destroy_group(gang.new_group("of-others", [0, 1]))


def test_a_tensor_that_nobody_reads_counts_although_it_is_released(
    running: RunningGang, tokens: Path, guest: Guest, owner: Gang
) -> None:
    dave = guest("dave")
    limit = int(limit_of(running, "--max-bytes")) // guests.SHARE
    ref = dave[0].create("uint8", (limit // 2 - 1,))
    get = ref_service_pb2.GetTensorRequest(session_id=ref.session_id, ref_id=ref.id).SerializeToString()
    with stubs(running, tokens, "dave") as begin:
        reading = begin("RefService/GetTensor", get)
        assert ref_service_pb2.GetTensorResponse.FromString(next(reading)).HasField("tensor")
        assert dave[0].release(ref) == 1
        more = dave[0].create("uint8", (limit // 2 - 1,))
        with pytest.raises(ResourceExhaustedError, match="bytes of tensors of guest 'dave'"):
            dave[0].create("uint8", (limit // 2 - 1,))
        owner[0].release(owner[0].create("uint8", (limit // 2 - 1,)))
    until(lambda: not [it for it in owner[0].status().sessions if it.bytes > more.shape[0]])
    dave[0].release(more)


def limit_of(running: RunningGang, option: str) -> str:
    """What the gang of these tests was given for an option."""
    return OPTIONS[OPTIONS.index(option) + 1]


def test_shared_memory_of_a_guest_is_limited(
    running: RunningGang, tokens: Path, guest: Guest, owner: Gang
) -> None:
    eve = guest("eve")
    assert eve[0].open_session("hers") == "hers"
    share = int(limit_of(running, "--max-shared-bytes")) // guests.SHARE
    ask = ref_service_pb2.OpenSharedMemoryRequest(session_id="hers", bytes=share // 2).SerializeToString()
    with stubs(running, tokens, "eve") as begin:
        answers = [
            ref_service_pb2.OpenSharedMemoryResponse.FromString(
                next(begin("RefService/OpenSharedMemory", ask))
            )
            for _ in range(3)
        ]
    assert [it.WhichOneof("outcome") == "error" for it in answers] == [False, False, True]
    assert "bytes of shared memory of guest 'eve'" in answers[-1].error.message
    eve[0].close_session("hers")


@pytest.mark.sampled
def test_operations_that_a_guest_leaves_behind_are_withdrawn(
    running: RunningGang, tokens: Path, owner: Gang
) -> None:
    submit = operation_service_pb2.SubmitRequest()
    submit.operation.recv.call.operation_id = "left"
    with stubs(running, tokens, "eve") as begin:
        answer = operation_service_pb2.SubmitResponse.FromString(
            next(begin("OperationService/Submit", submit.SerializeToString()))
        )
    assert answer.WhichOneof("outcome") == "operation_id"
    until(lambda: owner[0].poll("~eve/left").state == "done")
    with pytest.raises(rankbridge.errors.CallCancelledError):
        owner[0].await_operation("~eve/left")


def test_a_guest_watches_its_own_operations_alone(guest: Guest, owner: Gang) -> None:
    alice, bob = guest("alice"), guest("bob")
    with alice[0].watch_record(interval=0.05) as hers, owner[0].watch_record(interval=0.05) as all_of_them:
        bob.barrier(operation_id="his")
        alice.barrier(operation_id="hers")
        growth = next(it for it in hers if it.operations)
        assert [it.operation_id for it in growth.operations] == ["hers"]
        seen: list[str] = []
        while len(seen) < 2:
            seen += [it.operation_id for it in next(all_of_them).operations]
        assert seen == ["~bob/his", "~alice/hers"]


@pytest.mark.sampled
def test_sessions_of_a_guest_are_limited_and_closed_when_it_has_left(
    running: RunningGang, tokens: Path, owner: Gang
) -> None:
    with stubs(running, tokens, "eve") as begin:
        answers = [
            ref_service_pb2.OpenSessionResponse.FromString(next(begin("RefService/OpenSession", b"")))
            for _ in range(MAX_SESSIONS // guests.SHARE + 1)
        ]
    assert answers[0].WhichOneof("outcome") == "session_id"
    assert "of guest 'eve'" in answers[-1].error.message
    left = time.monotonic()
    until(lambda: not any(it.session_id.startswith("~eve/") for it in owner[0].status().sessions))
    assert time.monotonic() - left < GIVEN_BACK_S


def test_who_takes_all_it_can_holds_up_nobody_and_leaves_nothing(
    running: RunningGang, tokens: Path, guest: Guest
) -> None:
    alice, pid = guest("alice"), running.pids[0]
    alice.barrier()
    memory, files = resident_mib(pid), len(open_files(pid))
    with stubs(running, tokens, "eve") as begin:
        header = ref_service_pb2.PutTensorRequest()
        header.header.tensor.dtype = dtype_pb2.DTYPE_UINT8
        header.header.tensor.shape.append(64 * MIB)
        puts = [begin("RefService/PutTensor", header.SerializeToString(), end=False) for _ in range(64)]
        streams = [begin("GangService/Execute", b"", end=False) for _ in range(64)]
        waits = [begin("RankService/WatchEvents", b"") for _ in range(64)]
        for calls in (puts, streams, waits):
            until(lambda calls=calls: sum(map(_was_refused, calls)) == len(calls) - guests.MAX_STREAMS)  # type: ignore[misc]
        took = []
        for _ in range(100):
            since = time.perf_counter()
            alice.barrier()
            took.append(time.perf_counter() - since)
        assert statistics.median(took) < 0.5
        assert resident_mib(pid) <= memory + MEMORY_MIB
    until(lambda: len(open_files(pid)) <= files + 2)
    alice.barrier()


def _was_refused(call: Any) -> bool:
    return call.done() and call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
