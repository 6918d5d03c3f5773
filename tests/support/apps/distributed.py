"""Functions that tests load into ranks: of torch.distributed, as people use it."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import rankbridge_server
from rankbridge_server import Context

HISTORY: list[dict[str, Any]] = []
STATE: dict[str, Any] = {"step": 0, "weights": torch.zeros(2)}
GATE = threading.Event()


torch.manual_seed(1)
MODEL = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
rankbridge_server.expose(model=MODEL, extra={"odd": torch.tensor([1.0, float("nan"), float("inf"), -2.0])})
rankbridge_server.expose(writable=True, open=torch.zeros(2), step=lambda: STATE["step"])


@rankbridge_server.function
def spoil(context: Context, rank: int, name: str) -> None:
    """Changes one element of a tensor on one rank."""
    if context.rank == rank:
        with torch.no_grad():
            dict(MODEL.state_dict())[name].view(-1)[2] += 0.5


@rankbridge_server.on_formed
def formed(context: Context) -> None:
    """Brings the state to new ranks, and notes the forming."""
    global STATE
    STATE = context.broadcast_state(STATE, version=STATE["step"])
    HISTORY.append({"generation": context.generation, "new_ranks": list(context.new_ranks)})


@rankbridge_server.function
def history() -> list[dict[str, Any]]:
    return HISTORY


@rankbridge_server.function
def state() -> dict[str, Any]:
    return {"step": STATE["step"], "weights": STATE["weights"].tolist(), "names": STATE.get("names")}


@rankbridge_server.function
def advance(steps: int) -> None:
    STATE["step"] += steps
    STATE["weights"] += steps
    STATE["names"] = ["a", ("b", 2.5), None]


@rankbridge_server.function
def reduced(context: Context, group: str = "world") -> list[Any]:
    own = context.group(group)
    tensor = torch.tensor([float(context.rank)])
    dist.all_reduce(tensor, group=own)
    return [dist.get_backend(own), dist.get_rank(own), dist.get_world_size(own), float(tensor)]


@rankbridge_server.function
def gradients(context: Context) -> list[float]:
    """The gradients of DistributedDataParallel: the mean over the ranks."""
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    model(torch.full((1, 2), float(context.rank))).sum().backward()
    weight = model.module.weight.grad
    assert weight is not None
    return [float(it) for it in weight.flatten()]


@rankbridge_server.function
def sharded(context: Context) -> list[float]:
    """The gradients of fully_shard, put together."""
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 4, bias=False)
    fully_shard(model)
    model(torch.full((1, 2), float(context.rank))).sum().backward()
    gradient = model.weight.grad
    assert isinstance(gradient, DTensor)
    return [float(it) for it in gradient.full_tensor().flatten()]


@rankbridge_server.function
def meshed(context: Context) -> list[float]:
    """A DTensor over two dimensions, one of them sharded, multiplied."""
    mesh = init_device_mesh("cpu", (2, context.world_size // 2), mesh_dim_names=("dp", "tp"))
    whole = torch.arange(16.0).reshape(4, 4)
    tensor = distribute_tensor(whole, mesh, [Replicate(), Shard(0)])
    doubled = tensor * 2
    assert isinstance(doubled, DTensor)
    return [
        float(doubled.full_tensor().sum()),
        mesh["tp"].get_local_rank(),
        dist.get_world_size(mesh["dp"].get_group()),
    ]


@rankbridge_server.function
def own_group(context: Context) -> float:
    """A group that the function makes itself."""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    tensor = torch.tensor([1.0 + context.rank])
    dist.all_reduce(tensor, group=halves[context.rank // 2])
    return float(tensor)


@rankbridge_server.function
def fail_before(context: Context, on: int, what: str) -> str:
    """Fails on one rank, while the others wait for it."""
    dist.barrier()
    if context.rank == on:
        raise ValueError("one rank has failed")
    _wait(context, what)
    return "went well"


@rankbridge_server.function
def fail_between(context: Context, on: int, after: float) -> None:
    """Fails on one rank after so many seconds of all_reduces of 16 MB, which the others may be in the middle of."""
    until = time.monotonic() + after
    while True:
        if context.rank == on and time.monotonic() > until:
            raise ValueError("one rank has failed")
        dist.all_reduce(torch.ones(4 * 2**20))


@rankbridge_server.function
def fail_after(context: Context, on: int) -> float:
    """Fails on one rank once it has done what the others wait for."""
    tensor = torch.ones(100_000)
    dist.all_reduce(tensor)
    if context.rank == on:
        raise ValueError("one rank has failed")
    return float(tensor[0])


@rankbridge_server.function
def lose(context: Context, rank: int, what: str) -> list[str]:
    """One rank dies; what the others see is kept."""
    try:
        dist.barrier()
        # Others may still be within the barrier then.
        if context.rank == rank:
            os.kill(os.getpid(), signal.SIGKILL)
        _wait(context, what)
    except Exception as error:
        # The store's own waits raise the bridge's error itself.
        cause = error.__cause__ or error
        SEEN[:] = [type(error).__name__, type(cause).__name__, str(cause)]
    return SEEN


@rankbridge_server.function
def lose_in_backward(context: Context, rank: int) -> None:
    """One rank dies while the others go through backward passes."""
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    for step in range(1_000_000):
        if (context.rank, step) == (rank, 2):
            os.kill(os.getpid(), signal.SIGKILL)
        model(torch.ones(1)).sum().backward()


SEEN: list[str] = []


@rankbridge_server.function
def seen() -> list[str]:
    return SEEN


def _wait(context: Context, what: str) -> None:
    tensor = torch.ones(1)
    match what:
        case "all_reduce":
            dist.all_reduce(tensor)
        case "barrier":
            dist.barrier()
        case "new_group":
            dist.new_group(list(range(context.world_size)))
        case "backward":
            model = DistributedDataParallel(torch.nn.Linear(1, 1))
            model(tensor).sum().backward()
        case "recv":
            dist.recv(tensor, 1)


@rankbridge_server.function
def loop(context: Context) -> int:
    """All-reduces until it is asked to end."""
    rounds = 0
    tensor = torch.zeros(1)
    while float(tensor) == 0:
        tensor = torch.tensor([float(context.cancelled)])
        dist.all_reduce(tensor)
        rounds += 1
    return rounds
