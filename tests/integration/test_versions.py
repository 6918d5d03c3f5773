"""docs/versions.md: a client that knows the messages of the last release alone drives the ranks of this version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from tests.support.gangs import RunningGang

BASELINE = Path(__file__).resolve().parents[2] / "proto" / "baseline.binpb"
TIMEOUT_S = 30.0


class LastRelease:
    """Messages and methods as the last release has them."""

    def __init__(self) -> None:
        self._pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(BASELINE.read_bytes()).file:
            self._pool.Add(file)

    def message(self, name: str, **fields: Any) -> Any:
        return GetMessageClass(self._pool.FindMessageTypeByName(f"rankbridge.v1.{name}"))(**fields)

    def begin(self, channel: grpc.Channel, service: str, method: str, request: Any) -> Any:
        """Begins a unary call."""
        declared = self._pool.FindServiceByName(f"rankbridge.v1.{service}").methods_by_name[method]
        call: Any = channel.unary_unary(
            f"/rankbridge.v1.{service}/{method}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=GetMessageClass(declared.output_type).FromString,
        )
        return call.future(request, timeout=TIMEOUT_S)

    def ask(self, channel: grpc.Channel, service: str, method: str, **fields: Any) -> Any:
        """The value of a unary call's response."""
        return value(self.begin(channel, service, method, self.message(f"{method}Request", **fields)))


def value(call: Any) -> Any:
    """The value of a call's response."""
    response = call.result()
    outcome = response.WhichOneof("outcome")
    assert outcome != "error", response
    return getattr(response, outcome)


@pytest.mark.parametrize("way", ["gang call", "each rank"])
def test_a_client_of_the_last_release_drives_the_ranks(gloo4: RunningGang, way: str) -> None:
    known = LastRelease()
    channels = [grpc.insecure_channel(target) for target in gloo4.targets]
    try:
        refs = [
            known.ask(
                channel,
                "RefService",
                "CreateTensor",
                tensor=known.message("TensorSpec", dtype="DTYPE_FLOAT32", shape=[2]),
                full=known.message("Full", float=rank + 1.0),
            )
            for rank, channel in enumerate(channels)
        ]
        reduces = [known.message("AllReduceRequest", ref_id=ref.id) for ref in refs]
        if way == "gang call":
            operations = [known.message("Operation", all_reduce=it) for it in reduces]
            outcomes = known.ask(channels[0], "GangService", "Call", operations=operations)
            sums = [it.result.value.ref for it in outcomes.members]
        else:
            pairs = zip(channels, reduces, strict=True)
            calls = [known.begin(channel, "CollectiveService", "AllReduce", it) for channel, it in pairs]
            sums = [value(it).ref for it in calls]
        assert [(ref.rank, list(ref.tensor.shape)) for ref in sums] == [(rank, [2]) for rank in range(4)]
        for channel, ref, result in zip(channels, refs, sums, strict=True):
            assert known.ask(channel, "RefService", "DescribeRef", ref_id=result.id) == result
            assert known.ask(channel, "RefService", "ReleaseRefs", ref_ids=[ref.id, result.id]) == 2
    finally:
        for channel in channels:
            channel.close()
