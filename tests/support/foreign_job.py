"""A job of somebody else for tests: DDP on Gloo that says each step to a pipe, and does what another pipe says.

Run by a launcher with RANK, WORLD_SIZE and so on in the environment. With `--line` it attaches itself, by the one line
that users write; without, it knows nothing of rankbridge.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import os
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

COMMANDS = ("", "end", "group", "detach", "attach", "raise", "late", "differ")
# Of which half is more than the others' lateness on a busy machine.
LATE_S = 2.0
_TIMEOUT = timedelta(seconds=60)


class Said:
    """The pipe to the test. Lines are short: those of several ranks do not mix."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY)

    def __call__(self, *words: object) -> None:
        os.write(self._fd, (" ".join(map(str, words)) + "\n").encode())


def make_groups(rank: int, size: int) -> list[Any]:
    """Groups of all the kinds that are found, and what a module of vLLM would have."""
    kept: list[Any] = [
        dist.new_group([0, size - 1], group_desc="ends"),
        dist.new_group([0, 1, 2]),
        init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp")),
    ]
    module: Any = ModuleType("vllm.distributed.parallel_state")
    for ranks in ([0, 3], [1, 2]):
        device, cpu = dist.new_group(ranks), dist.new_group(ranks)
        if rank in ranks:
            module._PP = SimpleNamespace(
                unique_name="pp:0", ranks=ranks, world_size=2, device_group=device, cpu_group=cpu
            )
    sys.modules[module.__name__] = module
    return kept


def digest(model: nn.Module) -> str:
    """Of all parameters, bit for bit."""
    found = hashlib.sha256()
    for parameter in model.parameters():
        found.update(parameter.detach().numpy().tobytes())
    return found.hexdigest()[:16]


def stand_in(folder: Path) -> None:
    """Puts NCCL's stand-in in the place of NCCL beside a job."""
    from tests.support.nccl_on_cpu import CpuEngine

    from rankbridge_server.backends import nccl

    nccl.engine_beside_job = lambda index, local_rank, size: CpuEngine(f"device-{local_rank}", folder)


def main() -> int:
    """The job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("progress")
    parser.add_argument("control")
    parser.add_argument("--line", choices=["before", "after"])
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--attach-backend", default="gloo")
    parser.add_argument("--nccl-on-cpu", default="", help="a folder in which members of NCCL's stand-in meet")
    parser.add_argument("--file-store", default="")
    parser.add_argument("--exit-with", type=int, default=0)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="of each step, in seconds, as if it waited for data"
    )
    parser.add_argument("--guard", type=float, help="seconds for which guarded ranks wait for each other")
    parser.add_argument("--leave", action="store_true", help="without destroying the groups")
    options = parser.parse_args()
    said = Said(options.progress)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    control = os.open(options.control, os.O_RDWR | os.O_NONBLOCK)
    atexit.register(said, "atexit", rank)

    def attach() -> None:
        import rankbridge_server

        if options.nccl_on_cpu:
            stand_in(Path(options.nccl_on_cpu))
        rankbridge_server.attach(backend=options.attach_backend)

    if options.guard:
        from rankbridge_server.job import watch

        watch.start(guard=options.guard)
    if options.line == "before":
        attach()
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if options.file_store:
        # One for each attempt: torch takes addresses of the last attempt from a store that has them still.
        where = f"file://{options.file_store}-{attempt}"
        init_process_group(options.backend, where, _TIMEOUT, size, rank)
    else:
        init_process_group(options.backend, timeout=_TIMEOUT)
    groups = make_groups(rank, size) if options.groups else []
    if options.line == "after":
        attach()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(rank)
    step, command = 0, ""
    if options.line == "after":
        import rankbridge_server

        # On rank 2 one tensor is another than on the others, on purpose.
        replica = torch.arange(4.0) + (rank == 2) * torch.tensor([0.0, 0.0, 0.25, 0.0])
        rankbridge_server.expose(model=model.module, replica=replica, step=lambda: step)
    said("began", rank, os.getpid(), attempt)
    while command != "end":
        time.sleep(options.pause)
        batch = torch.randn(8, 16, generator=data)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        step += 1
        wanted = torch.zeros(1, dtype=torch.int64)
        if rank == 0:
            said("step", step, digest(model))
            with suppress(BlockingIOError):
                wanted[0] = COMMANDS.index(os.read(control, 100).decode().split()[0])
        dist.broadcast(wanted, 0)
        command = COMMANDS[int(wanted)]
        if command == "group":
            groups.append(dist.new_group([1, size - 1], group_desc="late"))
        elif command == "detach":
            import rankbridge_server

            rankbridge_server.detach()
        elif command == "attach":
            attach()
        elif command == "raise" and rank == size - 1:
            raise RuntimeError("one rank fails")
        elif command == "late":
            if rank == size - 1:
                time.sleep(LATE_S)
            dist.barrier()
        elif command == "differ":
            with suppress(RuntimeError):
                dist.all_reduce(torch.ones(1), dist.ReduceOp.MAX if rank == size - 1 else dist.ReduceOp.SUM)
        if command:
            said("did", command, rank)
    if not options.leave:
        dist.destroy_process_group()
    return int(options.exit_with)


if __name__ == "__main__":
    sys.exit(main())
