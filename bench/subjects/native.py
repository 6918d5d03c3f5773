"""The native loop, as torchrun's ranks have it: every rank calls torch.distributed itself. No controller: the floor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from bench.looping import Place, looping, looping_pids
from bench.native_rank import NativeRank, free_port
from bench.subject import Timed, Ways, looped, serve, timed

OPERATIONS = ("barrier", "all_reduce_4B", "all_reduce_4MB", "broadcast_4MB")


def enter(place: Place) -> Mapping[str, Timed]:
    """Becomes a rank."""
    native = NativeRank(place.rank, place.size, place.meet(free_port())[0])
    return {
        **{name: timed(getattr(native, name)) for name in OPERATIONS},
        "loop_barrier": looped(native.barrier),
        "loop_all_reduce_4B": looped(native.all_reduce_4B),
    }


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts the ranks."""
    names = (*OPERATIONS, "loop_barrier", "loop_all_reduce_4B")
    with looping(size, names, enter, preload=["torch.distributed"]) as operations:
        yield Ways({"torch": version("torch")}, {"loop": operations}, {}, looping_pids())


if __name__ == "__main__":
    from bench.subjects import native

    serve(native.started)
