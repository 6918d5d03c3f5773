"""Frames of control links."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from rankbridge.link.v1 import link_pb2 as pb
from rankbridge_server.core.admission.admission import Arrival, Member, Reply, Ruling, Verdict
from rankbridge_server.core.gang_calls.messages import Command, Relay, RelayKind, Report
from rankbridge_server.core.links import Ended
from rankbridge_server.links import wire

TEXT = st.text(max_size=20)
ARRIVALS = st.builds(
    Arrival,
    st.integers(0, 2**64 - 1),
    TEXT,
    TEXT,
    st.integers(1, 10**6).map(lambda ms: ms / 1000),
    st.binary(max_size=99),
)
VERDICTS = st.builds(
    Verdict,
    st.sampled_from(Ruling),
    st.lists(st.builds(Member, st.integers(0, 99), st.none() | TEXT.filter(bool)), max_size=4).map(tuple),
    st.lists(st.binary(max_size=9), max_size=4).map(tuple),
)


@given(group=TEXT, arrival=ARRIVALS)
def test_an_arrival_comes_out_as_it_went_in(group: str, arrival: Arrival) -> None:
    (body,) = wire.Frames().feed(wire.pack_arrival(group, arrival))
    frame = wire.parse(body)
    assert (frame.arrival.group, wire.arrival_of(frame.arrival)) == (group, arrival)


@given(arrival=ARRIVALS, verdict=VERDICTS)
def test_a_verdict_comes_out_as_it_went_in(arrival: Arrival, verdict: Verdict) -> None:
    (body,) = wire.Frames().feed(wire.pack_reply("g", Reply(0, arrival, verdict)))
    frame = wire.parse(body)
    assert wire.verdict_of(frame.verdict) == verdict
    assert (frame.verdict.sequence, frame.verdict.operation_id) == (arrival.sequence, arrival.operation_id)


@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_frames_may_be_cut_anywhere(cuts: list[int]) -> None:
    data = wire.hello(3, 1, b"s" * 32, "world") + wire.welcome(2) + wire.pack_abort(3, Ended(1, True, "gone"))
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    frames = wire.Frames()
    got = [wire.parse(body) for a, b in pairwise(edges) for body in frames.feed(data[a:b])]
    assert [frame.WhichOneof("kind") for frame in got] == ["hello", "welcome", "abort"]
    assert wire.ended_of(got[2].abort) == Ended(1, True, "gone")


def test_a_frame_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(ValueError, match="not one of ours"):
        list(wire.Frames().feed(b"GET / HTTP/1.1\r\n"))


def test_bytes_that_are_no_frame_are_refused() -> None:
    with pytest.raises(ValueError, match="not a frame"):
        [wire.parse(body) for body in wire.Frames().feed((3).to_bytes(4, "big") + b"\xff\xff\xff")]


def test_a_ruling_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="not a ruling"):
        wire.verdict_of(pb.Verdict())


@given(verdict=VERDICTS, refusal=TEXT.filter(bool))
def test_a_refusal_comes_out_as_it_went_in(verdict: Verdict, refusal: str) -> None:
    refused = Verdict(Ruling.REFUSED, verdict.members, refusal=refusal)
    (body,) = wire.Frames().feed(wire.pack_reply("g", Reply(0, Arrival(0, "a", "ping", 1.0), refused)))
    assert wire.verdict_of(wire.parse(body).verdict) == refused


NUMBERS = st.integers(1, 2**64 - 1)


@given(command=st.builds(Command, TEXT, NUMBERS, st.binary(max_size=99)))
def test_a_command_comes_out_as_it_went_in(command: Command) -> None:
    (body,) = wire.Frames().feed(wire.pack_command(command.number, command.part))
    assert wire.command_of(command.group, wire.parse(body).command) == command


REPORTS = st.builds(
    Report, TEXT, st.integers(0, 99), NUMBERS, TEXT, st.binary(max_size=99), st.just(""), st.just("")
)


@given(report=REPORTS, refusal=TEXT.filter(bool), reason=TEXT)
def test_a_report_comes_out_as_it_went_in(report: Report, refusal: str, reason: str) -> None:
    for it in (report, report._replace(refusal=refusal, reason=reason)):
        (body,) = wire.Frames().feed(wire.pack_report(it))
        assert wire.report_of(it.group, it.rank_in_group, wire.parse(body).report) == it


RANKS = st.integers(0, 2**32 - 1)


@given(relay=st.builds(Relay, RANKS, RANKS, NUMBERS, st.sampled_from(RelayKind), st.binary(max_size=99)))
def test_a_relay_comes_out_as_it_went_in(relay: Relay) -> None:
    (body,) = wire.Frames().feed(wire.pack_relay(relay))
    assert wire.relay_of(wire.parse(body).relay) == relay


def test_a_kind_of_relay_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="not a kind of relay"):
        wire.relay_of(pb.Relay(number=1))
