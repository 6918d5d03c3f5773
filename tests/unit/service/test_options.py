"""What the proto says of operations in options, as the server and its callers read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import MessageOptions
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tests.unit.service.stages import ByGrpc, Stage

from rankbridge.v1 import options_pb2
from rankbridge_server.service.operations.table import GANG_OPERATIONS, OPERATIONS


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    it = Stage(tmp_path, ByGrpc)
    yield it
    it.close()


def test_gang_calls_are_what_has_no_single_partner() -> None:
    alone = {
        *("send", "recv", "send_object", "recv_object", "send_tensor_dict", "recv_tensor_dict"),
        *("enqueue", "dequeue"),
    }
    assert set(OPERATIONS) - set(GANG_OPERATIONS) == alone


def test_options_are_served_by_reflection(stage: Stage) -> None:
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(stage.channels[0]))
    assert pool.FindExtensionByName("rankbridge.v1.operation").number == 50000
    service = pool.FindServiceByName("rankbridge.v1.CollectiveService")
    request = service.methods_by_name["Scan"].input_type
    options = MessageOptions.FromString(request.GetOptions().SerializeToString())
    declared = options.Extensions[options_pb2.operation]
    assert (declared.systems, declared.gang_call) == ("MPI `Scan`, `Exscan`", True)
