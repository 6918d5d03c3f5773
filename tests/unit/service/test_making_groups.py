"""How a sidecar has all ranks make a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from rankbridge.v1 import error_pb2, group_service_pb2 as pb
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.service.gang import make_group

TIMEOUT_S = 60.0
GROUP = GroupDescription("pair", (0, 1))


Served = Callable[[str, Callable[[grpc.ServicerContext], pb.NewGroupResponse]], str]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Serves a rank; gives its target."""
    with ExitStack() as servers:

        def serve(name: str, part: Callable[[grpc.ServicerContext], pb.NewGroupResponse]) -> str:
            new_group = grpc.unary_unary_rpc_method_handler(
                lambda _, context: part(context),
                pb.NewGroupRequest.FromString,
                pb.NewGroupResponse.SerializeToString,
            )
            server = grpc.server(ThreadPoolExecutor(2))
            handler = grpc.method_handlers_generic_handler(
                "rankbridge.v1.GroupService", {"NewGroup": new_group}
            )
            server.add_generic_rpc_handlers([handler])
            target = f"unix:{tmp_path}/{name}"
            server.add_insecure_port(target)
            server.start()
            servers.callback(lambda: server.stop(0).wait())
            return target

        yield serve


def test_a_rank_that_waits_is_let_go_when_another_refuses(served: Served) -> None:
    cancelled, waits, is_over = threading.Event(), threading.Event(), threading.Event()
    let_go: list[bool] = []

    def wait(context: grpc.ServicerContext) -> pb.NewGroupResponse:
        context.add_callback(cancelled.set)
        waits.set()
        let_go.append(cancelled.wait(TIMEOUT_S))
        is_over.set()
        return pb.NewGroupResponse()

    def refuse(_: grpc.ServicerContext) -> pb.NewGroupResponse:
        waits.wait(TIMEOUT_S)
        return pb.NewGroupResponse(
            error=error_pb2.Error(code=error_pb2.ERROR_CODE_GROUP_EXISTS, message="it is there already")
        )

    targets = [served("waits", wait), served("refuses", refuse)]
    with pytest.raises(BridgeError, match="it is there already") as refused:
        make_group(targets, GROUP, TIMEOUT_S)
    assert refused.value.failure.code is ErrorCode.GROUP_EXISTS
    assert is_over.wait(TIMEOUT_S)
    assert let_go == [True]


def test_a_rank_that_serves_late_is_waited_for(served: Served, tmp_path: Path) -> None:
    came = threading.Event()

    def come(_: grpc.ServicerContext) -> pb.NewGroupResponse:
        came.set()
        return pb.NewGroupResponse()

    def late(_: grpc.ServicerContext) -> pb.NewGroupResponse:
        return pb.NewGroupResponse()

    targets = [served("early", come), f"unix:{tmp_path}/late"]
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(make_group, targets, GROUP, TIMEOUT_S)
        assert came.wait(TIMEOUT_S)
        served("late", late)
        made.result(TIMEOUT_S)
