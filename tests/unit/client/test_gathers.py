"""How gathers and scans are asked for, and how their answers are read."""

from __future__ import annotations

import pytest
from tests.unit.client.declared import SCOPE, answer, asked, calls_of, ref, refs

from rankbridge import InvalidArgumentError, ProtocolError
from rankbridge._plan import operations as ops
from rankbridge.v1 import collective_service_pb2 as pb


@pytest.mark.parametrize(
    ("layout", "number"),
    [
        ("concatenated", pb.GATHER_LAYOUT_CONCATENATED),
        ("stacked", pb.GATHER_LAYOUT_STACKED),
        ("list", pb.GATHER_LAYOUT_LIST),
    ],
)
def test_layouts_travel_and_dims_only_where_they_are_given(layout: ops.GatherLayout, number: int) -> None:
    for call, kind in (
        (ops.OPERATIONS["gather"](SCOPE, ref(), layout=layout, ragged=True), pb.GatherRequest),
        (ops.OPERATIONS["all_gather"](SCOPE, ref(), layout=layout, ragged=True), pb.AllGatherRequest),
    ):
        request = asked(call, kind)
        assert (request.layout, request.ragged, request.HasField("dim")) == (number, True, False)
    assert asked(ops.OPERATIONS["gather"](SCOPE, ref(), dim=0), pb.GatherRequest).HasField("dim")
    assert asked(ops.OPERATIONS["all_gather"](SCOPE, ref(), dim=-1), pb.AllGatherRequest).dim == -1


@pytest.mark.parametrize("layout", ["unspecified", "stack", ""])
def test_other_layouts_are_refused(layout: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no such gather layout") as caught:
        calls_of("all_gather", refs(), layout=layout)
    assert caught.value.expected == "one of concatenated, stacked, list"


def test_a_gather_gives_a_ref_or_a_list_of_refs_or_none() -> None:
    gather = ops.OPERATIONS["gather"](SCOPE, ref())
    for value in (ref(), refs(), [], None):
        assert answer(gather, pb.GatherResponse, value) == value
    assert answer(ops.OPERATIONS["all_gather"](SCOPE, ref()), pb.AllGatherResponse, refs()) == refs()
    for wrong in ([1], (ref(),), "text"):
        with pytest.raises(ProtocolError, match="no ref"):
            answer(gather, pb.GatherResponse, wrong)


def test_a_scan_tells_its_op_and_whether_it_is_exclusive() -> None:
    request = asked(ops.OPERATIONS["scan"](SCOPE, ref(), op="max"), pb.ScanRequest)
    assert (request.ref_id, request.op, request.exclusive) == ("2.0", pb.REDUCE_OP_MAX, False)
    assert asked(ops.OPERATIONS["scan"](SCOPE, ref(), exclusive=True), pb.ScanRequest).exclusive
    assert answer(ops.OPERATIONS["scan"](SCOPE, ref()), pb.ScanResponse, ref()) == ref()
