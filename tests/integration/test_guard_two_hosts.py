"""Guard over two hosts: two network namespaces with a cable between, that the test makes, and two ranks in each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_guard import SCRIPT, SIZE

_NAMESPACES = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"]
_NAMESPACES += ["--mount-proc", "bash", "-euc"]
# The ranks end with the namespace of processes, whose first is the script.
_NETWORK = """
unshare --net sleep infinity &
other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link set lo up
ip link add name cable type veth peer name cable netns $other
ip address add 10.77.0.1/24 dev cable
ip link set cable up
nsenter --net=/proc/$other/ns/net bash -euc "
ip link set lo up
ip address add 10.77.0.2/24 dev cable
ip link set cable up"
"""
_RANKS = """
for rank in 0 1 2 3; do
  # Ranks 1 and 3 are on the second host.
  at=$([ $((rank % 2)) = 0 ] && echo self || echo $other)
  RANK=$rank nsenter --net=/proc/$at/ns/net "$PYTHON" "$SCRIPT" "$WHAT" "$TIMEOUT" "$FOLDER" \
    >"$FOLDER/$rank.out" 2>"$FOLDER/$rank.err" &
  ranks="${ranks:-} $!"
done
wait $ranks
"""

TIMEOUT_S = 5.0
Said = dict[str, Any]


def run(folder: Path, what: str) -> list[list[Said]]:
    """What each rank said."""
    if subprocess.run([*_NAMESPACES, _NETWORK], capture_output=True, check=False).returncode:
        pytest.skip("this user may make no user and network namespaces")
    environ = {
        **os.environ,
        "WORLD_SIZE": str(SIZE),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "10.77.0.1",
        "GLOO_SOCKET_IFNAME": "cable",
        "PYTHON": sys.executable,
        "SCRIPT": str(SCRIPT),
        "WHAT": what,
        "TIMEOUT": str(TIMEOUT_S),
        "FOLDER": str(folder),
    }
    subprocess.run([*_NAMESPACES, _NETWORK + _RANKS], env=environ, timeout=100, check=False)
    said = [
        [json.loads(line) for line in (folder / f"{rank}.out").read_text().splitlines()]
        for rank in range(SIZE)
    ]
    assert any(said), [(folder / f"{rank}.err").read_text() for rank in range(SIZE)]
    return said


@pytest.mark.sampled
def test_ranks_on_two_hosts_are_guarded_as_those_on_one(tmp_path: Path) -> None:
    names = ["stranger", "ring", "op", "missing", "crossed", "sent_size", "tags", "killed"]
    said = run(tmp_path, ",".join(names))
    assert [[it["what"] for it in each] for each in said] == [names, names[:-1], names, names]
    assert [it["after"] for each in said for it in each[:7]] == [[SIZE, SIZE]] * SIZE * 7
    stranger, ring, op, missing, crossed, size, tags = ([each[at] for each in said] for at in range(7))
    assert [it["text"] for it in (*stranger, *ring)] == [""] * 2 * SIZE
    for it in op:
        assert (it["code"], it["ranks"]) == ("MISMATCH", list(range(SIZE)))
        assert "ranks 0-2: float32[4] sum" in it["text"]
        assert "rank 3:    float32[4] max" in it["text"]
        assert str(SCRIPT) in it["text"]
    for rank, it in enumerate(missing):
        assert it["code"] == ("" if rank == 2 else "PEER_MISSING")
        assert rank == 2 or "missing: rank 2" in it["text"]
    for rank, it in enumerate(crossed):
        assert (it["code"], it["ranks"]) == (("MISMATCH", [0, 1]) if rank < 2 else ("", []))
    for rank, it in enumerate(size):
        assert (it["code"], sorted(it["ranks"])) == (("MISMATCH", [2, 3]) if rank > 1 else ("", []))
        assert rank < 2 or it["text"].count(f"at {SCRIPT}:") == 2
    assert ["2 ranks wait for each other" in it["text"] for it in tags] == [True, True, False, False]
    # Rank 1 was killed, on the second host.
    for killed in (said[rank][-1] for rank in (0, 2, 3)):
        assert (killed["code"], killed["ranks"]) == ("PEER_LOST", [1])
        assert "PEER_LOST in all_reduce on world: rank 1 has gone" in killed["text"]
        assert killed["seconds"] < TIMEOUT_S
