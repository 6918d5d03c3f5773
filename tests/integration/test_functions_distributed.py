"""torch.distributed inside functions, on real ranks on Gloo, as generations come and go."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import (
    FunctionFailedError,
    Gang,
    NamedTensor,
    PeerLostError,
    Ref,
    StaleGenerationError,
    UnknownGroupError,
)

APP = str(Path(__file__).parents[1] / "support" / "apps" / "distributed.py")
SIZE = 4


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    options = ["--load", APP, "--heartbeat-misses", "300"]
    with up(tmp_path_factory.mktemp("distributed"), SIZE, "gloo", options) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    """All ranks, in a generation that runs."""
    with rankbridge.connect(running.description, timeout=60.0) as gang:
        if any(it.generation_state != "formed" for it in gang.status()):
            gang.form()
        yield gang


def test_the_world_is_torchs_default_group(gang: Gang) -> None:
    assert gang.call("reduced") == [["gloo", rank, SIZE, 6.0] for rank in range(SIZE)]


def test_a_named_group_is_a_process_group_now_and_in_the_next_generation(gang: Gang) -> None:
    group = gang.new_group("odd", [3, 1])
    try:
        assert gang.function("reduced", group=group)(group="odd") == [
            ["gloo", 0, 2, 4.0],
            ["gloo", 1, 2, 4.0],
        ]
        gang.form()
        assert gang.function("reduced", group="odd")(group="odd") == [
            ["gloo", 0, 2, 4.0],
            ["gloo", 1, 2, 4.0],
        ]
        with pytest.raises(UnknownGroupError):
            gang[0].call("reduced", group="odd")
    finally:
        gang.destroy_group("odd")


def test_groups_that_come_later_and_overlap_are_made_by_their_members(gang: Gang) -> None:
    names = {"tp": [0, 1], "cross": [3, 1], "late": [1, 2]}
    for name, ranks in names.items():
        gang.new_group(name, ranks)
        # Those before it are known to torch on some of its members, and not on others.
        found = gang.function("reduced", group=name)(group=name)
        assert found == [["gloo", place, 2, float(sum(ranks))] for place in range(2)]
    for name in names:
        gang.destroy_group(name)


def test_data_parallel_training_averages_gradients(gang: Gang) -> None:
    assert gang.call("gradients") == [[1.5, 1.5]] * SIZE


def test_fully_sharded_gradients_are_right(gang: Gang) -> None:
    assert gang.call("sharded") == [[1.5] * 8] * SIZE


def test_a_mesh_of_two_dimensions_and_dtensors_work(gang: Gang) -> None:
    assert gang.call("meshed") == [[240.0, rank % 2, 2] for rank in range(SIZE)]


def test_groups_that_a_function_makes_work_again_in_every_generation(gang: Gang) -> None:
    assert gang.call("own_group") == [3.0, 3.0, 7.0, 7.0]
    gang.form()
    assert gang.call("own_group") == [3.0, 3.0, 7.0, 7.0]


def test_controllers_operations_go_on_beside_a_function_that_communicates(gang: Gang) -> None:
    call = gang.function("loop").start()
    refs = gang.put([np.full(1000, rank, np.float32) for rank in range(SIZE)])
    for _ in range(20):
        sums = gang.all_reduce(refs)
        assert np.array_equal(np.array(gang[1].get(sums[1])), np.full(1000, 6.0, np.float32))
    call.cancel()
    rounds = call.result()
    assert len(set(rounds)) == 1
    assert rounds[0] > 0


@pytest.mark.parametrize("what", ["all_reduce", "barrier", "new_group", "backward", "recv"])
def test_a_rank_that_raises_releases_those_that_wait_for_it(gang: Gang, what: str) -> None:
    began = time.monotonic()
    with pytest.raises(FunctionFailedError) as failed:
        gang.call("fail_before", 1, what)
    assert time.monotonic() - began < 30.0
    assert isinstance(failed.value, rankbridge.GangError)
    for outcome in failed.value.outcomes:
        assert isinstance(outcome.error, FunctionFailedError)
        raised = outcome.error.raised
        assert raised is not None
        assert (raised.rank, raised.type, raised.text) == (1, "ValueError", "one rank has failed")
    with pytest.raises(StaleGenerationError, match="one rank has failed"):
        gang.call("reduced")
    gang.form()
    assert gang.call("reduced")[0] == ["gloo", 0, SIZE, 6.0]


def test_a_rank_that_raises_releases_those_that_are_within_a_large_transfer(gang: Gang) -> None:
    for number in range(6):
        with pytest.raises(FunctionFailedError, match="one rank has failed"):
            gang.call("fail_between", number % SIZE, 0.05 + 0.01 * number)
        gang.form()
        # Waits until the last call has left torch.distributed on every rank.
        assert gang.function("reduced", timeout=30.0)()[0] == ["gloo", 0, SIZE, 6.0]


@contextmanager
def paused(pids: Sequence[int]) -> Iterator[None]:
    """Stops one process after another for up to 0.15 s, as a busy machine does."""
    is_over, chosen = threading.Event(), random.Random(0)

    def pause() -> None:
        while not is_over.is_set():
            pid = chosen.choice(pids)
            os.kill(pid, signal.SIGSTOP)
            is_over.wait(chosen.uniform(0.01, 0.15))
            os.kill(pid, signal.SIGCONT)
            is_over.wait(chosen.uniform(0.0, 0.1))

    pausing = threading.Thread(target=pause)
    pausing.start()
    try:
        yield
    finally:
        is_over.set()
        pausing.join()


@pytest.mark.sampled
def test_ranks_that_stand_still_in_the_middle_of_a_transfer_hold_up_no_later_generation(gang: Gang) -> None:
    with paused([it.pid for it in gang.status()]):
        for number in range(10):
            with pytest.raises(FunctionFailedError, match="one rank has failed"):
                gang.call("fail_between", number % SIZE, 0.05 + 0.01 * number)
            gang.form()
            # One that Gloo does not release is left behind.
            assert gang.function("reduced", timeout=30.0)()[0] == ["gloo", 0, SIZE, 6.0]


def test_those_that_do_not_wait_for_a_rank_that_raises_are_left_alone(gang: Gang) -> None:
    with pytest.raises(FunctionFailedError) as failed:
        gang.call("fail_after", 2)
    assert isinstance(failed.value, rankbridge.GangError)
    assert [it.value for it in failed.value.outcomes] == [4.0, 4.0, None, 4.0]
    assert gang.call("reduced")[0] == ["gloo", 0, SIZE, 6.0]


@pytest.mark.parametrize("what", ["all_reduce", "new_group"])
def test_the_loss_of_a_rank_raises_in_all_others_with_the_bridges_error_as_cause(
    running: RunningGang, gang: Gang, what: str
) -> None:
    began = time.monotonic()
    with pytest.raises(PeerLostError):
        gang.call("lose", 2, what)
    assert time.monotonic() - began < 30.0
    gang.form()
    survivors = [gang[rank].call("seen") for rank in (0, 1, 3)]
    assert [it[1] for it in survivors] == ["BridgeError"] * 3
    assert all("rank 2 is lost" in it[2] for it in survivors)
    assert gang[2].call("seen") == []
    assert gang.call("reduced")[2] == ["gloo", 2, SIZE, 6.0]


def test_a_replaced_rank_gets_its_state_from_a_survivor(gang: Gang) -> None:
    before = gang.call("state")[0]["step"]
    gang.call("advance", 3)
    expected = {"step": before + 3, "weights": [before + 3.0] * 2, "names": ["a", ("b", 2.5), None]}
    os.kill(gang[3].status().pid, signal.SIGKILL)
    generation = gang.form().generation
    assert gang.call("state") == [expected] * SIZE
    last = [it[-1] for it in gang.call("history")]
    assert last == [{"generation": generation, "new_ranks": [3]}] * SIZE
    assert len(gang[3].call("history")) == 1


def test_survivors_of_which_some_have_done_a_step_more_get_the_furthest_state(gang: Gang) -> None:
    step = gang.call("state")[0]["step"]
    gang[1].call("advance", 1)
    os.kill(gang[3].status().pid, signal.SIGKILL)
    gang.form()
    assert [it["step"] for it in gang.call("state")] == [step + 1] * SIZE
    # Also where no rank is new.
    gang[2].call("advance", 1)
    gang.form()
    assert [it["step"] for it in gang.call("state")] == [step + 2] * SIZE


def test_a_loss_in_a_backward_pass_is_no_failure_of_the_function(gang: Gang) -> None:
    with pytest.raises(PeerLostError) as lost:
        gang.call("lose_in_backward", 2)
    assert isinstance(lost.value, rankbridge.GangError)
    errors = {it.rank: it.error for it in lost.value.outcomes}
    assert {rank: type(errors[rank]) for rank in (0, 1, 3)} == dict.fromkeys((0, 1, 3), PeerLostError)
    gang.form()


def test_exposed_tensors_are_found_by_their_names(gang: Gang) -> None:
    found = gang.named("model.*")
    assert list(found) == sorted(
        [f"model.0.{it}" for it in ("weight", "bias")]
        + [f"model.1.{it}" for it in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]
    )
    weight = NamedTensor(dtype="float32", shape=(4, 3), device="cpu", writable=False)
    assert found["model.0.weight"] == [weight] * SIZE
    assert gang.named("nothing.*") == {}
    assert gang.call("step")[0] == gang.call("state")[0]["step"]
    assert all(not it.name.startswith("rankbridge.") for it in gang.functions())


def taken(gang: Gang, name: str) -> list[Ref]:
    return [it for it in gang.take(name)[name] if it is not None]


def test_a_copy_of_an_exposed_tensor_is_a_ref_like_any_other(gang: Gang) -> None:
    refs = taken(gang, "model.0.bias")
    sums = gang.get(gang.all_reduce(refs, in_place=True))
    assert np.allclose(np.array(sums[0]), SIZE * np.array(gang[1].get(taken(gang, "model.0.bias")[1])))


def test_a_summary_counts_what_is_no_number(gang: Gang) -> None:
    (each,) = gang.summary("extra.odd").values()
    assert each[1:] == each[:-1]
    it = each[0]
    assert it is not None
    assert (it.nans, it.infs, it.min, it.max, it.mean) == (1, 1, -2.0, 1.0, -0.5)
    assert it.norm == pytest.approx(5**0.5)


def test_the_replica_that_differs_is_found_with_where_and_by_how_much(gang: Gang) -> None:
    assert gang.compare() == []
    gang.call("spoil", 2, "0.weight")
    (found,) = gang.compare("model.*")
    assert found.name == "model.0.weight"
    assert found.reference == 0
    assert list(found.differing) == [2]
    difference = found.differing[2]
    assert difference is not None
    assert (difference.elements, difference.first) == (1, 2)
    assert difference.most == pytest.approx(0.5)
    before = len(gang[0].list_refs())
    assert gang.compare("model.0.weight", group=gang.new_group("others", [0, 1, 3])) == []
    gang.destroy_group("others")
    assert len(gang[0].list_refs()) == before


def test_a_tensor_is_written_only_where_it_is_said(gang: Gang) -> None:
    gang.call("rankbridge.write", "open", np.array([1, 2], np.float32))
    assert np.array_equal(np.array(gang[3].get(taken(gang, "open")[3])), [1, 2])
    with pytest.raises(FunctionFailedError, match="is exposed to be read"):
        gang.call("rankbridge.write", "model.0.bias", np.zeros(4, np.float32))
    with pytest.raises(FunctionFailedError, match="'open' is a "):
        gang.call("rankbridge.write", "open", np.zeros(3, np.float32))


def test_forming_again_and_again_leaves_nothing_behind(gang: Gang) -> None:
    def held() -> list[tuple[int, int]]:
        return [_threads_and_files(it.pid) for it in gang.status()]

    for _ in range(3):
        gang.form()
        gang.call("reduced")
    before = held()
    for _ in range(12):
        gang.form()
        gang.call("reduced")
    # Gloo lets go of a group's threads and files a moment after the group.
    until(lambda: all(b[0] <= a[0] + 12 and b[1] <= a[1] + 40 for a, b in zip(before, held(), strict=True)))


def _threads_and_files(pid: int) -> tuple[int, int]:
    return len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))
