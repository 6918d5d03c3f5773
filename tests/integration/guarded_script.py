"""A job of four guarded ranks that does what its first argument names, with commas between, and prints what came of it.

The guard's timeout is the second argument, in seconds; the third is a folder for records. Its store is at
MASTER_ADDR; default: on loopback. GUARDED_BACKEND: that of all groups; with nccl, tensors are on devices.
GUARDED_MOST_CARRIED: bytes of the largest message that does not enter Gloo.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, TCPStore
from torch.distributed.device_mesh import init_device_mesh

from rankbridge_server import GuardError
from rankbridge_server.job import watch
from rankbridge_server.job.guard import carried, carried_collectives
from rankbridge_server.links import wire
from rankbridge_server.links.link import dial

BACKEND = os.environ.get("GUARDED_BACKEND", "gloo")
_LAST = ("left", "gone", "killed", "killed_first", "sender_gone", "sender_killed", "receiver_killed")
"""After them, not all ranks are there."""


def op(rank: int) -> None:
    """Rank 3 asks for another reduce op."""
    dist.all_reduce(torch.ones(4), dist.ReduceOp.MAX if rank == 3 else dist.ReduceOp.SUM)


def root(rank: int) -> None:
    """Rank 1 broadcasts from another."""
    dist.broadcast(torch.ones(4), 1 if rank == 1 else 0)


def dtype(rank: int) -> None:
    """Rank 0, which rules, has another dtype."""
    dist.all_reduce(torch.ones(4, dtype=torch.float64 if rank == 0 else torch.float32))


def shape(rank: int) -> None:
    """Two have one shape, two another."""
    dist.all_reduce(torch.ones(4 if rank < 2 else 5))


def order(rank: int) -> None:
    """Rank 2 calls two collectives in the other order."""
    calls: list[Callable[[], Any]] = [dist.barrier, lambda: dist.all_reduce(torch.ones(1))]
    for call in reversed(calls) if rank == 2 else calls:
        call()


def parts(rank: int) -> None:
    """Rank 1 gathers from parts of other sizes than the others do."""
    own = torch.ones(3 if rank == 1 else 2)
    dist.all_gather([torch.empty_like(own) for _ in range(dist.get_world_size())], own)


def membership(rank: int) -> None:
    """Rank 3 makes a group of others."""
    dist.new_group([0, 2] if rank == 3 else [0, 1])


def no_group(rank: int) -> None:
    """Rank 2 makes no group."""
    if rank == 2:
        dist.all_reduce(torch.ones(4))
    else:
        dist.new_group([1, 0])


def groups(rank: int) -> None:
    """Nothing is wrong: the same groups, one by its members alone, a mesh, and a collective in each."""
    pair = dist.new_group([1, 0] if rank else [0, 1])
    others = dist.new_group([2, 3])
    dist.all_reduce(torch.ones(1), group=pair if rank < 2 else others)
    if rank > 1:
        dist.all_reduce(torch.ones(1), group=dist.new_group([2, 3], use_local_synchronization=True))
    mesh = init_device_mesh("cuda" if BACKEND == "nccl" else "cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    dist.all_reduce(torch.ones(1), group=mesh.get_group("dp"))


def asynchronous(rank: int) -> None:
    """Rank 3 asks for another reduce op, and nobody waits yet."""
    dist.all_reduce(
        torch.ones(4), dist.ReduceOp.MAX if rank == 3 else dist.ReduceOp.SUM, async_op=True
    ).wait()


def missing(rank: int) -> None:
    """Rank 2 does something else until the others have given up."""
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if rank == 2:
        store.wait(["given up"])
        return
    try:
        dist.all_reduce(torch.ones(4))
    finally:
        if rank == 0:
            store.set("given up", "")


def crossed(rank: int) -> None:
    """Ranks 0 and 1 use two groups in opposite orders."""
    groups = [dist.new_group([0, 1], group_desc=name) for name in ("tp", "dp")]
    if rank < 2:
        for group in reversed(groups) if rank else groups:
            dist.all_reduce(torch.ones(2), group=group)


def circle(rank: int) -> None:
    """Three ranks wait in a circle: each for the next."""
    members = [(0, 1), (1, 2), (0, 2)]
    groups = [dist.new_group(list(it), group_desc="-".join(map(str, it))) for it in members]
    if rank < 3:
        dist.barrier(group=groups[rank])


def late(rank: int) -> None:
    """Nothing is wrong: rank 2 is slow, in one group while others are in another."""
    pair = dist.new_group([0, 1])
    if rank == 2:
        time.sleep(0.6)
    if rank < 2:
        dist.all_reduce(torch.ones(2), group=pair)
    dist.all_reduce(torch.ones(2))
    if rank < 2:
        dist.all_reduce(torch.ones(2), group=pair)


def threads(rank: int) -> None:
    """Nothing is wrong: rank 0 uses one group in a thread of its own, later than rank 1 waits for it."""
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    if rank > 1:
        return
    store = dist.distributed_c10d._get_default_store()

    def other() -> None:
        if rank == 0:
            # Long after both have begun to look for circles.
            time.sleep(0.6)
        dist.all_reduce(torch.ones(2), group=groups[1])
        if rank == 1:
            store.set("other", "")

    thread = threading.Thread(target=other)
    if rank == 0:
        thread.start()
    else:
        other()
        store.wait(["other"])
    dist.all_reduce(torch.ones(2), group=groups[0])
    if rank == 0:
        thread.join()


def right(rank: int) -> None:
    """Nothing is wrong, and of every kind."""
    size = dist.get_world_size()
    dist.all_gather_object([None] * size, {"rank": rank, "text": "x" * rank})
    dist.gather(torch.ones(2), [torch.empty(2) for _ in range(size)] if rank == 1 else None, dst=1)
    dist.scatter(torch.empty(2), [torch.ones(2)] * size if rank == 2 else None, src=2)
    dist.all_gather_into_tensor(torch.empty(2 * size), torch.ones(2))
    dist.reduce_scatter_tensor(torch.empty(2), torch.ones(2 * size))
    dist.all_to_all_single(torch.empty(size), torch.ones(size))
    dist.reduce(torch.ones(3), 3)
    swapped = [dist.P2POp(dist.isend, torch.ones(1), (rank + 1) % size)]
    swapped.append(dist.P2POp(dist.irecv, torch.ones(1), (rank - 1) % size))
    for work in dist.batch_isend_irecv(swapped):
        work.wait()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for _ in range(3):
        model(torch.ones(1, 8)).sum().backward()
    dist.barrier()


def small(rank: int) -> None:
    """What small collectives give, which enter nothing, is bit by bit what Gloo gives."""
    pair = dist.new_group([1, 3])
    given = 0
    give, most = carried_collectives.give, carried.MOST_BYTES

    def counted(*arguments: Any) -> list[Any]:
        nonlocal given
        given += 1
        return give(*arguments)

    def both(call: Callable[[], list[torch.Tensor]]) -> None:
        nonlocal given
        given, carried.MOST_BYTES = 0, 0
        entered = call()
        assert given == 0
        carried.MOST_BYTES = 2048
        got = call()
        assert given == 1
        carried.MOST_BYTES = most
        for one, other in zip(entered, got, strict=True):
            assert carried.content_of(one) == carried.content_of(other), (one, other)

    def own(count: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
        made = torch.randn(count, generator=torch.Generator().manual_seed(seed * 8 + rank)) * 100
        return made.to(dtype)

    def reduce(count: int, dtype: torch.dtype, op: Any, group: Any = None, *, is_async: bool = False) -> Any:
        tensor = own(count, dtype, count)
        work = dist.all_reduce(tensor, op, group, async_op=is_async)
        if work is not None:
            work.wait()
            assert work.is_completed()
            assert torch.equal(work.get_future().wait()[0], tensor)
        return [tensor]

    def gather(count: int) -> list[torch.Tensor]:
        parts = [torch.zeros(count) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own(count, torch.float32, 0))
        return parts

    def gather_into(count: int) -> list[torch.Tensor]:
        whole = torch.zeros(count * dist.get_world_size(), dtype=torch.int64)
        dist.all_gather_into_tensor(whole, own(count, torch.int64, 0))
        return [whole]

    def broadcast(count: int) -> list[torch.Tensor]:
        tensor = own(count, torch.float64, 0)
        dist.broadcast(tensor, 2)
        return [tensor]

    def reduce_to(count: int) -> list[torch.Tensor]:
        tensor = own(count, torch.float32, 0)
        dist.reduce(tensor, 1)
        # What the others have then is Gloo's affair.
        return [tensor] if rank == 1 else []

    def reduce_scatter(count: int) -> list[torch.Tensor]:
        tensor = torch.zeros(count)
        dist.reduce_scatter_tensor(tensor, own(4 * count, torch.float32, 0), dist.ReduceOp.PRODUCT)
        return [tensor]

    def gather_to(count: int) -> list[torch.Tensor]:
        parts = [torch.zeros(count) for _ in range(4)] if rank == 3 else None
        dist.gather(own(count, torch.float32, 0), parts, 3)
        return parts or []

    def scatter(count: int) -> list[torch.Tensor]:
        tensor = torch.zeros(count)
        dist.scatter(tensor, list(own(4 * count, torch.float32, 0).chunk(4)) if rank == 2 else None, 2)
        return [tensor]

    def all_to_all(count: int) -> list[torch.Tensor]:
        tensor = torch.zeros(4 * count, 2)
        dist.all_to_all_single(tensor, own(8 * count, torch.float32, 0).reshape(-1, 2))
        return [tensor]

    carried_collectives.give = counted  # type: ignore[assignment]
    try:
        ops = dist.ReduceOp
        for dtype in (torch.float32, torch.float64, torch.int32, torch.uint8):
            for op in (ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX):
                for count in (1, 3, 9, 33):
                    both(lambda count=count, dtype=dtype, op=op: reduce(count, dtype, op))  # type: ignore[misc]
        both(lambda: reduce(5, torch.int64, ops.BXOR))
        both(lambda: reduce(5, torch.float32, ops.SUM, is_async=True))
        for call in (
            *(gather, gather_into, broadcast),
            *(reduce_to, reduce_scatter, gather_to, scatter, all_to_all),
        ):
            for count in (1, 13):
                both(lambda call=call, count=count: call(count))  # type: ignore[misc]
        if rank in (1, 3):
            both(lambda: reduce(7, torch.float32, ops.SUM, pair))
        both(lambda: dist.barrier() or [])
        # A barrier waits for what is under way.
        given, slow = 0, torch.ones(1 << 22)
        work = dist.all_reduce(slow, async_op=True)
        dist.barrier()
        assert given == 0
        assert work.is_completed()
        assert slow[-1] == 4
        dist.barrier()
        assert given == 1
        # What one member cannot bring, and what is too large, enters Gloo on all.
        given = 0
        strided = torch.ones(4, 2)[:, 0] if rank == 2 else torch.ones(4)
        parts = [torch.zeros(4) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, strided)
        sizes = [3 if 0 in (rank, it) and rank != it else 1 for it in range(4)]
        uneven = torch.zeros(sum(sizes))
        dist.all_to_all_single(uneven, torch.ones(sum(sizes)), sizes, sizes)
        assert uneven.eq(1).all()
        dist.all_reduce(torch.ones(4, dtype=torch.float16))
        dist.all_reduce(torch.ones(512))
        assert given == 0
        assert torch.stack(parts).eq(1).all()
    finally:
        carried_collectives.give, carried.MOST_BYTES = give, most


def isend(tensor: torch.Tensor, to: int, **named: Any) -> Any:
    """Torch's, which gives None on ranks outside of the group alone."""
    return dist.isend(tensor, to, **named)


def irecv(tensor: torch.Tensor, source: int, **named: Any) -> Any:
    """Likewise."""
    return dist.irecv(tensor, source, **named)


def ring(rank: int) -> None:
    """Nothing is wrong: each sends to the next, with what is received posted before, after, and in a batch."""
    size = dist.get_world_size()
    following, before = (rank + 1) % size, (rank - 1) % size
    for each in range(30):
        got = torch.empty(3)
        works = [irecv(got, before), isend(torch.full((3,), float(rank + each)), following)]
        for work in works if each % 2 else reversed(works):
            work.wait()
        assert got.tolist() == [before + each] * 3
        assert works[1].wait()
    got = torch.empty(2, 2)
    swapped = [dist.P2POp(dist.isend, torch.full((4,), float(rank)), following)]
    swapped.append(dist.P2POp(dist.irecv, got, before))
    for work in dist.batch_isend_irecv(swapped):
        work.wait()
    assert got.tolist() == [[before] * 2] * 2


def pipeline(rank: int) -> None:
    """Nothing is wrong: many messages are in flight on one tag, and on several, taken in another order."""
    size = dist.get_world_size()
    sent = []
    for batch in range(40):
        tensor = torch.full((1 + batch,), float(batch))
        if rank:
            dist.recv(tensor.zero_(), rank - 1)
            assert tensor.tolist() == [batch] * (1 + batch)
        if rank < size - 1:
            sent.append(isend(tensor, rank + 1))
    for work in sent:
        work.wait()
    if rank == 0:
        works = [isend(torch.full((1,), float(tag)), 1, tag=tag) for tag in range(5)]
        for work in works:
            work.wait()
    if rank == 1:
        for tag in reversed(range(5)):
            dist.recv(got := torch.empty(1), 0, tag=tag)
            assert got.item() == tag
    if rank in (2, 3):
        given = [{"rank": 2}] if rank == 2 else [None]
        (dist.send_object_list if rank == 2 else dist.recv_object_list)(given, 5 - rank)
        assert given == [{"rank": 2}]


def any_source(rank: int) -> None:
    """Nothing is wrong: rank 0 receives from whoever sends, also while it waits for one in particular."""
    size = dist.get_world_size()
    if rank:
        for each in range(5):
            dist.send(torch.full((2,), float(10 * rank + each)), 0)
        dist.send(torch.ones(1), 0, tag=7)
        return
    last = dict.fromkeys(range(1, size), -1)
    for _ in range(5 * (size - 1)):
        got = torch.empty(2)
        source = dist.recv(got)
        assert got.tolist() == [10 * source + last[source] + 1] * 2
        last[source] += 1
    for source in reversed(range(1, size)):
        assert dist.recv(torch.empty(1), source, tag=7) == source


def sending_threads(rank: int) -> None:
    """Nothing is wrong: a thread receives what the other thread of its rank has sent by a second rank."""
    if rank > 1:
        return
    if rank == 0:
        got = torch.empty(1)
        thread = threading.Thread(target=lambda: dist.recv(got, 1, tag=2))
        thread.start()
        time.sleep(0.3)
        dist.send(torch.ones(1), 1, tag=1)
        thread.join()
        assert got.item() == 2
    else:
        dist.recv(got := torch.empty(1), 0, tag=1)
        dist.send(got + 1, 0, tag=2)


def in_pair(rank: int) -> None:
    """Nothing is wrong: ranks have other numbers in the group, and the same tag is used in two groups at once."""
    pair = dist.new_group([1, 3])
    if rank in (1, 3):
        other = 4 - rank
        got = [torch.empty(1), torch.empty(2)]
        works = [irecv(got[0], other, group=pair), irecv(got[1], other)]
        works += [isend(torch.full((2,), 2.0), other), isend(torch.ones(1), other, group=pair)]
        for work in works:
            work.wait()
        assert [it.tolist() for it in got] == [[1.0], [2.0, 2.0]]


def sent_dtype(rank: int) -> None:
    """Rank 1 receives into another dtype than rank 0 sends."""
    if rank == 0:
        dist.send(torch.ones(4), 1)
    if rank == 1:
        dist.recv(torch.empty(4, dtype=torch.float64), 0)


def sent_size(rank: int) -> None:
    """Rank 3 receives less than rank 2 sends, which would end its process; both look at it later."""
    if rank == 2:
        isend(torch.ones(8), 3).wait()
    if rank == 3:
        irecv(torch.empty(4), 2).wait()


def tags(rank: int) -> None:
    """Ranks 0 and 1 wait for each other on two tags."""
    if rank == 0:
        dist.send(torch.ones(4), 1, tag=1)
    if rank == 1:
        dist.recv(torch.empty(4), 0, tag=2)


def recv_and_barrier(rank: int) -> None:
    """Rank 0 receives from rank 1, which is in a barrier with it."""
    pair = dist.new_group([0, 1], group_desc="pair")
    if rank == 0:
        dist.recv(torch.empty(4), 1)
    if rank == 1:
        dist.barrier(group=pair)


def recv_circle(rank: int) -> None:
    """Three ranks each receive from the next first."""
    if rank < 3:
        dist.recv(torch.empty(4), (rank + 1) % 3)
        dist.send(torch.ones(4), (rank - 1) % 3)


def unreceived(rank: int) -> None:
    """Rank 1 does something else, rank 2 waits for another tag, and has a thread; both until 0 and 3 have given up."""
    store = dist.distributed_c10d._get_default_store()
    done = threading.Event()
    if rank == 0:
        try:
            dist.send(torch.ones(4), 1)
        finally:
            store.set("given up 0", "")
    if rank == 1:
        store.wait(["given up 0"])
    if rank == 2:
        other = threading.Thread(target=done.wait)
        other.start()
        try:
            store.set("receives 2", "")
            dist.recv(torch.empty(4), 3, tag=2)
        finally:
            done.set()
            other.join()
    if rank == 3:
        store.wait(["receives 2"])
        irecv(torch.empty(4), 2).wait(timedelta(seconds=3))


def sender_gone(rank: int) -> None:
    """Rank 1 leaves, and sends nothing."""
    dist.barrier()
    if rank == 1:
        sys.exit()
    dist.recv(torch.empty(4), 1)


def sender_killed(rank: int) -> None:
    """Rank 1 dies, with whom some have no link yet."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), 9)
    dist.recv(torch.empty(4), 1)


def receiver_killed(rank: int) -> None:
    """Rank 1 dies, to whom others send."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), 9)
    dist.send(torch.ones(4), 1)


def twice(rank: int) -> None:
    """The default group ends, and there is another, guarded as well."""
    dist.barrier()
    dist.destroy_process_group()
    join("second")
    op(rank)


def stranger(rank: int) -> None:
    """Nothing is wrong: who does not know the secret is not let in, at the address that other hosts dial."""
    if rank == 1:
        store = dist.distributed_c10d._get_default_store()
        _, _, address = json.loads(store.get("rankbridge/guard/0/1/rank/0"))
        for hello in (
            wire.hello(1, 1, b"", "0"),
            wire.hello(1, 1, b"0" * 64, "0"),
            b"GET / HTTP/1.1\r\n\r\n",
        ):
            with dial(address, 10.0) as sock:
                sock.sendall(hello)
                sock.settimeout(10.0)
                assert sock.recv(1) == b""
    dist.barrier()


def left(rank: int) -> None:
    """Nothing is wrong: ranks 2 and 3 have done their part, one of them without taking leave."""
    pair = dist.new_group([0, 1])
    ring(rank)
    store = dist.distributed_c10d._get_default_store()
    store.set(f"pid {rank}", str(os.getpid()))
    dist.barrier()
    if rank == 3:
        os._exit(0)
    if rank == 2:
        sys.exit()
    ended = torch.zeros(1)
    while not ended.item():
        # Both leave the loop when both have seen it.
        ended.fill_(all(has_ended(int(store.get(f"pid {it}"))) for it in (2, 3)))
        dist.all_reduce(ended, dist.ReduceOp.MIN, group=pair)
    dist.all_reduce(torch.ones(2), group=pair)
    dist.recv(got := torch.empty(1), 1) if rank == 0 else dist.send(torch.ones(1), 0)
    assert rank or got.item() == 1
    # Rank 0 keeps the store.
    if rank == 0:
        store.wait(["done"])
    else:
        store.set("done", "")


def has_ended(pid: int) -> bool:
    """Whether a process has ended, and closed all that it had open."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def gone(rank: int) -> None:
    """Rank 1 leaves."""
    dist.barrier()
    if rank == 1:
        sys.exit()
    dist.all_reduce(torch.ones(4))


def killed(rank: int) -> None:
    """Rank 1 dies."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), 9)
    dist.all_reduce(torch.ones(4))


def killed_first(rank: int) -> None:
    """Rank 0 dies, which rules, and keeps the job's store."""
    dist.barrier()
    if rank == 0:
        os.kill(os.getpid(), 9)
    dist.all_reduce(torch.ones(4))


def join(name: str) -> None:
    """Makes the default group. Rank 0 says in a file at which port its store is."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    ports = FileStore(f"{sys.argv[3]}/{name}", size)
    if rank == 0:
        store = TCPStore(host, 0, size, is_master=True, wait_for_workers=False)
        ports.set("port", str(store.port))
    else:
        store = TCPStore(host, int(ports.get("port")), size)
    if BACKEND == "nccl":
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        torch.set_default_device(device)
    dist.init_process_group(BACKEND, store=store, rank=rank, world_size=size)


def done(what: str) -> dict[str, Any]:
    """Does one thing; gives what came of it on this rank."""
    rank, began = dist.get_rank(), time.monotonic()
    said: dict[str, Any] = {"what": what, "rank": rank, "code": "", "text": "", "ranks": []}
    try:
        globals()[what](rank)
    except GuardError as error:
        said |= {"code": error.code, "text": str(error), "ranks": [it.rank for it in error.ranks]}
    return {**said, "seconds": time.monotonic() - began}


def main() -> None:
    """Does one thing after another, and after each, unless ranks are gone, what is right."""
    what, timeout, folder = sys.argv[1:]
    carried.MOST_BYTES = int(os.environ.get("GUARDED_MOST_CARRIED", carried.MOST_BYTES))
    watch.start(folder, guard=float(timeout))
    join("first")
    for each in what.split(","):
        said = done(each)
        if each not in _LAST:
            tensor = torch.ones(2)
            dist.all_reduce(tensor)
            said["after"] = tensor.tolist()
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
