"""What torch has of a process, on the wire."""

from typing import Any

from rankbridge.v1 import debug_service_pb2 as pb
from rankbridge_server.doctor.evidence import Call, Frame, Group
from rankbridge_server.doctor.testimony import TorchState
from rankbridge_server.service.wire.torch_states import pack_torch_state, torch_state

NOW_US = 1_700_000_000_000_000


def entry(number: int, after_us: int, group: str = "0") -> dict[str, Any]:
    """A collective, as torch's recorder has it."""
    return {
        "record_id": number,
        "process_group": [group, "default_pg"],
        "collective_seq_id": number,
        "profiling_name": "gloo:all_reduce",
        "input_sizes": [[4, 2]],
        "input_dtypes": ["Float"],
        "time_created_ns": (NOW_US + after_us) * 1000,
        "retired": number < 2,
        "is_p2p": False,
    }


STATE = {
    "groups": {"0": {"ranks": [0, 1], "description": "default_pg"}},
    "trace": {"entries": [entry(1, 0), entry(2, 1000), entry(1, 2000, group="")]},
    "arguments": {"dst": 1, "tag": 5},
    "calling": "wait",
}


def test_it_arrives_as_it_is() -> None:
    packed = pack_torch_state(STATE, script=True, since_us=0)
    assert packed is not None
    found = torch_state(packed)
    call = Call(
        group="0",
        number=1,
        kind="all_reduce",
        dtypes=("float32",),
        shapes=((4, 2),),
        called_at=NOW_US / 1e6,
        done=True,
    )
    group = Group(name="0", ranks=(0, 1), description="default_pg")
    assert (found.groups, found.calls[0], len(found.calls)) == ((group,), call, 2)
    assert (found.peer, found.tag, found.calling, found.script) == (1, 5, "wait", True)


def test_calls_of_coordinators_come_in_groups_of_their_own() -> None:
    over = pb.RecordedOperation(
        operation="all_reduce",
        group="tp:0",
        number=7,
        contract="all_reduce dtype=float32 shape=[3]",
        site="/a/model.py:12",
        called_us=NOW_US,
        done_us=500_000,
    )
    under_way = pb.RecordedOperation(
        operation="recv", group="pp:0", number=2, contract="recv peer=2 tag=0", called_us=NOW_US + 1_000_000
    )
    packed = pack_torch_state(
        STATE,
        script=True,
        since_us=0,
        coordinators={"tp:0": [2, 3], "pp:0": (2, 3)},
        coordinator_calls=[over, under_way],
    )
    assert packed is not None
    found = torch_state(packed)
    assert found.groups[1:] == (
        Group(name="tp:0@2", ranks=(2, 3), description="tp:0"),
        Group(name="pp:0@2", ranks=(2, 3), description="pp:0"),
    )
    first, second = found.calls[-2:]
    assert first == Call(
        group="tp:0@2",
        number=7,
        kind="all_reduce",
        dtypes=("float32",),
        shapes=((3,),),
        site=Frame(name="", file="/a/model.py", line=12),
        called_at=NOW_US / 1e6,
        returned_at=NOW_US / 1e6 + 0.5,
    )
    assert (second.group, second.peer, second.tag, second.number, second.done) == ("pp:0@2", 2, 0, 2, False)
    assert found.waiting_since == NOW_US / 1e6 + 1


def test_what_was_called_before_the_generation_is_left_out() -> None:
    packed = pack_torch_state(STATE, script=False, since_us=NOW_US + 500)
    assert packed is not None
    assert [(it.number, it.done) for it in torch_state(packed).calls] == [(2, False)]


def test_a_process_without_groups_or_with_an_unknown_record_has_nothing() -> None:
    assert pack_torch_state({}, script=False, since_us=0) is None
    assert pack_torch_state({**STATE, "trace": {"entries": [{}]}}, script=False, since_us=0) is None
    packed = pack_torch_state({"groups": STATE["groups"]}, script=False, since_us=0)
    assert packed is not None
    assert torch_state(packed) == TorchState(groups=torch_state(packed).groups)
