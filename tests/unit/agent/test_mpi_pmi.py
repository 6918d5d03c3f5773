"""What the agent answers to ranks that begin MPI, line by line."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from rankbridge_server.agent.pmi import Pmi

PATIENCE_S = 30.0


@pytest.fixture
def pmi() -> Iterator[Pmi]:
    it = Pmi(2)
    for end in it.ends:
        end.settimeout(PATIENCE_S)
    yield it
    it.close()


def ask(pmi: Pmi, rank: int, request: str) -> str:
    pmi.ends[rank].sendall(request.encode() + b"\n")
    assert select.select([pmi], [], [], PATIENCE_S)[0] == [pmi]
    assert pmi.serve() == []
    return line(pmi.ends[rank])


def line(end: socket.socket) -> str:
    data = b""
    while not data.endswith(b"\n"):
        data += end.recv(1)
    return data.decode().strip()


def quiet(end: socket.socket) -> bool:
    return select.select([end], [], [], 0)[0] == []


def test_a_rank_learns_of_the_server_and_the_job(pmi: Pmi) -> None:
    begun = ask(pmi, 0, "cmd=init pmi_version=1 pmi_subversion=1")
    assert begun == "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"
    assert ask(pmi, 0, "cmd=get_maxes").startswith("cmd=maxes rc=0 kvsname_max=")
    assert ask(pmi, 0, "cmd=get_appnum") == "cmd=appnum rc=0 appnum=0"
    assert ask(pmi, 0, "cmd=get_universe_size") == "cmd=universe_size rc=0 size=2"
    assert ask(pmi, 1, "cmd=finalize") == "cmd=finalize_ack rc=0"
    names = {ask(pmi, rank, "cmd=get_my_kvsname") for rank in range(2)}
    assert len(names) == 1


def test_two_jobs_have_different_names(pmi: Pmi) -> None:
    other = Pmi(1)
    assert ask(pmi, 0, "cmd=get_my_kvsname") != ask(other, 0, "cmd=get_my_kvsname")
    other.close()


def test_all_ranks_are_said_to_be_on_one_host(pmi: Pmi) -> None:
    answer = ask(pmi, 0, "cmd=get kvsname=x key=PMI_process_mapping")
    assert answer == "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))"


def test_what_one_rank_puts_the_other_gets(pmi: Pmi) -> None:
    assert ask(pmi, 0, "cmd=put kvsname=x key=address value=a=b#c") == "cmd=put_result rc=0 msg=success"
    assert ask(pmi, 1, "cmd=get kvsname=x key=address") == "cmd=get_result rc=0 msg=success value=a=b#c"
    assert ask(pmi, 1, "cmd=get kvsname=x key=other").startswith("cmd=get_result rc=-1")


def test_ranks_wait_for_each_other_again_and_again(pmi: Pmi) -> None:
    for first in (0, 1, 1):
        pmi.ends[first].sendall(b"cmd=barrier_in\n")
        assert pmi.serve() == []
        assert quiet(pmi.ends[0])
        assert quiet(pmi.ends[1])
        assert ask(pmi, 1 - first, "cmd=barrier_in") == "cmd=barrier_out rc=0"
        assert line(pmi.ends[first]) == "cmd=barrier_out rc=0"


def test_lines_come_in_pieces_and_together(pmi: Pmi) -> None:
    pmi.ends[0].sendall(b"cmd=get_app")
    assert pmi.serve() == []
    assert quiet(pmi.ends[0])
    pmi.ends[0].sendall(b"num\ncmd=get_universe_size\ncmd=")
    assert pmi.serve() == []
    assert [line(pmi.ends[0]) for _ in range(2)] == [
        "cmd=appnum rc=0 appnum=0",
        "cmd=universe_size rc=0 size=2",
    ]
    assert quiet(pmi.ends[0])


@pytest.mark.parametrize(
    "garbage",
    [b"cmd=spawn nprocs=1\n", b"\n", b"\xff\x00\n", b"x" * 5000],
    ids=["spawn", "empty", "binary", "endless"],
)
def test_a_rank_that_asks_what_there_is_not_is_given_up(pmi: Pmi, garbage: bytes) -> None:
    pmi.ends[1].sendall(garbage)
    assert pmi.serve() == [1]
    assert pmi.serve() == []
    assert pmi.ends[1].recv(1) == b""
    assert ask(pmi, 0, "cmd=get_appnum") == "cmd=appnum rc=0 appnum=0"


def test_a_rank_that_is_gone_is_told_once(pmi: Pmi) -> None:
    pmi.ends[0].close()
    assert pmi.serve() == [0]
    assert pmi.serve() == []
    pmi.ends[1].sendall(b"cmd=barrier_in\n")
    assert pmi.serve() == []
    assert quiet(pmi.ends[1])
