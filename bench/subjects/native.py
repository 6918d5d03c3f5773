"""The native loop, as torchrun's ranks have it: every rank calls torch.distributed itself. No controller: the floor.

"careful": the native loop that does what admission makes sure of, without a word to a controller: nobody begins
before all are there, and a failed all_reduce leaves the tensor as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from bench.looping import Place, looping, looping_pids
from bench.native_rank import NativeRank, free_port
from bench.subject import Timed, Ways, looped, serve, timed

OPERATIONS = ("barrier", "all_reduce_4B", "all_reduce_4MB", "broadcast_4MB")
LOOPED = {"loop_barrier": "barrier", "loop_all_reduce_4B": "all_reduce_4B"}
CAREFUL = {name: f"careful_{name}" for name in ("all_reduce_4B", "all_reduce_4MB")}


def enter(place: Place) -> Mapping[str, Timed]:
    """Becomes a rank."""
    native = NativeRank(place.rank, place.size, place.meet(free_port())[0])
    return {
        **{name: timed(getattr(native, name)) for name in (*OPERATIONS, *CAREFUL.values())},
        **{name: looped(getattr(native, once)) for name, once in LOOPED.items()},
    }


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts the ranks."""
    names = (*OPERATIONS, *LOOPED, *CAREFUL.values())
    with looping(size, names, enter, preload=["torch.distributed"]) as operations:
        loop = {name: operations[name] for name in (*OPERATIONS, *LOOPED)}
        careful = {name: operations[method] for name, method in CAREFUL.items()}
        yield Ways({"torch": version("torch")}, {"loop": loop, "careful": careful}, {}, looping_pids())


if __name__ == "__main__":
    from bench.subjects import native

    serve(native.started)
