"""Tensors by memory that real ranks share with the Python client."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import numpy.typing as npt
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RunningGang, up
from tests.support.processes import stop, watched
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, Tensor
from rankbridge._plan.dtypes import DTYPES
from rankbridge.v1 import dtype_pb2, error_pb2, ref_service_pb2 as ref_pb, ref_service_pb2_grpc, tensor_pb2

MIB = 1 << 20
DEADLINE_S = 60.0


@pytest.fixture(scope="module", params=["fake", "gloo"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGang]:
    """A gang of two, on each backend in turn."""
    with up(tmp_path_factory.mktemp("memory"), 2, request.param, PATIENT) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, timeout=DEADLINE_S) as it:
        yield it


def random(nbytes: int) -> npt.NDArray[Any]:
    return np.frombuffer(os.urandom(nbytes), np.uint8)


def fetched(rank: rankbridge.Rank, ref: rankbridge.Ref) -> npt.NDArray[Any]:
    array = rank.get(ref)
    assert isinstance(array, np.ndarray)
    return array


_NAME = "/memfd:rankbridge-tensor"


def memory(pid: int) -> dict[int, int]:
    """What a process shares, by inode: bytes."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if str(fd.readlink()).startswith(_NAME):
                state = fd.stat()
                found[state.st_ino] = state.st_size
    return found


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_dtype_and_shape_comes_back(gang: Gang, dtype: str) -> None:
    itemsize = DTYPES[dtype].itemsize
    count = MIB // itemsize
    data = bytes([0, 1]) * (MIB // 2) if dtype == "bool" else os.urandom(MIB)
    for shape, given in (
        ((count,), data),
        ((2, 1, count // 2), data),
        ((), data[:itemsize]),
        ((4, 0, 2), b""),
    ):
        tensor = Tensor(dtype, shape, given)
        ref = gang[1].put(tensor)
        assert (ref.dtype, ref.shape) == (dtype, shape)
        assert gang[1].get(ref, to="tensor") == tensor
    assert gang[1].transfers == rankbridge.Transfers(shared=4)
    assert gang[0].transfers == rankbridge.Transfers()


def test_what_is_not_contiguous_or_not_little_endian(gang: Gang) -> None:
    whole = np.arange(MIB, dtype=np.float64).reshape(1024, 1024)
    for given in (whole.T, whole[::2, 1:], whole[::-1], whole.astype(">f8"), np.asfortranarray(whole)):
        ref = gang[0].put(given)
        assert np.array_equal(fetched(gang[0], ref), given)
    assert gang[0].transfers == rankbridge.Transfers(shared=10)


def test_in_every_form(gang: Gang) -> None:
    torch = pytest.importorskip("torch")
    given = torch.arange(MIB, dtype=torch.float32).to(torch.bfloat16).reshape(1024, 1024).t()
    ref = gang[0].put(given)
    assert torch.equal(gang[0].get(ref, to="torch"), given)
    tensor = gang[0].get(ref, to="tensor")
    assert torch.equal(tensor.torch(), given)
    assert gang[0].transfers == rankbridge.Transfers(shared=3)


def test_64_mib(gang: Gang) -> None:
    given = random(64 * MIB)
    refs = gang.put([given, given[::-1]])
    first, second = (fetched(gang[ref.rank], ref) for ref in refs)
    assert np.array_equal(first, given)
    assert np.array_equal(second, given[::-1])
    assert [rank.transfers.shared for rank in gang] == [2, 2]


def test_an_array_stays_what_it_is_whatever_comes_after_it(gang: Gang) -> None:
    given = [random(2 * MIB) for _ in range(7)]
    refs = [gang[0].put(each) for each in given]
    arrays = [fetched(gang[0], ref) for ref in refs]
    again = [fetched(gang[0], ref) for ref in refs]
    arrays[0][:] = 7
    assert np.all(arrays[0] == 7)
    for array, each in zip([*arrays[1:], *again], [*given[1:], *given], strict=True):
        assert np.array_equal(array, each)
    assert gang[0].transfers == rankbridge.Transfers(shared=21)


def test_an_array_outlives_its_session_and_its_gang(running: RunningGang) -> None:
    given = random(2 * MIB)
    with rankbridge.connect(running.description) as gang:
        ref = gang[0].put(given)
        array, other = fetched(gang[0], ref), fetched(gang[0], ref)
        del other
        pid = gang[0].status().pid
        inodes = memory(pid)
        assert mapped(inodes) == set(inodes)
    assert len(inodes) == 3
    assert not memory(pid)
    assert np.array_equal(array, given)
    array[0] ^= 1
    assert len(mapped(inodes)) == 1
    del array
    assert not mapped(inodes)


def mapped(inodes: Iterable[int]) -> set[int]:
    """Those that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {int(line.split()[4]) for line in lines if _NAME in line} & set(inodes)


def test_many_threads(gang: Gang) -> None:
    given = [random(MIB + 8 * index) for index in range(8)]

    def turn(index: int) -> None:
        for _ in range(10):
            ref = gang[index % 2].put(given[index])
            assert np.array_equal(fetched(gang[index % 2], ref), given[index])
            gang.release(ref)

    with ThreadPoolExecutor(len(given)) as pool:
        list(pool.map(turn, range(len(given))))
    assert [rank.transfers.shared for rank in gang] == [80, 80]


def test_in_other_sessions_of_the_gang(gang: Gang) -> None:
    given = random(MIB)
    with gang.session():
        ref = gang[0].put(given)
        inside = fetched(gang[0], ref)
    assert np.array_equal(inside, given)
    with pytest.raises(rankbridge.UnknownSessionError):
        gang[0].get(ref)
    assert gang[0].transfers.shared == 2
    assert np.array_equal(fetched(gang[0], gang[0].put(given)), given)


def test_a_put_tensor_takes_part_in_collectives(gang: Gang) -> None:
    refs = gang.put([np.full(MIB, rank + 1.0, np.float32) for rank in range(2)])
    sums = gang.all_reduce(refs)
    assert all(np.all(array == 3.0) for array in gang.get(sums))
    assert [float(fetched(gang[ref.rank], ref)[0]) for ref in refs] == [1.0, 2.0]
    in_place = gang.all_reduce(refs, in_place=True)
    assert all(np.all(array == 3.0) for array in gang.get(in_place))


def test_released_refs_make_room_for_others(gang: Gang) -> None:
    pid = gang[0].status().pid
    given = random(4 * MIB)
    for _ in range(12):
        gang.release(gang[0].put(given))
    # One that is a tensor's while the next is written.
    assert len(memory(pid)) <= 2


def test_errors_are_those_of_a_stream(gang: Gang) -> None:
    bad = Tensor("bool", (MIB,), b"\2" * MIB)
    with pytest.raises(rankbridge.InvalidArgumentError, match="neither 0 nor 1"):
        gang[0].put(bad)
    with pytest.raises(rankbridge.InvalidArgumentError, match="no such device"):
        gang[0].put(random(MIB), device="tpu")
    ref = gang[0].put(random(MIB))
    gang.release(ref)
    with pytest.raises(rankbridge.ReleasedRefError):
        gang[0].get(ref)
    assert len(gang[0].put(random(MIB)).shape) == 1
    assert len(gang[0].list_refs()) == 1


def test_for_asyncio(running: RunningGang) -> None:
    given = random(2 * MIB)

    async def program() -> None:
        async with rankbridge.aconnect(running.description, timeout=DEADLINE_S) as gang:
            refs = await gang.put([given, given])
            arrays = await asyncio.gather(*(gang[ref.rank].get(ref) for ref in refs * 4))
            assert all(np.array_equal(np.asarray(array), given) for array in arrays)
            assert [rank.transfers for rank in gang] == [rankbridge.Transfers(shared=5)] * 2
        async with rankbridge.aconnect(running.description, shared_memory=False) as gang:
            (array,) = await gang.get([await gang[0].put(given)])
            assert np.array_equal(np.asarray(array), given)
            assert gang[0].transfers == rankbridge.Transfers()

    asyncio.run(program())


def test_who_does_not_ask_for_it_or_cannot_have_it(running: RunningGang) -> None:
    given = random(MIB)
    for target, options in (
        (running.targets, {"shared_memory": False}),
        (running.targets, {"session": False}),
        (running.tcp, {}),
    ):
        with rankbridge.connect(target, **options) as gang:  # type: ignore[arg-type]
            ref = gang[0].put(given)
            assert np.array_equal(fetched(gang[0], ref), given)
            gang.release(ref)
            assert gang[0].transfers == rankbridge.Transfers()


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (["--no-shared-memory"], "shares no memory"),
        (["--max-shared-bytes", str(MIB)], "too many bytes of shared memory"),
    ],
)
def test_a_rank_without_shared_memory_or_room_gets_streams(
    tmp_path: Path, option: list[str], reason: str
) -> None:
    with up(tmp_path, 1, "fake", option) as running, rankbridge.connect(running.description) as gang:
        given = random(2 * MIB)
        assert np.array_equal(fetched(gang[0], gang[0].put(given)), given)
        assert (gang[0].transfers.shared, gang[0].transfers.streamed) == (0, 2)
        assert reason in gang[0].transfers.reason


def test_where_the_files_cannot_be_seen_tensors_are_streamed(
    running: RunningGang, gang: Gang, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if str(path).startswith("/proc/"):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *more, **options)

    opened = os.open
    monkeypatch.setattr(os, "open", hidden)
    given = random(MIB)
    assert np.array_equal(fetched(gang[0], gang[0].put(given)), given)
    monkeypatch.undo()
    assert np.array_equal(fetched(gang[0], gang[0].put(given)), given)
    assert gang[0].transfers.streamed == 4
    assert "Permission denied" in gang[0].transfers.reason


def test_memory_that_was_closed_meanwhile_is_no_harm(running: RunningGang, gang: Gang) -> None:
    given = random(MIB)
    ref = gang[0].put(given)
    array = fetched(gang[0], ref)
    del array
    with grpc.insecure_channel(running.targets[0]) as channel:
        stub = ref_service_pb2_grpc.RefServiceStub(channel)
        ids = [segment.id for pool in _pools(gang) for segment in pool._free]
        assert ids or [loan.segment.id for pool in _pools(gang) for loan in pool.returned]
        ids += [loan.segment.id for pool in _pools(gang) for loan in pool.returned]
        request = ref_pb.CloseSharedMemoryRequest(session_id=gang.session_id, memory_ids=ids)
        assert stub.CloseSharedMemory(request).closed == len(ids)
    assert np.array_equal(fetched(gang[0], ref), given)
    assert gang[0].transfers.streamed == 1
    assert "no shared memory" in gang[0].transfers.reason
    assert np.array_equal(fetched(gang[0], ref), given)
    assert gang[0].transfers.streamed == 1


def _pools(gang: Gang) -> list[Any]:
    shared = gang._channels.shared
    assert shared is not None
    return list(shared._pools.values())


def test_a_call_that_was_given_up_leaves_its_memory_to_the_rank(tmp_path: Path) -> None:
    with (
        up(tmp_path, 1, "fake") as running,
        rankbridge.connect(running.description, timeout=DEADLINE_S) as gang,
    ):
        given = random(2 * MIB)
        ref = gang[0].start("put", given).result()
        assert np.array_equal(gang[0].start("get", ref).result(), given)
        (pid,) = running.pids
        used = _held(gang)
        stop(pid)
        try:
            with pytest.raises(rankbridge.DeadlineExceededError):
                gang[0].get(ref, timeout=0.5)
            pending = gang[0].start("get", ref)
            pending.cancel()
            with pytest.raises(rankbridge.CallCancelledError):
                pending.result()
        finally:
            os.kill(pid, signal.SIGCONT)
        for _ in range(2):
            assert np.array_equal(fetched(gang[0], ref), given)
        assert len(used) == 1
        assert not used & _held(gang)
        # One is the tensor's. What was given up ends when the rank comes to it.
        until(lambda: len(memory(pid)) == 2)


def _held(gang: Gang) -> set[str]:
    (pool,) = _pools(gang)
    return {segment.id for segment in pool._free} | {loan.segment.id for loan in pool.returned}


def test_calls_that_name_wrong_memory_change_nothing(running: RunningGang, gang: Gang) -> None:
    session = gang.session_id
    spec = tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_UINT8, shape=[4096])
    with grpc.insecure_channel(running.targets[0]) as channel:
        stub = ref_service_pb2_grpc.RefServiceStub(channel)
        memory = stub.OpenSharedMemory(ref_pb.OpenSharedMemoryRequest(session_id=session, bytes=10)).memory
        assert memory.bytes >= 10
        ref = gang[0].put(np.arange(2 * memory.bytes, dtype=np.int16))
        Path(memory.path).open("r+b").close()
        before = Path(memory.path).read_bytes()

        def put(**fields: Any) -> int:
            request = ref_pb.PutSharedTensorRequest(
                **{"session_id": session, "tensor": spec, "memory_session_id": session, **fields}
            )
            return int(stub.PutSharedTensor(request).error.code)

        def get(**fields: Any) -> int:
            request = ref_pb.GetSharedTensorRequest(
                **{"session_id": session, "ref_id": ref.id, "memory_session_id": session, **fields}
            )
            return int(stub.GetSharedTensor(request).error.code)

        large = tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_UINT8, shape=[memory.bytes + 1])
        negative = tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_UINT8, shape=[-1])
        for call in (put, get):
            assert call(memory_id="nonsense") == error_pb2.ERROR_CODE_UNKNOWN_SHARED_MEMORY
            assert call(memory_id=memory.id, memory_session_id="x") == error_pb2.ERROR_CODE_UNKNOWN_SESSION
            assert call(memory_id=memory.id, memory_session_id="") == error_pb2.ERROR_CODE_WRONG_SESSION
            assert call(memory_id=memory.id, session_id="x") == error_pb2.ERROR_CODE_UNKNOWN_SESSION
        assert put(memory_id=memory.id, tensor=large) == error_pb2.ERROR_CODE_INVALID_ARGUMENT
        assert put(memory_id=memory.id, tensor=negative) == error_pb2.ERROR_CODE_INVALID_ARGUMENT
        assert get(memory_id=memory.id) == error_pb2.ERROR_CODE_INVALID_ARGUMENT
        assert get(memory_id=memory.id, ref_id="x") == error_pb2.ERROR_CODE_UNKNOWN_REF
        assert Path(memory.path).read_bytes() == before
        assert put(memory_id=memory.id) == 0
        assert put(memory_id=memory.id) == error_pb2.ERROR_CODE_UNKNOWN_SHARED_MEMORY
    assert len(gang[0].list_refs()) == 2


def test_a_session_that_is_closed_while_tensors_come_and_go(running: RunningGang) -> None:
    with rankbridge.connect(running.description, timeout=DEADLINE_S) as gang:
        pid = gang[0].status().pid
        begun = threading.Event()
        given = random(4 * MIB)

        def refused() -> bool:
            try:
                for _ in range(100_000):
                    assert np.array_equal(fetched(gang[0], gang[0].put(given)), given)
                    begun.set()
            except rankbridge.UnknownSessionError:
                return True
            return False

        with ThreadPoolExecutor(2) as pool:
            threads = [pool.submit(refused) for _ in range(2)]
            assert begun.wait(DEADLINE_S)
            gang[0].close_session(gang.session_id)
            assert all(thread.result(DEADLINE_S) for thread in threads)
        assert not memory(pid)


CLIENT = """
import sys
import numpy, rankbridge
gang = rankbridge.connect(sys.argv[1], lease=float(sys.argv[2]))
given = numpy.ones(4 << 20, numpy.uint8)
arrays = [gang[0].get(ref) for ref in [gang[0].put(given) for _ in range(3)]]
assert gang[0].transfers.shared == 6
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.mark.sampled
def test_what_a_killed_client_had_is_gone_after_its_lease(running: RunningGang, gang: Gang) -> None:
    pid = gang[0].status().pid
    assert not memory(pid)
    command = [sys.executable, "-c", CLIENT, str(running.endpoints_file), "6"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "holding\n"
        assert len(memory(pid)) == 6
        client.kill()
        client.wait(DEADLINE_S)
    until(lambda: not memory(pid))


@pytest.mark.parametrize("exits", ["replace", "leave"])
def test_what_was_fetched_outlives_its_rank(tmp_path: Path, exits: str) -> None:
    with (
        up(tmp_path, 2, "gloo", ["--on-rank-exit", exits]) as running,
        rankbridge.connect(running.endpoints_file, timeout=DEADLINE_S) as gang,
    ):
        given = random(2 * MIB)
        array = fetched(gang[0], gang[0].put(given))
        kept = fetched(gang[1], gang[1].put(given))
        pid = gang[0].status().pid
        with watched([pid]) as processes:
            os.kill(pid, signal.SIGKILL)
            assert processes.alive_after(DEADLINE_S) == []
        # What was fetched is the caller's, whatever becomes of the rank.
        assert np.array_equal(array, given)
        if exits == "replace":
            gang.form(timeout=DEADLINE_S)
            assert np.array_equal(fetched(gang[0], gang[0].put(given)), given)
            assert np.array_equal(fetched(gang[0], gang[0].put(given)), given)
            assert gang[0].transfers.shared >= 4
            assert np.array_equal(fetched(gang[1], gang[1].put(given)), kept)


def test_of_sizes_that_grow_a_rank_keeps_few(tmp_path: Path) -> None:
    with (
        up(tmp_path, 1, "fake") as running,
        rankbridge.connect(running.description, shared_memory=False) as other,
        rankbridge.connect(running.description) as gang,
    ):
        (pid,) = running.pids
        for mib in range(1, 25):
            ref = other[0].put(np.full(mib * MIB, mib, np.uint8))
            assert fetched(gang[0], ref)[-1] == mib
            kept = memory(pid).values()
            # Free ones, and the one that came last.
            assert len(kept) <= 6
            assert sum(kept) < 6 * (mib + 1) * MIB
        assert gang[0].transfers == rankbridge.Transfers(shared=24)


@pytest.mark.parametrize("given", [MIB, 2 * MIB])
def test_wrong_and_closed_sessions_cost_no_memory_on_the_rank(tmp_path: Path, given: int) -> None:
    with (
        up(tmp_path, 1, "fake", ["--max-shared-bytes", str(16 * MIB)]) as running,
        rankbridge.connect(running.description) as gang,
    ):
        array = random(given)
        ref = gang[0].put(array)
        for turn in range(1, 13):
            with gang.session():
                closed = gang[0].put(array)
                assert np.array_equal(fetched(gang[0], closed), array)
            with pytest.raises(rankbridge.UnknownSessionError):
                gang[0].get(closed)
            with pytest.raises(rankbridge.WrongSessionError):
                gang[0].get(replace(ref, session_id=""))
            assert np.array_equal(fetched(gang[0], ref), array)
            assert (gang[0].transfers.shared, gang[0].transfers.streamed) == (1 + 3 * turn, 2 * turn)
        (pid,) = running.pids
        assert len(memory(pid)) <= 6


def test_a_session_that_is_closed_and_opened_again_shares_memory_again(tmp_path: Path) -> None:
    with (
        up(tmp_path, 1, "fake", ["--max-shared-bytes", str(16 * MIB)]) as running,
        rankbridge.connect(running.description) as gang,
    ):
        given = random(2 * MIB)
        array = fetched(gang[0], gang[0].put(given))
        for turn in range(8):
            ref = gang[0].put(given)
            assert all(np.array_equal(fetched(gang[0], ref), given) for _ in range(2))
            # One finds that its memory is gone, and is streamed.
            assert (gang[0].transfers.shared, gang[0].transfers.streamed) == (5 + 2 * turn, turn)
            gang[0].close_session(gang.session_id)
            gang[0].open_session(gang.session_id)
        assert np.array_equal(array, given)
