"""Ranks that are reached by IPv6."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.test_tls_ranks import line, rank, works
from tests.support.gangs import RANKBRIDGE
from torch._C._distributed_c10d import TCPStore

import rankbridge

SIZE = 2


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this kernel has no ::1")
@pytest.mark.parametrize(
    "options",
    [
        ["--listen", "[::1]:0"],
        [
            "--listen",
            "[::]:0",
            "--advertise",
            "::1",
            "--token-file",
            "tokens",
            "--insecure-token",
            "--trusted-network",
        ],
    ],
    ids=["listen", "both"],
)
def test_ranks_form_and_work_by_ipv6(tmp_path: Path, options: list[str]) -> None:
    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    launcher = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    file = tmp_path / "endpoints.json"
    tokens = tmp_path / "tokens"
    subprocess.run([RANKBRIDGE, "tokens", tokens], check=True, timeout=60)
    options = [str(tokens) if option == "tokens" else option for option in options]
    with ExitStack() as stack:
        ranks = [
            stack.enter_context(rank(number, SIZE, ["--endpoints-file", str(file), *options], launcher))
            for number in range(SIZE)
        ]
        line(ranks[0], f"ready: {SIZE} ranks")
        targets = [it["endpoints"][0] for it in json.loads(file.read_text())["ranks"]]
        assert all(target.startswith("[::1]:") for target in targets)
        with rankbridge.connect(file) as gang:
            assert works(gang)


@pytest.mark.parametrize("option", ["--listen", "--advertise"])
@pytest.mark.parametrize("address", ["", ":50051", "[::1", "host:port", "host:65536", "[::1]50051"])
def test_an_address_that_is_none_is_refused(option: str, address: str) -> None:
    command = [RANKBRIDGE, "rank", "--rank", "0", "--size", "1", f"{option}={address}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ, check=False)
    assert done.returncode == 2
    assert f"Invalid value for '{option}': must be HOST:PORT" in done.stderr
    assert repr(address) in done.stderr
