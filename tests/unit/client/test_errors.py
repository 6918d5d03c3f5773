from __future__ import annotations

import itertools

import grpc
import pytest

import rankbridge
from rankbridge import ErrorCode, Outcome, RankBridgeError, RankDetail, errors
from rankbridge._plan.failures import error_from_rpc, error_from_wire
from rankbridge.errors import gang_error
from rankbridge.v1 import error_pb2

WIRE_CODES = [code for code in error_pb2.ErrorCode.values() if code]


@pytest.mark.parametrize("code", WIRE_CODES, ids=error_pb2.ErrorCode.Name)
def test_every_code_of_the_wire_has_a_class_of_its_own(code: error_pb2.ErrorCode.ValueType) -> None:
    error = error_from_wire(error_pb2.Error(code=code, message="m"))
    assert f"ERROR_CODE_{error.code}" == error_pb2.ErrorCode.Name(code)
    assert type(error) is not RankBridgeError
    assert type(error).__name__ in vars(rankbridge)


def test_all_that_an_error_tells_is_kept() -> None:
    error = error_from_wire(
        error_pb2.Error(
            code=error_pb2.ERROR_CODE_MISMATCH,
            message="the members disagree",
            indefinite=True,
            phase=error_pb2.PHASE_ADMISSION,
            rank=1,
            group="tp",
            operation="all_reduce",
            operation_id="op",
            generation=3,
            expected="float32[4]",
            got="float32[8]",
            ranks=[
                error_pb2.RankDetail(
                    rank=1, rank_in_group=0, state=error_pb2.RANK_STATE_DISAGREES, detail="[8]"
                ),
                error_pb2.RankDetail(rank=3, rank_in_group=1, state=error_pb2.RANK_STATE_MISSING),
            ],
        )
    )
    assert isinstance(error, rankbridge.MismatchError)
    assert (error.indefinite, error.phase, error.rank, error.generation) == (True, "admission", 1, 3)
    assert (error.group, error.operation, error.operation_id) == ("tp", "all_reduce", "op")
    assert error.ranks == (
        RankDetail(rank=1, rank_in_group=0, state="disagrees", detail="[8]"),
        RankDetail(rank=3, rank_in_group=1, state="missing"),
    )
    assert str(error) == (
        "MISMATCH: rank 1, group 'tp', all_reduce: the members disagree; expected float32[4], got float32[8]; "
        "some ranks may have done it\n  rank 1 disagrees: [8]\n  rank 3 missing"
    )


def test_what_an_earlier_call_began_is_always_indefinite_without_an_answer() -> None:
    for status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED):
        for begun in (True, False):
            error = error_from_rpc(
                status,
                "failed to connect to all addresses",
                rank=0,
                target="unix:x",
                group="",
                operation="await",
                operation_id="id",
                begun=begun,
            )
            assert error.indefinite is begun


@pytest.mark.parametrize(
    ("details", "hinted"),
    [
        ("failed to connect to all addresses; last error: UNAVAILABLE: ipv4:1.2.3.4:5: Socket closed", True),
        ("failed to connect to all addresses; last error: UNKNOWN: Connection refused", False),
        ("Socket closed", False),
    ],
)
def test_a_server_that_shows_its_client_out_may_speak_tls(details: str, hinted: bool) -> None:
    error = error_from_rpc(
        grpc.StatusCode.UNAVAILABLE, details, rank=0, target="t:1", group="", operation="", operation_id=""
    )
    assert ("does it speak TLS" in error.message) is hinted


@pytest.mark.parametrize(
    ("details", "cls"),
    [("Internal error from Core", rankbridge.UnavailableError), ("a fault", rankbridge.InternalError)],
)
def test_a_stream_that_ended_while_it_was_sent_to_is_not_there_any_more(
    details: str, cls: type[RankBridgeError]
) -> None:
    error = error_from_rpc(
        grpc.StatusCode.INTERNAL, details, rank=0, target="t:1", group="", operation="", operation_id=""
    )
    assert type(error) is cls
    assert error.indefinite


def _cause(*classes: type[RankBridgeError]) -> type[RankBridgeError]:
    cause = gang_error([Outcome(rank=rank, error=cls("m")) for rank, cls in enumerate(classes)]).cause
    assert isinstance(cause, RankBridgeError)
    return type(cause)


@pytest.mark.parametrize("cause", [rankbridge.CallCancelledError, rankbridge.UnknownOperationError])
@pytest.mark.parametrize("missed", [rankbridge.PeerMissingError, rankbridge.DeadlineExceededError])
def test_a_call_that_was_cancelled_or_never_came_at_one_rank_explains_that_others_missed_it(
    cause: type[RankBridgeError], missed: type[RankBridgeError]
) -> None:
    assert _cause(missed, cause) is _cause(cause, missed) is cause


def test_a_lost_rank_explains_the_end_of_a_generation_and_that_calls_were_cancelled() -> None:
    chain: list[type[RankBridgeError]] = [
        rankbridge.PeerLostError,
        rankbridge.UnavailableError,
        rankbridge.StaleGenerationError,
        rankbridge.AbortedError,
        rankbridge.CallCancelledError,
    ]
    for cause, consequence in itertools.pairwise(chain):
        assert _cause(consequence, cause) is cause


def test_what_the_message_says_is_not_said_twice() -> None:
    error = rankbridge.UnknownRefError("rank 1, get: no ref 'x'", rank=1, operation="get")
    assert str(error) == "UNKNOWN_REF: rank 1, get: no ref 'x'"


def test_rank_12_in_the_message_does_not_name_rank_1() -> None:
    error = rankbridge.PeerMissingError("rank 12 has not come", rank=1)
    assert str(error) == "PEER_MISSING: rank 1: rank 12 has not come"


def test_a_code_and_a_state_of_a_newer_protocol_are_kept_as_unspecified() -> None:
    wire = error_pb2.Error(message="new", ranks=[error_pb2.RankDetail(rank=1)])
    wire.MergeFromString(b"\x08\xe7\x07" + b"\x20\xe7\x07")
    error = error_from_wire(wire)
    assert type(error) is RankBridgeError
    assert (error.code, error.phase, error.message) == (ErrorCode.UNSPECIFIED, "unspecified", "new")
    assert error.ranks[0].state == "unspecified"


@pytest.mark.parametrize(
    ("status", "details", "expected", "indefinite"),
    [
        (
            grpc.StatusCode.UNAVAILABLE,
            "failed to connect to all addresses; last error: x",
            "UnavailableError",
            False,
        ),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", "UnavailableError", True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", "DeadlineExceededError", True),
        (grpc.StatusCode.CANCELLED, "", "CallCancelledError", True),
        (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", "ProtocolError", False),
        (grpc.StatusCode.UNAUTHENTICATED, "", "NotAllowedError", False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "", "ResourceExhaustedError", True),
        (grpc.StatusCode.DATA_LOSS, "", "TransportError", True),
    ],
)
def test_every_status_becomes_an_error_that_says_what_is_known(
    status: grpc.StatusCode, details: str, expected: str, indefinite: bool
) -> None:
    error = error_from_rpc(
        status, details, rank=2, target="t:1", group="g", operation="barrier", operation_id="op"
    )
    assert type(error).__name__ == expected
    assert error.indefinite is indefinite
    assert (error.rank, error.group, error.operation, error.operation_id) == (2, "g", "barrier", "op")
    assert "t:1" in str(error)


def _outcomes(*failures: RankBridgeError | None) -> list[Outcome[object]]:
    return [Outcome(rank=rank, error=error) for rank, error in enumerate(failures)]


def test_the_cause_among_many_errors_is_the_one_that_the_others_follow_from() -> None:
    missing = rankbridge.PeerMissingError("rank 1 is missing", rank=0)
    refused = rankbridge.UnknownRefError("no such ref", rank=1)
    error = gang_error(_outcomes(missing, refused, missing, missing))
    assert isinstance(error, rankbridge.UnknownRefError)
    assert isinstance(error, rankbridge.GangError)
    assert not isinstance(error, rankbridge.PeerMissingError)
    assert (error.rank, error.cause) == (1, refused)
    assert not error.indefinite
    assert "4 of 4 ranks failed: PEER_MISSING at ranks 0, 2-3, UNKNOWN_REF at rank 1" in str(error)


def test_who_refused_is_the_cause_before_those_who_report_it() -> None:
    refusing = RankDetail(rank=1, rank_in_group=1, state="failed", detail="no such ref")
    reported = rankbridge.UnknownRefError("rank 1 refused its part", rank=0, ranks=[refusing])
    refused = rankbridge.UnknownRefError("no such ref", rank=1)
    assert gang_error(_outcomes(reported, refused)).cause is refused


def test_a_lost_rank_is_the_cause_before_the_connection_to_it() -> None:
    lost = rankbridge.PeerLostError("rank 1 is lost", rank=0)
    gone = rankbridge.UnavailableError("Socket closed", rank=1, indefinite=True)
    over = rankbridge.StaleGenerationError("generation 1 is over", rank=2)
    error = gang_error(_outcomes(over, gone, lost))
    assert isinstance(error, rankbridge.PeerLostError)
    assert error.indefinite, "rank 1 may have done it"


def test_a_gangs_error_is_indefinite_as_soon_as_one_rank_has_done_it() -> None:
    assert gang_error(_outcomes(None, rankbridge.ResourceExhaustedError("full"))).indefinite


def test_a_gangs_error_of_a_thousand_ranks_stays_readable() -> None:
    error = gang_error(_outcomes(*[rankbridge.PeerLostError("rank 7 is lost", rank=0)] * 1000))
    assert "1000 of 1000 ranks failed: PEER_LOST at ranks 0-999]" in str(error)
    assert len(error.outcomes) == 1000
    every_other = [rankbridge.PeerLostError("rank 7 is lost", rank=0), None] * 500
    assert "500 of 1000 ranks failed: PEER_LOST at ranks 0, 2, 4, 6, 8, 10, 12, 14 and 492 more]" in str(
        gang_error(_outcomes(*every_other))
    )


def test_ranks_with_equal_parts_are_shown_once() -> None:
    mine, other = "all_reduce op=sum #1", "all_reduce op=max #1"
    ranks = [
        rankbridge.RankDetail(rank=rank, rank_in_group=rank, state=state, detail=detail)
        for rank, state, detail in [
            (0, "arrived", mine),
            (1, "arrived", mine),
            (2, "arrived", mine),
            (3, "disagrees", other),
            (5, "arrived", mine),
            (4, "missing", ""),
        ]
    ]
    error = rankbridge.MismatchError("they differ", rank=0, expected=mine, got=other, ranks=ranks)
    assert str(error).splitlines() == [
        "MISMATCH: rank 0: they differ",
        "  ranks 0-2, 5 arrived: all_reduce op=sum #1",
        "  rank 3 disagrees: all_reduce op=max #1",
        "  rank 4 missing",
    ]


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(rankbridge.InvalidArgumentError, ValueError)
    assert issubclass(rankbridge.DeadlineExceededError, TimeoutError)
    error = gang_error(_outcomes(rankbridge.DeadlineExceededError("late", rank=0)))
    assert isinstance(error, TimeoutError)
    assert str(error).startswith("DEADLINE_EXCEEDED: rank 0: late")


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    for name in errors.__all__:
        cls = getattr(errors, name)
        if isinstance(cls, type) and issubclass(cls, RankBridgeError):
            (line,) = [line for line in drawn.splitlines() if f"─ {name}" in line or line.strip() == name]
            assert cls.code is ErrorCode.UNSPECIFIED or cls.code in line


def test_a_message_that_has_all_sides_is_shown_alone() -> None:
    text = "MISMATCH in all_reduce #1 (x1) on world\n  ranks 0-2: float32[3] sum\n  rank 3:    float32[3] max"
    sides = [RankDetail(rank=3, rank_in_group=3, state="disagrees", detail="all_reduce op=max")]
    error = rankbridge.MismatchError(
        text, rank=0, group="world", operation="all_reduce", expected="a", got="b", ranks=sides
    )
    assert str(error) == str(gang_error(_outcomes(error, error))) == text
    undecided = rankbridge.PeerMissingError("PEER_MISSING in barrier #2 on world", indefinite=True)
    assert str(undecided).splitlines()[1:] == ["  some ranks may have done it"]
