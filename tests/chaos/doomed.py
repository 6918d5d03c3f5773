"""A controller that is about to die: it holds refs in a leased session and has calls in flight that nobody will join.

As a program: `python -m tests.chaos.doomed RANK LEASE_SECONDS TARGET...`. It writes its session's id when it is ready.
"""

from __future__ import annotations

import sys

import numpy as np

import rankbridge


def main(rank: int, lease: float, targets: list[str]) -> None:
    """Holds on until it is killed, or standard input is closed."""
    with rankbridge.connect(targets, lease=lease) as gang:
        gang.put_same(np.ones(1000, np.float32))
        # A call that nobody holds on to is withdrawn.
        pending = gang[rank].start("barrier", timeout=60)
        while gang[rank].status().pending_operations == 0:
            pass
        print(gang.session_id, flush=True)
        sys.stdin.read()
        pending.cancel()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
