"""How a group on NCCL is formed: ids, addresses, who waits for whom, and what becomes of one that is given up."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, cast

import pytest
import torch
from tests.support.nccl_on_cpu import CpuEngine, NcclOnCpu, members_on_cpu
from tests.support.waiting import until
from torch._C import _distributed_c10d as c10d

from rankbridge_server.backends.nccl import NcclBackend, missing, stores
from rankbridge_server.backends.nccl.address import Address, check
from rankbridge_server.backends.nccl.engine import CudaEngine
from rankbridge_server.backends.nccl.raw import NcclGroup, Store
from rankbridge_server.cli.nccl import limits_on
from rankbridge_server.core.coordinator import GroupDescription, Joining
from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase
from rankbridge_server.core.limits import Limits

PAIR = GroupDescription("pair", (0, 1))
ALONE = GroupDescription("alone", (0,))
TIMEOUT_S = 60.0
# Not text in any encoding, as ids are.
ID = bytes(range(128, 256))


def backend(engine: CpuEngine, patience: float = TIMEOUT_S) -> NcclBackend:
    return NcclBackend(0, engine, patience)


def forming_error(call: Callable[[], object]) -> str:
    with pytest.raises(BridgeError) as error:
        call()
    failure = error.value.failure
    assert (failure.code, failure.phase, failure.indefinite) == (
        ErrorCode.BACKEND_FAILED,
        Phase.FORMING,
        False,
    )
    return str(failure)


# --- stores, as torch itself uses them -----------------------------------------------------------------------


def test_torch_leaves_an_id_and_is_held_up_until_it_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    # A prefix store calls the other by way of C++, as a process group does.
    monkeypatch.setattr(stores, "_FIRST_COMMUNICATOR", "torch/0")
    store = stores.WritingStore()
    with ThreadPoolExecutor(1) as torchs:
        leaving = torchs.submit(cast(Any, c10d.PrefixStore("torch", store)).set, "0", ID)
        assert store.unique_id.result(TIMEOUT_S) == ID
        assert not leaving.done()
        store.let_go()
        leaving.result(TIMEOUT_S)


def test_torch_fails_when_the_forming_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_FIRST_COMMUNICATOR", "torch/0")
    store = stores.WritingStore()
    with ThreadPoolExecutor(1) as torchs:
        leaving = torchs.submit(cast(Any, c10d.PrefixStore("torch", store)).set, "0", ID)
        assert store.unique_id.result(TIMEOUT_S) == ID
        store.give_up()
        with pytest.raises(RuntimeError, match="given up"):
            leaving.result(TIMEOUT_S)


def test_a_torch_that_leaves_ids_elsewhere_is_found_out() -> None:
    store = stores.WritingStore()
    with pytest.raises(RuntimeError, match="leaves the id of a communicator under 'torch/0'"):
        cast(Any, c10d.PrefixStore("torch", store)).set("0", ID)


def test_torch_finds_the_id_that_a_member_was_given() -> None:
    store = stores.ReadingStore()
    store.give(ID)
    assert bytes(store.get("0")) == ID


# --- addresses -----------------------------------------------------------------------------------------------


def test_an_address_says_what_it_said() -> None:
    for address in (Address("GPU-1", (ID, ID[::-1])), Address("GPU-2")):
        assert Address.decoded(address.encoded()) == address


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{}", b'["GPU"]', b'["GPU", ["x"]]', b"[1, 2]"])
def test_what_is_no_address_is_refused(data: bytes) -> None:
    assert "are all ranks on the backend nccl?" in forming_error(lambda: Address.decoded(data))


def test_two_members_on_one_device_are_refused_unless_that_is_meant() -> None:
    members = [Address("a", (ID,)), Address("b"), Address("a")]
    said = forming_error(lambda: check(members, 1, {}))
    assert "the members of rank 0 and 2 in the group are on one device" in said
    check(members[:2], 1, {})
    check(members, 1, {"NCCL_MULTI_RANK_GPU_ENABLE": "1"})
    check(members, 1, {"NCCL_HOSTID": "a"})


def test_ids_must_be_those_of_this_group() -> None:
    assert "(expected 2 ids, got 1)" in forming_error(
        lambda: check([Address("a", (ID,)), Address("b")], 2, {})
    )


# --- members -------------------------------------------------------------------------------------------------


def test_groups_of_several_have_two_communicators_and_one_alone_has_one() -> None:
    for size, communicators in ((1, 1), (2, 2), (3, 2)):
        with members_on_cpu(size) as (members, engines):
            members.call("barrier", [(TIMEOUT_S,)] * size)
            assert [len(engine.groups) for engine in engines] == [communicators] * size


def test_only_the_first_member_tells_ids_and_they_differ() -> None:
    first, second = (backend(CpuEngine()).join(PAIR, rank, 1) for rank in range(2))
    ids = Address.decoded(first.address).ids
    assert [len(it) for it in ids] == [128, 128]
    assert len(set(ids)) == 2
    assert Address.decoded(second.address).ids == ()
    first.abandon()
    second.abandon()


def test_an_abandoned_forming_makes_no_communicator_and_leaves_no_thread() -> None:
    before = joining_threads()
    engine = CpuEngine()
    joining = backend(engine).join(PAIR, 0, 1)
    assert len(joining_threads() - before) == 2
    joining.abandon()
    until(lambda: not joining_threads() - before)
    assert [it._gloo for it in engine.groups] == [None, None]


def joining_threads() -> set[threading.Thread]:
    return {it for it in threading.enumerate() if it.name == "nccl-joining"}


def test_a_communicator_that_comes_after_the_forming_was_given_up_is_aborted() -> None:
    engines = [CpuEngine(), CpuEngine()]
    first, second = (backend(engine).join(PAIR, rank, 1) for rank, engine in enumerate(engines))
    addresses = [first.address, second.address]
    said = forming_error(lambda: first.connect(addresses, 0.2))
    assert "not all members came in 0." in said
    # The other one comes late, to one that waits no more, and waits for the second communicator in vain.
    forming_error(lambda: second.connect(addresses, 1.0))
    for engine in engines:
        until(lambda engine=engine: engine.groups[0].aborted.is_set())  # type: ignore[misc]
    assert not engines[0].groups[1].aborted.is_set()


def test_a_member_that_cannot_connect_says_why() -> None:
    class Broken(NcclOnCpu):
        def eager_connect_single_device(self, device: torch.device) -> None:
            raise RuntimeError("unhandled system error")

    class BrokenEngine(CpuEngine):
        def group(self, store: Store, rank_in_group: int, size: int) -> NcclGroup:
            return cast(NcclGroup, Broken(store, rank_in_group, size))

    # Before it has made an id, as rank 0, and with the id of another.
    said = forming_error(lambda: backend(BrokenEngine()).join(PAIR, 0, 1))
    assert "NCCL did not connect: unhandled system error" in said
    first = backend(CpuEngine()).join(PAIR, 0, 1)
    second = backend(BrokenEngine()).join(PAIR, 1, 1)
    said = forming_error(lambda: second.connect([first.address, second.address], TIMEOUT_S))
    assert "unhandled system error" in said
    first.abandon()


def test_an_engine_that_makes_no_id_in_time_is_an_error() -> None:
    going = threading.Event()

    class SlowEngine(CpuEngine):
        def group(self, store: Store, rank_in_group: int, size: int) -> NcclGroup:
            going.wait(TIMEOUT_S)
            raise RuntimeError("too late")

    said = forming_error(lambda: backend(SlowEngine(), patience=0.1).join(ALONE, 0, 1))
    going.set()
    assert "no id of a communicator in 0.1 s" in said


def test_a_torch_that_leaves_no_id_is_an_error() -> None:
    class Silent(NcclOnCpu):
        def eager_connect_single_device(self, device: torch.device) -> None:
            pass

    class SilentEngine(CpuEngine):
        def group(self, store: Store, rank_in_group: int, size: int) -> NcclGroup:
            return cast(NcclGroup, Silent(store, rank_in_group, size))

    assert "without leaving its id" in forming_error(lambda: backend(SilentEngine()).join(ALONE, 0, 1))


def test_wrong_addresses_abandon_the_forming() -> None:
    engine = CpuEngine()
    before = joining_threads()
    joining: Joining = backend(engine).join(PAIR, 0, 1)
    forming_error(lambda: joining.connect([joining.address, b"gloo's"], TIMEOUT_S))
    until(lambda: not joining_threads() - before)


def test_a_group_is_formed_again_and_again() -> None:
    engine = CpuEngine()
    for generation in range(1, 6):
        joining = backend(engine).join(ALONE, 0, generation)
        coordinator = joining.connect([joining.address], TIMEOUT_S)
        coordinator.barrier(TIMEOUT_S)
        coordinator.close()
    assert [it.aborted.is_set() for it in engine.groups] == [True] * 5


# --- what is missing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cuda", "nccl", "expected"),
    [
        (True, True, ""),
        (False, True, f"torch {torch.__version__} was built without CUDA"),
        (True, False, f"torch {torch.__version__} was built without NCCL"),
        (False, False, f"torch {torch.__version__} was built without CUDA and NCCL"),
    ],
)
def test_what_torch_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, nccl: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: cuda)
    monkeypatch.delattr(c10d, "ProcessGroupNCCL", raising=False)
    if nccl:
        monkeypatch.setattr(c10d, "ProcessGroupNCCL", object, raising=False)
    assert missing() == expected


def test_a_rank_without_a_device_says_so_and_ends_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(c10d, "ProcessGroupNCCL", object, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for name, value in os.environ.items():
        monkeypatch.setenv(name, value)
    for name in ("BLOCKING_WAIT", "ASYNC_ERROR_HANDLING", "ENABLE_MONITORING", "DUMP_ON_TIMEOUT"):
        monkeypatch.setenv(f"TORCH_NCCL_{name}", "another")
    monkeypatch.setenv("TORCH_NCCL_RANKS_PER_ROOT", "2")
    assert "no CUDA device is visible" in forming_error(lambda: NcclBackend(0))
    assert os.environ["TORCH_NCCL_BLOCKING_WAIT"] == "1"
    assert {
        os.environ[f"TORCH_NCCL_{name}"]
        for name in ("ASYNC_ERROR_HANDLING", "ENABLE_MONITORING", "DUMP_ON_TIMEOUT", "USE_COMM_NONBLOCKING")
    } == {"0"}
    assert int(os.environ["TORCH_NCCL_RANKS_PER_ROOT"]) > 4096
    assert (os.environ["NCCL_GRAPH_REGISTER"], os.environ["NCCL_GRAPH_MIXING_SUPPORT"]) == ("0", "1")


class Properties:
    """Of a device, as torch tells them."""

    uuid = "2f6e5b2a"
    total_memory = 2**37


class TorchsGroup:
    """Keeps how it was made, as ProcessGroupNCCL is."""

    class Options:
        _timeout: timedelta

    def __init__(self, *given: object) -> None:
        self.given = given


class TorchsStream:
    """A CUDA stream by its interface."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.synchronized = 0

    def synchronize(self) -> None:
        self.synchronized += 1

    def query(self) -> bool:
        return self.synchronized > 0


def test_the_engine_asks_torch_for_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in os.environ.items():
        monkeypatch.setenv(name, value)
    chosen: list[torch.device] = []
    entered: list[TorchsStream] = []
    current = TorchsStream(torch.device("cuda", 1))
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(c10d, "ProcessGroupNCCL", TorchsGroup, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current)
    monkeypatch.setattr(torch.cuda, "Stream", TorchsStream)

    def enter(stream: TorchsStream) -> AbstractContextManager[None]:
        entered.append(stream)
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "stream", enter)
    engine = CudaEngine.of_rank(3)
    assert (engine.device, engine.identity, engine.memory) == (torch.device("cuda", 1), "2f6e5b2a", 2**37)
    assert chosen == [engine.device]
    assert engine.tensors.device == "cuda:1"
    for capturing in (True, False):
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda capturing=capturing: capturing)
        engine.tensors._settle()
    # What is captured is not waited for.
    assert current.synchronized == 1
    store = stores.ReadingStore()
    group = cast(TorchsGroup, engine.group(store, 1, 3))
    *given, options = group.given
    assert given == [store, 1, 3]
    assert cast(TorchsGroup.Options, options)._timeout == timedelta(seconds=10)
    side = engine.side()
    assert not side.idle()
    with side.current():
        side.synchronize()
    assert side.idle()
    (stream,) = entered
    assert (stream.device, stream.synchronized) == (engine.device, 1)


# Whatever torch there is: one without, and then what the command line says.
_WITHOUT = """
import sys
import torch
from torch._C import _distributed_c10d as c10d
torch.backends.cuda.is_built = lambda: False
vars(c10d).pop("ProcessGroupNCCL", None)
from rankbridge_server.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "command",
    [("up", "--size", "2"), ("rank", "--rank", "0", "--size", "1")],
    ids=lambda command: command[0],
)
def test_commands_say_what_torch_lacks(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, *command, "--backend", "nccl"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("rankbridge")]
    assert said == (
        f"rankbridge {command[0]}: the backend nccl needs a torch with CUDA and NCCL: torch {torch.__version__} was "
        "built without CUDA and NCCL"
    )


_IMPORTS = """
import sys
import torch
from rankbridge_server.cli import up
import rankbridge_server.backends.nccl as nccl
nccl.missing = lambda: ""
for name in ("_lazy_init", "device_count", "is_available", "current_device"):
    setattr(torch.cuda, name, lambda *_: sys.exit(f"a device was touched before the fork: {name}"))
up._import_for_ranks("nccl", ())
assert not torch.cuda.is_initialized()
"""


def test_what_is_imported_before_the_fork_touches_no_device() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_tensors_may_take_half_of_the_device_unless_another_limit_is_asked_for() -> None:
    it, limits = backend(CpuEngine()), Limits(max_bytes=5, max_refs=7)
    assert limits_on(it, limits, 0) == Limits(max_bytes=CpuEngine.memory // 2, max_refs=7)
    assert limits_on(it, limits, 5) == limits
