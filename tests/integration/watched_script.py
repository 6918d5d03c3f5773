"""What a job of two ranks may call: test_watch.py runs it below `rankbridge watch`, and reads what was recorded."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed import all_reduce, init_process_group


def main() -> None:
    """Calls each once, or as often as it says."""
    init_process_group("gloo")
    rank, other = dist.get_rank(), 1 - dist.get_rank()
    tensor = torch.ones(2, 3)
    all_reduce(tensor, dist.ReduceOp.MAX)
    dist.all_reduce(tensor, async_op=True).wait()
    with torch.inference_mode():
        dist.broadcast(torch.ones(4), 1)
    if rank:
        dist.send(torch.ones(5), other, tag=7)
    else:
        dist.recv(torch.ones(5), other, tag=7)
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, torch.ones(1), other), dist.P2POp(dist.irecv, torch.ones(1), other)]
    ):
        work.wait()
    dist.barrier()
    dist.all_gather_object([None, None], {"rank": rank})
    world = dist.group.WORLD
    assert world is not None
    functional.all_reduce(torch.ones(6), "sum", world).sum().item()
    dist.all_to_all_single(torch.empty(2), torch.ones(2))
    dist.reduce(tensor, 0, dist.ReduceOp.MIN)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    model(torch.ones(1, 8)).sum().backward()
    pair = dist.new_group([0, 1], group_desc="pair")
    dist.all_gather_into_tensor(torch.empty(4), torch.ones(2), group=pair)
    Path(sys.argv[1], f"custom-{rank}").write_text(str(getattr(sys, "customized", None)))
    if rank:
        raise ValueError("the last step")


if __name__ == "__main__":
    main()
