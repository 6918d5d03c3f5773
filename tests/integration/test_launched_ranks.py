"""Ranks of a launcher among strangers: who takes part, and what goes over which network."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integration.test_tls_ranks import line, rank
from tests.support.gangs import RANKBRIDGE
from tests.support.proc import open_files
from torch._C._distributed_c10d import TCPStore

import rankbridge
from rankbridge_server.core.tokens import Tokens
from rankbridge_server.sidecar.token_files import write_new

TIMEOUT_S = 60


def run(*options: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a rank that is to end by itself."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("MASTER_ADDR", "MASTER_PORT")}
    return subprocess.run(
        [RANKBRIDGE, "rank", "--rank", "0", *options],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=inherited | (environ or {}),
        check=False,
    )


@pytest.mark.sampled
def test_a_stranger_in_the_launchers_store_is_no_rank_and_is_shown_no_token(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    write_new(tokens, Tokens.new().to_json())
    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    launcher = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    with socket.create_server(("127.0.0.1", 0)) as trap:
        mine = json.dumps([os.getpid(), f"127.0.0.1:{trap.getsockname()[1]}"])
        for entry in (mine, Tokens.new().seal(mine, "rankbridge/0")):
            store.set("rankbridge/0/given/1", entry)
            # The stranger has read everything, and waits for nobody.
            store.set("rankbridge/0/done", "1")
            store.set("rankbridge/0/left", "1")
            ended = run("--size", "2", "--token-file", str(tokens), environ=launcher)
            assert ended.returncode == 2
            assert "of rank 1 is not believed: it does not come from a rank with the same" in ended.stderr
        # Nobody has dialled the stranger.
        trap.setblocking(False)
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_no_rank_serves_beyond_its_host_in_plain_text_or_without_tokens_unless_asked_to(
    tmp_path: Path,
) -> None:
    tokens = tmp_path / "tokens"
    write_new(tokens, Tokens.new().to_json())
    for options, why in (
        ((), "in plain text. Give --tls-cert and --tls-key, or --insecure-token"),
        (("--token-file", str(tokens)), "in plain text"),
        (("--insecure-token",), "who may call a rank on 0.0.0.0? Give --token-file FILE"),
    ):
        ended = run("--size", "1", "--listen", "0.0.0.0:0", "--trusted-network", *options)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert why in ended.stderr


@pytest.mark.parametrize("everywhere", ["0.0.0.0:0", "[::]:0"])
def test_no_rank_serves_on_every_network_unless_it_is_told_that_all_are_trusted(everywhere: str) -> None:
    ended = run("--size", "1", "--listen", everywhere, "--no-tokens")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "serves on every network that this host is in" in ended.stderr
    assert "--trusted-network if you trust all of them" in ended.stderr


def listening(pid: int) -> set[str]:
    """The addresses at which a process listens. gRPC's sockets take IPv4 by IPv6."""
    inodes = {name.removeprefix("socket:[").rstrip("]") for name in open_files(pid)}
    found = set()
    for family in ("tcp", "tcp6"):
        for text in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            row = text.split()
            if row[3] == "0A" and row[9] in inodes:
                # In words of four bytes, of which the last is that of an IPv4 address.
                word = bytes.fromhex(row[1].partition(":")[0])[-4:]
                found.add(socket.inet_ntoa(word[::-1]))
    return found


@pytest.mark.parametrize(
    ("options", "addresses", "advertised"),
    [
        (["--listen", "127.0.0.2:0"], {"127.0.0.2"}, "127.0.0.2"),
        (["--listen", "0.0.0.0:0", "--advertise", "127.0.0.3"], {"0.0.0.0", "127.0.0.3"}, "127.0.0.3"),
        (["--listen", "0.0.0.0:0"], {"0.0.0.0", "127.0.0.1"}, "127.0.0.1"),
    ],
    ids=["one", "all", "all, and the others are here"],
)
def test_a_rank_listens_where_it_is_told_to_and_gloo_at_what_it_advertises(
    tmp_path: Path, options: list[str], addresses: set[str], advertised: str
) -> None:
    file = tmp_path / "endpoints.json"
    common = ["--no-tokens", "--trusted-network", "--endpoints-file", str(file)]
    with ExitStack() as stack:
        store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
        launcher = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }
        ranks = [stack.enter_context(rank(it, 2, [*options, *common], launcher)) for it in range(2)]
        line(ranks[0], "ready: 2 ranks")
        targets = [it["endpoints"][0] for it in json.loads(file.read_text())["ranks"]]
        assert all(target.startswith(f"{advertised}:") for target in targets)
        # gRPC, links, and Gloo.
        assert [listening(it.pid) for it in ranks] == [addresses] * 2
        with rankbridge.connect(file) as gang:
            gang.barrier()


@pytest.mark.parametrize(
    ("mode", "text", "why"),
    [
        (0o640, Tokens.new().to_json(), "can be read by others: chmod 600"),
        (0o604, Tokens.new().to_json(), "can be read by others: chmod 600"),
        (0o600, "{}", "these are no tokens"),
        (0o600, '{"observe": "a", "drive": "b", "own": "c", "peer": "d"}', "32 characters or more"),
        (0o600, None, "No such file"),
    ],
)
def test_a_file_of_tokens_that_is_no_good_ends_the_command(
    tmp_path: Path, mode: int, text: str | None, why: str
) -> None:
    tokens = tmp_path / "tokens"
    if text is not None:
        write_new(tokens, text)
        tokens.chmod(mode)
    for command in (("up", "--size", "1", "--backend", "fake"), ("rank", "--rank", "0", "--size", "1")):
        ended = subprocess.run(
            [RANKBRIDGE, *command, "--token-file", str(tokens)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ended.returncode == 2
        assert why in ended.stderr
        assert (text or "none") not in ended.stderr
