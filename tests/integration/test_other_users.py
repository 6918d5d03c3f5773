"""What another user of the host can reach of a gang: nothing, also where its directory would let everybody in."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RunningGang, up
from tests.support.local_gang import LocalGang
from tests.support.proc import open_files
from tests.support.strangers import needs_another_user, strange_process, stranger
from tests.support.waiting import until

import rankbridge
from rankbridge.v1 import rank_service_pb2
from rankbridge.v1.rank_service_pb2_grpc import RankServiceStub
from rankbridge_server.core.queues.connection import Listener, Message, MessageKind, connect
from rankbridge_server.core.tokens import Tokens
from rankbridge_server.service.gate import bearing
from rankbridge_server.service.server import Server

pytestmark = needs_another_user

# Says of each path what came of connecting to it and sending something: "refused", "closed" or "answered".
CONNECT = """
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        try:
            sock.connect(path)
            sock.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(9))
            print("answered" if sock.recv(1) else "closed")
        except (PermissionError, FileNotFoundError):
            print("refused")
        except ConnectionError:
            print("closed")
"""
READ = """
for path in sys.argv[1:]:
    try:
        print(len(open(path).read()))
    except PermissionError:
        print("refused")
"""
CALL = """
stub = RankServiceStub(grpc.insecure_channel(sys.argv[1]))
try:
    stub.DescribeRank(DescribeRankRequest(), timeout=20)
    print("answered")
except grpc.RpcError as error:
    print(error.code().name)
"""
CALL_IMPORTS = """grpc, sys
from rankbridge.v1.rank_service_pb2 import DescribeRankRequest
from rankbridge.v1.rank_service_pb2_grpc import RankServiceStub"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    with up(tmp_path_factory.mktemp("strangers"), 2, "gloo", PATIENT) as gang:
        yield gang


def sockets(running: RunningGang) -> list[Path]:
    """Every unix socket of the gang: gRPC's, those of streams, and those of links."""
    directory = Path(running.targets[0].removeprefix("unix:")).parent
    found = sorted(path for path in directory.iterdir() if path.is_socket())
    assert {path.name.partition(".")[0] for path in found} == {"rank-0", "rank-1", "links-0", "links-1"}
    assert len(found) == 6
    return found


def test_the_directory_lets_nobody_in(running: RunningGang) -> None:
    paths = sockets(running)
    assert stranger("socket, sys", CONNECT, *map(str, paths)) == ["refused"] * len(paths)
    files = [str(running.endpoints_file), running.description["token_file"]]
    assert stranger("sys", READ, *files) == ["refused"] * 2
    assert [Path(file).stat().st_mode & 0o777 for file in files] == [0o600] * 2


def test_nor_do_the_sockets_where_the_directory_does(running: RunningGang) -> None:
    paths = sockets(running)
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o600] * len(paths)
    before = {pid: len(open_files(pid)) for pid in running.pids}
    with rankbridge.connect(running.endpoints_file) as gang:
        directory = paths[0].parent
        directory.chmod(0o755)
        try:
            assert stranger("socket, sys", CONNECT, *map(str, paths)) == ["refused"] * len(paths)
            # Where the sockets themselves are anybody's, the kernel says who comes. gRPC does not ask it.
            ours = [path for path in paths if not path.name.startswith("rank-") or path.suffix]
            for path in ours:
                path.chmod(0o666)
            assert stranger("socket, sys", CONNECT, *map(str, ours)) == ["closed"] * len(ours)
        finally:
            directory.chmod(0o700)
            for path in paths:
                path.chmod(0o600)
        gang.barrier()
        assert [status.generation for status in gang.status()] == [1, 1]
        assert [status.pid for status in gang.status()] == running.pids
    until(lambda: {pid: len(open_files(pid)) for pid in running.pids} == before)


def test_nor_does_a_tcp_port(running: RunningGang) -> None:
    for target in running.tcp_targets:
        assert stranger(CALL_IMPORTS, CALL, target) == ["UNAUTHENTICATED"]


KNOCK = r"""
sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sock.settimeout(20)
sock.connect("\0" + sys.argv[1])
sock.send(bytes.fromhex(sys.argv[2]) + (1).to_bytes(4, sys.byteorder))
print("knocked", flush=True)
"""


def test_a_reader_of_a_queue_is_of_the_same_user_also_where_another_knows_the_secret() -> None:
    listener = Listener()
    try:
        assert stranger("socket, sys", KNOCK, listener.address, listener.secret.hex()) == ["knocked"]
        # It has connected first; who comes as the same reader after it is the reader.
        connection = connect(listener.address, listener.secret, 1, timeout=20)
        admitted = listener.admit([1])
        assert sorted(admitted) == [1]
        assert connection.send(Message(MessageKind.READ, 7))
        assert admitted[1].receive() == (Message(MessageKind.READ, 7), None)
        connection.close()
        admitted[1].close()
    finally:
        listener.close()


LISTEN = r"""
sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sock.bind("\0" + sys.argv[1])
sock.listen()
print("listens", flush=True)
sys.stdin.read()
sock.setblocking(False)
print(len(sock.accept()[0].recv(100)))
"""


def test_a_reader_of_a_queue_tells_another_users_listener_nothing() -> None:
    address = f"rankbridge-{secrets.token_hex(16)}"
    with strange_process("socket, sys", LISTEN, address) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listens\n"
        with pytest.raises(PermissionError, match="another user"):
            connect(address, bytes(32), 1, timeout=20)
        assert process.communicate() == ("0\n", "")


def test_an_abstract_socket_of_grpc_is_no_way_around_the_token() -> None:
    tokens = Tokens.new()
    address = f"unix-abstract:rankbridge-{secrets.token_hex(16)}"
    server = Server(LocalGang(1).ranks[0], [address], 16, tokens=lambda: tokens)
    server.start()
    try:
        assert stranger(CALL_IMPORTS, CALL, address) == ["UNAUTHENTICATED"]
        with grpc.insecure_channel(address) as channel:
            request = rank_service_pb2.DescribeRankRequest()
            assert (
                RankServiceStub(channel)
                .DescribeRank(request, timeout=20, metadata=bearing(tokens.observe))
                .pid
            )
    finally:
        server.stop(0)
