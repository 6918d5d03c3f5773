"""A job of four ranks that calls a coordinator's methods, and goes wrong as its argument says. Says when it has.

`moves`: nothing goes wrong, and it does not end. With RANKBRIDGE_ENDPOINTS_FILE, it attaches first.
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from tests.support.coordinated.parallel_state import GroupCoordinator

import rankbridge_server

STEPS = 12
WRONG_S = 1000


def asleep() -> None:
    """For longer than anybody waits."""
    print("wrong", flush=True)
    time.sleep(WRONG_S)


def main(how: str) -> None:
    """Steps, of which the last does not end, unless nothing goes wrong."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=WRONG_S))
    if "RANKBRIDGE_ENDPOINTS_FILE" in os.environ:
        rankbridge_server.attach(record_calls=True).wait(60)
    rank = dist.get_rank()
    tp = GroupCoordinator([[0, 1, 2, 3]], rank, "tp")
    pp = GroupCoordinator([[0, 1], [2, 3]], rank, "pp")
    for step in range(1, STEPS + 1):
        is_last = step == STEPS
        if is_last and how == "sum" and rank == 2:
            asleep()
        total = tp.all_reduce(torch.ones(3))
        assert total.tolist() == [4.0] * 3
        if is_last and how == "barrier" and rank == 1:
            asleep()
        tp.barrier()
        pp.all_reduce(torch.ones(1))
        if is_last and how == "inside" and rank == 3:
            GroupCoordinator.unpacked = lambda self: asleep()  # type: ignore[method-assign]
        weights = {"w": torch.full((2,), 1.0 * step)} if rank == 0 else None
        assert tp.broadcast_tensor_dict(weights)["w"].tolist() == [1.0 * step] * 2
        if pp.rank_in_group == 0:
            if is_last and how == "send" and rank == 2:
                asleep()
            pp.send(torch.ones(2))
        else:
            pp.recv(torch.Size([2]), torch.float32)
        pp.barrier()
    tp.all_gather(torch.ones(1))
    if how == "moves":
        if rank == 0:
            print("moves", flush=True)
        while True:
            tp.all_reduce(torch.ones(3))
            pp.all_reduce(torch.ones(1))
            time.sleep(0.01)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
