"""A rank of a job that goes wrong, or does not. Usage, below torchrun: job.py NAME SEED FOLDER."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, TCPStore

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.diagnose.plan import PAIRS, Plan, marker
from tests.diagnose.stalls import LONG_S, STALLS

NAME, SEED, FOLDER = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
RANK = int(os.environ["RANK"])
PLAN = Plan.drawn(NAME, SEED)
STEPS = 1_000_000
Step = Callable[[int], None]


def hit() -> None:
    """Says that the fault begins."""
    marker(FOLDER, RANK).touch()


def is_hit(step: int) -> bool:
    """Whether this rank goes wrong at this step."""
    return PLAN.victim == RANK and step == PLAN.step


class Job:
    """Groups of a job, and its ordinary step."""

    def __init__(self) -> None:
        dist.init_process_group("gloo")
        made = [dist.new_group(list(pair)) for pair in PAIRS]
        self.pair = made[RANK % 2]
        self.late = 0.0

    def next_batch(self, step: int) -> torch.Tensor:
        """Ordinary work."""
        time.sleep(0.005)
        return torch.full((16,), float(step))

    def step(self, step: int) -> None:
        """An ordinary step."""
        batch = self.next_batch(step)
        dist.all_reduce(batch)
        dist.all_reduce(batch, group=self.pair)


def run(step: Step) -> None:
    """Does all steps."""
    for it in range(STEPS):
        step(it)
        marker(FOLDER, RANK + 100).touch()


def stall(job: Job, what: Callable[[], None], victims: tuple[int, ...]) -> None:
    """Ordinary steps; the victims do something else at theirs."""

    def step(it: int) -> None:
        if it == PLAN.step and RANK in victims:
            hit()
            what()
        job.step(it)

    run(step)


def moving_threads(job: Job) -> None:
    import threading

    def beat() -> None:
        while True:
            time.sleep(0.02)

    threading.Thread(target=beat, daemon=True).start()
    stall(job, STALLS["asleep"], (PLAN.victim,))


def in_subgroup(job: Job) -> None:
    def step(it: int) -> None:
        job.step(it)
        if is_hit(it):
            hit()
            time.sleep(LONG_S)
        dist.all_reduce(torch.ones(3), group=job.pair)

    run(step)


def in_ddp(job: Job) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(it: int) -> None:
        if is_hit(it):
            hit()
            time.sleep(LONG_S)
        optimizer.zero_grad()
        model(job.next_batch(it).repeat(2)).sum().backward()
        optimizer.step()

    run(step)


def in_objects(job: Job) -> None:
    def step(it: int) -> None:
        found: list[object] = [None] * dist.get_world_size()
        if is_hit(it):
            hit()
            time.sleep(LONG_S)
        dist.all_gather_object(found, {"step": it})

    run(step)


def other_collective(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if is_hit(it):
            hit()
            dist.broadcast(batch, 0)
        else:
            dist.all_reduce(batch)

    run(step)


def extra_barrier(job: Job) -> None:
    def step(it: int) -> None:
        if is_hit(it):
            hit()
            dist.barrier()
        job.step(it)

    run(step)


def half_and_half(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if it == PLAN.step and RANK in (PLAN.victim, PLAN.other):
            hit()
            dist.barrier()
        else:
            dist.all_reduce(batch)

    run(step)


def other_root(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        root = PLAN.other
        if is_hit(it):
            hit()
            root = PLAN.victim
        dist.broadcast(batch, root)
        dist.all_reduce(batch)

    run(step)


def other_shape(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if is_hit(it):
            hit()
            batch = torch.ones(24)
        dist.all_reduce(batch)

    run(step)


def other_dtype(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if is_hit(it):
            hit()
            batch = batch.double()
        dist.all_reduce(batch)

    run(step)


def swallowed(job: Job) -> None:
    def step(it: int) -> None:
        try:
            if is_hit(it):
                hit()
                raise ValueError("a bad batch")
            dist.all_reduce(torch.ones(8))
        except ValueError:
            pass
        dist.all_reduce(torch.ones(2))

    run(step)


def other_op(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        wrong = is_hit(it)
        if wrong:
            hit()
        dist.all_reduce(batch, dist.ReduceOp.MAX if wrong else dist.ReduceOp.SUM)

    run(step)


def other_order(job: Job) -> None:
    def step(it: int) -> None:
        first, second = torch.ones(4), torch.ones(4)
        job.next_batch(it)
        if is_hit(it):
            hit()
            first, second = second, first
            reduce_second(second)
            reduce_first(first)
        else:
            reduce_first(first)
            reduce_second(second)

    def reduce_first(it: torch.Tensor) -> None:
        dist.all_reduce(it)

    def reduce_second(it: torch.Tensor) -> None:
        dist.all_reduce(it)

    run(step)


def two_groups(job: Job) -> None:
    both = dist.new_group([PLAN.victim, PLAN.partner])
    inverted = PLAN.victim == RANK

    def step(it: int) -> None:
        groups = [job.pair, both]
        if RANK in (PLAN.victim, PLAN.partner):
            if it == PLAN.step and inverted:
                hit()
                groups.reverse()
            for group in groups:
                dist.all_reduce(torch.ones(4), group=group)
        dist.all_reduce(job.next_batch(it))

    run(step)


def p2p(job: Job, tag: int = 0, peer: int | None = None) -> None:
    """The victim sends to its partner; at its step with another tag, or to another rank."""

    def step(it: int) -> None:
        batch = job.next_batch(it)
        wrong = it == PLAN.step
        if PLAN.victim == RANK:
            if wrong:
                hit()
            dist.send(
                batch, peer if wrong and peer is not None else PLAN.partner, tag=1 + (tag if wrong else 0)
            )
        elif PLAN.partner == RANK:
            dist.recv(batch, PLAN.victim, tag=1)
        dist.all_reduce(batch)

    run(step)


def p2p_size(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if PLAN.victim == RANK:
            wrong = it == PLAN.step
            if wrong:
                hit()
            dist.send(torch.ones(64) if wrong else batch, PLAN.partner)
        elif PLAN.partner == RANK:
            dist.recv(batch, PLAN.victim)
        dist.all_reduce(batch)

    run(step)


def waited(work: dist.Work | None) -> None:
    """Waits for it; None is for ranks that are no members."""
    if work is not None:
        work.wait()


def p2p_work(job: Job) -> None:
    """The victim sleeps; its partner waits for it in a receive that no record has, and all others for the partner."""

    def step(it: int) -> None:
        batch = job.next_batch(it)
        if PLAN.victim == RANK:
            if it == PLAN.step:
                hit()
                time.sleep(LONG_S)
            waited(dist.isend(batch, PLAN.partner))
        elif PLAN.partner == RANK:
            waited(dist.irecv(batch, PLAN.victim))
        dist.all_reduce(batch)

    run(step)


def p2p_never_sent(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        if PLAN.victim == RANK:
            if it == PLAN.step:
                hit()
                time.sleep(LONG_S)
            dist.send(batch, PLAN.partner)
        elif PLAN.partner == RANK:
            dist.recv(batch, PLAN.victim)
        dist.all_reduce(batch)

    run(step)


def p2p_and_collective(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        wrong = it == PLAN.step
        if PLAN.victim == RANK:
            if wrong:
                hit()
                dist.all_reduce(batch)
            dist.send(batch, PLAN.partner)
            if not wrong:
                dist.all_reduce(batch)
        else:
            if PLAN.partner == RANK:
                dist.recv(batch, PLAN.victim)
            dist.all_reduce(batch)

    run(step)


def teardown(job: Job) -> None:
    def wait() -> None:
        hit()
        time.sleep(LONG_S)

    for it in range(STEPS):
        if is_hit(it):
            atexit.register(wait)
            return
        job.step(it)


def thread_at_exit(job: Job) -> None:
    import threading

    for it in range(STEPS):
        if is_hit(it):
            threading.Thread(target=time.sleep, args=[LONG_S]).start()
            hit()
            return
        job.step(it)


def killed(job: Job) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    stall(job, die, (PLAN.victim,))


def fewer_steps(job: Job) -> None:
    for it in range(STEPS):
        if is_hit(it):
            hit()
            return
        job.step(it)


def raises(job: Job) -> None:
    def fail() -> None:
        raise ValueError("a bad batch")

    stall(job, fail, (PLAN.victim,))


def slow_rank(job: Job) -> None:
    def step(it: int) -> None:
        if PLAN.victim == RANK:
            time.sleep(0.15)
            if it == 25:
                hit()
        job.step(it)

    run(step)


def busy_rank(job: Job) -> None:
    def step(it: int) -> None:
        if PLAN.victim == RANK:
            until = time.monotonic() + 0.15
            while time.monotonic() < until:
                torch.ones(64, 64) @ torch.ones(64, 64)
            if it == 25:
                hit()
        job.step(it)

    run(step)


# What follows is right, and must not be blamed.


def fast(job: Job) -> None:
    run(job.step)


def all_slow(job: Job) -> None:
    def step(it: int) -> None:
        time.sleep(0.6)
        job.step(it)

    run(step)


def taking_turns(job: Job) -> None:
    def step(it: int) -> None:
        if it % dist.get_world_size() == RANK:
            time.sleep(0.3)
        job.step(it)

    run(step)


def checkpoints(job: Job) -> None:
    def step(it: int) -> None:
        if RANK == 0 and it % 20 == 0:
            time.sleep(1.2)
        job.step(it)

    run(step)


def computing(job: Job) -> None:
    def step(it: int) -> None:
        until = time.monotonic() + 0.7
        while time.monotonic() < until:
            torch.ones(64, 64) @ torch.ones(64, 64)
        job.step(it)

    run(step)


def uneven_sizes(job: Job) -> None:
    size = dist.get_world_size()

    def step(it: int) -> None:
        job.next_batch(it)
        given = [RANK + 1] * size
        taken = [it + 1 for it in range(size)]
        dist.all_to_all_single(torch.empty(sum(taken)), torch.ones(sum(given)), taken, given)
        found: list[object] = [None] * size
        dist.all_gather_object(found, "x" * (RANK + 1) * 100)

    run(step)


def pipeline(job: Job) -> None:
    size = dist.get_world_size()

    def step(it: int) -> None:
        batch = job.next_batch(it)
        if RANK:
            dist.recv(batch, RANK - 1)
        time.sleep(0.05)
        if size - 1 > RANK:
            dist.send(batch, RANK + 1)
        if it % 10 == 9:
            dist.barrier()

    run(step)


def other_lines(job: Job) -> None:
    def step(it: int) -> None:
        batch = job.next_batch(it)
        root = it % dist.get_world_size()
        if root == RANK:
            dist.broadcast(batch, root)
        else:
            dist.broadcast(batch, root)

    run(step)


def overlapped(job: Job) -> None:
    def step(it: int) -> None:
        works = [dist.all_reduce(torch.ones(4096), async_op=True) for _ in range(8)]
        job.next_batch(it)
        for work in works:
            work.wait()

    run(step)


def training(job: Job) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))

    def step(it: int) -> None:
        model.zero_grad()
        model(job.next_batch(it).repeat(4)).sum().backward()

    run(step)


def made_anew(job: Job) -> None:
    for it in range(8):
        job.step(it)
    # Who is done first would close connections that others still read.
    time.sleep(0.5)
    dist.destroy_process_group()
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    dist.init_process_group("gloo", store=PrefixStore("anew", store), rank=RANK, world_size=4)

    def step(it: int) -> None:
        time.sleep(0.005)
        dist.broadcast(torch.ones(3), 0)
        dist.barrier()

    run(step)


def idle(job: Job) -> None:
    for it in range(20):
        job.step(it)
    hit()
    marker(FOLDER, RANK + 100).touch()
    time.sleep(LONG_S)


def slow_start(job: Job) -> None:
    if RANK == 0:
        time.sleep(3.5)
    marker(FOLDER, RANK + 100).touch()
    run(job.step)


def own_program(name: str) -> Callable[[Job], None]:
    """What the name says."""
    if name in STALLS:
        return lambda job: stall(job, STALLS[name], (PLAN.victim,))
    if name == "two_asleep":
        return lambda job: stall(job, STALLS["asleep"], (PLAN.victim, PLAN.other))
    if name == "p2p_tag":
        return lambda job: p2p(job, tag=6)
    if name == "p2p_peer":
        away = next(it for it in range(4) if it not in (PLAN.victim, PLAN.partner))
        return lambda job: p2p(job, peer=away)
    found: Callable[[Job], None] = globals()[name]
    return found


def main() -> None:
    """Is one rank."""
    if NAME == "not_begun" and PLAN.victim == RANK:
        hit()
        time.sleep(LONG_S)
    if NAME == "not_begun":
        marker(FOLDER, RANK).touch()
        dist.init_process_group("gloo")
        return
    own_program(NAME)(Job())


if __name__ == "__main__":
    main()
