"""`python -m bench.training`: the example's training in a gang beside the same file under torchrun, in turn."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import rankbridge
from bench.gang import gang
from rankbridge import Gang

PRIV = Path(__file__).resolve().parents[1] / "elixir_client" / "examples" / "transformer" / "priv"
SIZE = 4
ARGUMENTS = ("--heartbeat-interval", "1", "--heartbeat-misses", "10", "--preload", "torch._dynamo")


def under_torchrun(steps: int) -> float:
    """Steps per second of a job of its own, without its start."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(SIZE)]
    done = subprocess.run(
        [*command, str(PRIV / "train.py"), "--steps", str(steps)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the job under torchrun has failed:\n{done.stderr}")
    return float(json.loads(done.stdout)["steps_per_second"])


def in_gang(gang: Gang, done: int, steps: int) -> float:
    """Steps per second of one call, with its reports, after so many steps."""
    began = time.perf_counter()
    call = gang.function("train", timeout=3600.0).start(done + steps)
    seen = [it for it in call.reports() if it.rank == 0]
    call.result()
    took = time.perf_counter() - began
    if len(seen) + sum(it.missed for it in seen) != steps:
        raise RuntimeError(f"{steps} steps, of which {len(seen)} were reported")
    return steps / took


def main() -> None:
    """Prints the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300, help="steps in each round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each (default: %(default)s)")
    options = parser.parse_args()
    with (
        gang(SIZE, (*ARGUMENTS, "--load", str(PRIV / "app.py"))) as endpoints,
        rankbridge.connect(str(endpoints), timeout=120.0) as trained,
    ):
        # The first steps of a gang are slower; torchrun's have a step before them, too.
        in_gang(trained, 0, 20)
        done, ours, theirs = 20, list[float](), list[float]()
        for _ in range(options.rounds):
            ours.append(in_gang(trained, done, options.steps))
            done += options.steps
            theirs.append(under_torchrun(options.steps))
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"training  gang/torchrun {median(ours) / median(theirs):.3f}   {median(ours):.1f} steps/s, "
        f"{median(theirs):.1f}   by round {ratios[0]:.3f} to {ratios[-1]:.3f}"
    )


if __name__ == "__main__":
    main()
