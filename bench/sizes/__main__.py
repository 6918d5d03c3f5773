"""`python -m bench.sizes`: a tensor of 4 GiB, 100,000 refs, 256 ranks. What takes more memory than it may fails."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import rankbridge
from bench import usage
from bench.gang import ARGUMENTS, gang
from bench.sizes import tensors
from bench.sizes.ranks import ranks
from bench.sizes.refs import refs

GIB = 1 << 30
# Beyond whole GiB, so that 4 of them are more than 2**32 bytes.
_BEYOND = 4096
_PARTS = ("transfers", "all_reduce", "refs", "ranks")
# Whole tensors that there are at once, in all processes together, and room for everything else.
_NEEDS = {"transfers": 3.0, "all_reduce": 4.5}
_ELSE = 2 * GIB


@contextmanager
def _ranks(size: int, nbytes: int) -> Iterator[Path]:
    room = ("--max-bytes", str(3 * nbytes), "--max-shared-bytes", str(2 * nbytes + GIB))
    # The last one of an argument counts.
    with gang(size, [*ARGUMENTS, *room]) as endpoints:
        yield endpoints


def _transfers(nbytes: int) -> None:
    with _ranks(1, nbytes) as endpoints:
        source = tensors.counting(nbytes)
        with rankbridge.connect(endpoints, shared_memory=False) as far:
            _tell(tensors.transfers("gRPC", far[0], source))
        with rankbridge.connect(endpoints) as near:
            _tell(tensors.transfers("shared memory", near[0], source))
            if near[0].transfers.streamed:
                raise RuntimeError(f"not by shared memory: {near[0].transfers.reason}")


def _all_reduce(nbytes: int) -> None:
    with _ranks(2, nbytes) as endpoints, rankbridge.connect(endpoints, shared_memory=False) as both:
        _tell(tensors.all_reduce(both, nbytes))


def _refs(count: int) -> None:
    with gang(1) as endpoints, rankbridge.connect(endpoints) as one:
        _tell([refs(one[0], count)])


def _tell(lines: Iterable[object]) -> None:
    told = list(lines)
    for line in told:
        print(line, flush=True)
    for line in told:
        if isinstance(line, tensors.Step):
            line.check()


def _lack(part: str, nbytes: int) -> str:
    """Why there is too little memory for a part; empty: there is enough."""
    need = int(_NEEDS.get(part, 0) * nbytes) + _ELSE
    there = usage.available_bytes()
    if there >= need:
        return ""
    return f"{part}: not done: {need / GIB:.1f} GiB of memory are needed, {there / GIB:.1f} GiB are free"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the parts; gives the exit status: 1 if memory was lacking for one of them."""
    parser = argparse.ArgumentParser(prog="python -m bench.sizes", description=__doc__)
    parser.add_argument("--gib", type=float, default=4, help="size of the tensor (default: %(default)s)")
    parser.add_argument("--refs", type=int, default=100_000, help="refs (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=256, help="ranks in one process (default: %(default)s)")
    parser.add_argument("--only", choices=_PARTS, action="append", help="a part; may be repeated")
    options = parser.parse_args(arguments)
    nbytes = int(options.gib * GIB) // 4 * 4 + _BEYOND
    status = 0
    print(f"tensors of {nbytes} bytes")
    for part in options.only or _PARTS:
        lack = _lack(part, nbytes)
        if lack:
            print(lack, flush=True)
            status = 1
        elif part == "transfers":
            _transfers(nbytes)
        elif part == "all_reduce":
            _all_reduce(nbytes)
        elif part == "refs":
            _refs(options.refs)
        else:
            _tell([ranks(options.ranks)])
    return status


if __name__ == "__main__":
    sys.exit(main())
