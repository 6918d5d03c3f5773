"""Every shared case, through the Python client, on every backend."""

from __future__ import annotations

import ast
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from tests.contract import cases, generate, values
from tests.contract.skeleton import arguments_of, request_of, skeleton
from tests.support.gangs import RunningGang
from tests.support.sampling import sample

import rankbridge
from rankbridge import Gang, GangError, Named, Pending, Program, RankBridgeError, Ref
from rankbridge.v1 import collective_service_pb2, object_service_pb2
from rankbridge.v1.operation_service_pb2 import Operation

CASES = cases.load()


def kind_of(case: cases.Json) -> tuple[object, ...]:
    """What makes a case another one for gang calls, whose data and arithmetic the backend alone decides."""
    return case["operation"], case.get("error"), bool(case["group"]), "arguments_by_rank" in case


ELSEWHERE = {"replay", "enqueue", "dequeue", "ping", "call_function"}
"""Operations that cases do not have: what they give depends on calls before, or on the functions that were loaded."""

# A gang call reaches the same lanes as calls of each rank: on Gloo, one case of each kind is enough.
SAMPLE = list({kind_of(case): case for case in reversed(CASES)}.values())

# On each gang those of each kind, and some more; most on one of them.
WAYS = [("fake4", "ranks"), ("fake4", "gang"), ("fake4", "guest"), ("gloo4", "ranks"), ("mpi4", "ranks")]
DRAWN = 40
MOST = 250


def drawn(more: int = DRAWN) -> list[cases.Json]:
    """Cases for one gang, in their order: those of each kind, and so many more."""
    names = {case["case"] for case in [*SAMPLE, *sample(CASES, more)]}
    return [case for case in CASES if case["case"] in names]


CASES_OF_WAYS = [
    pytest.param(way, case, id=f"{'-'.join(way)}-{case['case']}")
    for way in WAYS
    for case in drawn(MOST if way == WAYS[0] else DRAWN)
]


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    """A gang on each backend, called rank by rank; on the fake one also by gang calls, and those over TCP.

    Those of a guest, too, whose ids are others on the ranks.
    """
    name, way = request.param
    running: RunningGang = request.getfixturevalue(name)
    target = {"ranks": running.description, "gang": running.tcp, "guest": running.guest}[way]
    with rankbridge.connect(target, calls="ranks" if way == "ranks" else "gang") as it:
        yield it


@pytest.fixture(scope="module")
def gloo_by_gang_calls(gloo4: RunningGang) -> Iterator[Gang]:
    """A gang on Gloo, called by gang calls."""
    with rankbridge.connect(gloo4.description, calls="gang") as it:
        yield it


@pytest.mark.parametrize("name", sorted(generate.FILES))
def test_the_cases_are_what_the_generator_writes(name: str) -> None:
    assert (cases.CASES / f"{name}.json").read_text() == generate.rendered(name)


def test_case_names_are_unique() -> None:
    names = [case["case"] for case in CASES]
    assert len(set(names)) == len(names) > 300


@pytest.mark.parametrize("kind", sorted(set(Operation.DESCRIPTOR.fields_by_name) - ELSEWHERE))
def test_every_operation_of_the_proto_has_cases_with_each_of_its_arguments(kind: str) -> None:
    request = request_of(kind)
    found = [case for case in CASES if kind in (case["operation"], case.get("receive"))]
    assert found, f"no case calls {kind}; tests/contract/families could have\n{skeleton(kind)}"
    if request.file in (collective_service_pb2.DESCRIPTOR, object_service_pb2.DESCRIPTOR):
        shown = {name for case in found for it in (case["arguments"], *by_rank(case)) for name in it}
        assert shown >= set(arguments_of(request))


@pytest.mark.parametrize("kind", ["all_reduce", "scan", "gather", "all_gather_object"])
def test_the_skeleton_of_a_case_is_source_with_every_argument(kind: str) -> None:
    call = ast.parse(skeleton(kind), mode="exec").body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Yield)
    assert isinstance(call.value.value, ast.Call)
    written = {it.arg: it.value for it in call.value.value.keywords}
    arguments = ast.literal_eval(written["arguments"])
    assert set(arguments) == set(arguments_of(request_of(kind)))
    assert arguments.get("op", "sum") == "sum"


def by_rank(case: cases.Json) -> list[cases.Json]:
    return [it for it in case.get("arguments_by_rank") or [] if it is not None]


def test_ranks_tell_the_reductions_that_the_cases_show(gang: Gang) -> None:
    abilities = gang[0].status().abilities
    assert abilities is not None
    shown = [
        (case["arguments"]["op"], case["inputs"][0]["dtype"], "error" not in case)
        for case in CASES
        if case["operation"] in ("reduce", "all_reduce", "reduce_scatter")
        and case.get("error", "UNSUPPORTED_DTYPE") == "UNSUPPORTED_DTYPE"
        and "op" in case["arguments"]
    ]
    assert {op for op, _, _ in shown} == set(abilities.reductions)
    for op, dtype, works in shown:
        assert (dtype in abilities.reductions[op]) is works, (op, dtype)
    assert {case["inputs"][0]["dtype"] for case in CASES if case["inputs"]} <= set(abilities.dtypes)
    called = {case["operation"] for case in CASES} | {case.get("receive") for case in CASES} - {None}
    assert set(abilities.collectives) - called == ELSEWHERE
    assert called <= set(abilities.collectives)


@pytest.mark.parametrize(("gang", "case"), CASES_OF_WAYS, indirect=["gang"])
def test_case(gang: Gang, case: cases.Json) -> None:
    check_case(gang, case)
    # A call that failed leaves the group as healthy as it was.
    gang.barrier(timeout=10)


@pytest.mark.parametrize("case", SAMPLE, ids=[case["case"] for case in SAMPLE])
def test_case_of_each_kind_by_gang_calls(gloo_by_gang_calls: Gang, case: cases.Json) -> None:
    check_case(gloo_by_gang_calls, case)
    gloo_by_gang_calls.barrier(timeout=10)


def test_the_sample_has_every_operation_and_error() -> None:
    for field in ("operation", "error"):
        assert {case.get(field) for case in SAMPLE} == {case.get(field) for case in CASES}
    assert len(SAMPLE) < len(CASES) / 5


def check_case(gang: Gang, case: cases.Json) -> None:
    """One case, in a session and, if it asks for one, a group of its own."""
    members = case["group"] or list(range(case["ranks"]))
    with gang.session():
        group = "world"
        if case["group"]:
            group = gang.new_group(f"g-{uuid.uuid4().hex}", case["group"]).name
        try:
            run(gang, group, members, case)
        finally:
            if case["group"]:
                gang.destroy_group(group)


def run(gang: Gang, group: str, members: Sequence[int], case: cases.Json) -> None:
    if "receive" in case:
        run_message(gang, group, members, case)
    elif "calls" in case:
        run_coalesced(gang, group, members, case)
    elif "steps" in case:
        run_program(gang, group, members, case)
    elif "value" in case or "values" in case:
        run_on_values(gang, group, members, case)
    else:
        run_on_tensors(gang, group, members, case)


def run_message(gang: Gang, group: str, members: Sequence[int], case: cases.Json) -> None:
    source, target = gang[members[case["from"]]], gang[members[case["to"]]]
    options: dict[str, Any] = {"tag": case["tag"], "group": group, "timeout": timeout(case)}
    receiving = dict(options)
    if not case["any_source"]:
        receiving["src_rank_in_group"] = case["from"]
    if case["expected"]:
        dtype, shape = case["expected"]
        receiving["expected"] = (dtype, tuple(shape))
    value = values.given(case["value"], source)
    sending = source.start(case["operation"], value, dst_rank_in_group=case["to"], **options)
    if "error" in case:
        ends = [lambda: getattr(target, case["receive"])(**receiving), sending.result]
        errors = [failure_of(end) for end in ends]
        assert [(it.code.name, it.indefinite) for it in errors] == [(case["error"], False)] * 2
        return
    came, origin = getattr(target, case["receive"])(**receiving)
    assert sending.result() is None
    assert origin == case["from"]
    values.assert_is(gang, came, case["value"], target.rank)


def run_coalesced(gang: Gang, group: str, members: Sequence[int], case: cases.Json) -> None:
    calls = [
        (call["operation"], put(gang, members, call["inputs"]), call["arguments"]) for call in case["calls"]
    ]
    if "error" in case:
        with pytest.raises(GangError) as raised:
            gang.coalesce(calls, group=group, timeout=timeout(case))
        errors = [outcome.error for outcome in raised.value.outcomes]
        assert [error and error.code.name for error in errors] == [case["error"]] * len(members)
        for (_, refs, _), call in zip(calls, case["calls"], strict=True):
            assert not refs or [cases.tensor_form(it) for it in gang.get(refs, to="tensor")] == call["inputs"]
        return
    given = gang.coalesce(calls, group=group, timeout=timeout(case))
    for outcomes, (_, refs, arguments), expected in zip(given, calls, case["results"], strict=True):
        outcomes = outcomes if outcomes is not None else [None] * len(members)
        check_results(gang, refs, outcomes, {"arguments": arguments, "results": expected})


def run_program(gang: Gang, group: str, members: Sequence[int], case: cases.Json) -> None:
    refs = {name: put(gang, members, tensors) or [] for name, tensors in case["tensors"].items()}
    program, names = Program(), dict[str, Named]()
    describe(program, case["steps"], refs, names)
    keep = [names[name] for name in case["keep"]]
    after = {**case["tensors"], **case["after"]}
    if "error" in case:
        with pytest.raises(GangError) as raised:
            gang.run(program, keep=keep, group=group, timeout=timeout(case))
        errors = [(it.error.code.name, it.error.indefinite) for it in raised.value.outcomes if it.error]
        assert errors == [(case["error"], False)] * len(members)
    else:
        given = gang.run(program, keep=keep, group=group, timeout=timeout(case))
        for outcomes, expected in zip(given, case["results"], strict=True):
            if isinstance(expected, str):
                assert [it.id for it in outcomes] == [ref.id for ref in refs[expected]]
                expected = after[expected]
            check_results(gang, None, outcomes, {"arguments": {}, "results": expected})
    for name, own in refs.items():
        assert [cases.tensor_form(it) for it in gang.get(own, to="tensor")] == after[name][: len(members)]


def describe(
    program: Program, steps: list[cases.Json], refs: dict[str, list[Ref]], names: dict[str, Named]
) -> None:
    """Adds steps of a case to a program."""
    for step in steps:
        if "count" in step:
            with program.loop(step["count"]):
                describe(program, step["steps"], refs, names)
            continue
        if step["takes"] is None:
            getattr(program, step["operation"])(**step["arguments"])
            continue
        takes, name = step["takes"], step["name"]
        given = names[takes[1:]] if takes.startswith("%") else refs[takes]
        gives = getattr(program, step["operation"])(given, into=names.get(name), **step["arguments"])
        if name is not None:
            names[name] = gives


def run_on_values(gang: Gang, group: str, members: Sequence[int], case: cases.Json) -> None:
    if "values" in case:
        brought = [values.given(it, gang[rank]) for it, rank in zip(case["values"], members, strict=True)]
    else:
        source = case["arguments"].get("src_rank_in_group", 0)
        holder = gang[members[source]] if source < len(members) else None
        brought = values.given(case["value"], holder)
    method = getattr(gang, case["operation"])
    if "error" in case:
        error = failure_of(lambda: method(brought, group=group, timeout=timeout(case), **case["arguments"]))
        errors = [it.error for it in error.outcomes] if isinstance(error, GangError) else [error]
        assert {(it.code.name, it.indefinite) for it in errors if it is not None} == {(case["error"], False)}
        return
    outcomes = method(brought, group=group, timeout=timeout(case), **case["arguments"])
    for outcome, expected, rank in zip(outcomes, case["results"], members, strict=True):
        values.assert_is(gang, outcome, expected, rank)


def failure_of(call: Callable[[], object]) -> RankBridgeError:
    with pytest.raises(RankBridgeError) as raised:
        call()
    return raised.value


def put(gang: Gang, members: Sequence[int], inputs: list[cases.Json] | None) -> list[Ref] | None:
    if inputs is None:
        return None
    return [gang[rank].put(cases.tensor(it)) for rank, it in zip(members, inputs, strict=True)]


def run_on_tensors(gang: Gang, group: str, members: Sequence[int], case: cases.Json) -> None:
    refs = put(gang, members, case["inputs"])
    if "error" in case:
        errors = failures(gang, group, members, refs, case)
        assert {error.code.name for error in errors} == {case["error"]}
        assert not any(error.indefinite for error in errors)
    else:
        check_results(gang, refs, call(gang, group, members, refs, case), case)
        if case["arguments"].get("in_place"):
            return
    if refs:
        assert [cases.tensor_form(it) for it in gang.get(refs, to="tensor")] == case["inputs"]


def call(
    gang: Gang, group: str, members: Sequence[int], refs: list[Ref] | None, case: cases.Json
) -> list[Any]:
    if "arguments_by_rank" in case:
        assert refs is not None
        return [it.result() for it in started(gang, group, members, refs, case)]
    arguments = [refs] if refs else []
    outcomes = getattr(gang, case["operation"])(
        *arguments, group=group, timeout=timeout(case), **case["arguments"]
    )
    return outcomes if outcomes is not None else [None] * len(members)


def failures(
    gang: Gang, group: str, members: Sequence[int], refs: list[Ref] | None, case: cases.Json
) -> list[RankBridgeError]:
    """Every called member's error."""
    if "arguments_by_rank" not in case:
        with pytest.raises(RankBridgeError) as raised:
            call(gang, group, members, refs, case)
        if not isinstance(raised.value, GangError):
            # The client itself refused it.
            return [raised.value]
        by_member = [outcome.error for outcome in raised.value.outcomes]
        assert len(by_member) == len(members)
        return [error for error in by_member if error is not None or pytest.fail(f"{raised.value.outcomes}")]
    assert refs is not None
    errors: list[RankBridgeError] = []
    try:
        pending = started(gang, group, members, refs, case)
    except RankBridgeError as error:
        # The client itself refused it.
        return [error]
    for it in pending:
        with pytest.raises(RankBridgeError) as each:
            it.result()
        errors.append(each.value)
    return errors


def started(
    gang: Gang, group: str, members: Sequence[int], refs: list[Ref], case: cases.Json
) -> list[Pending[Any]]:
    """The call of each member on its own, all under one id."""
    common = {"group": group, "operation_id": uuid.uuid4().hex, "timeout": timeout(case)}
    return [
        gang[rank].start(case["operation"], ref, **common, **arguments)
        for rank, ref, arguments in zip(members, refs, case["arguments_by_rank"], strict=True)
        if arguments is not None
    ]


def timeout(case: cases.Json) -> float:
    """In seconds."""
    return float(case.get("timeout", 10))


def check_results(gang: Gang, refs: list[Ref] | None, outcomes: list[Any], case: cases.Json) -> None:
    assert len(outcomes) == len(case["results"])
    for outcome, expected in zip(outcomes, case["results"], strict=True):
        if isinstance(expected, list):
            assert isinstance(outcome, list)
            check_results(gang, None, outcome, {"arguments": {}, "results": expected})
            continue
        if expected is None:
            assert outcome is None
            continue
        assert isinstance(outcome, Ref)
        assert cases.tensor_form(gang.get(outcome, to="tensor")) == expected
        assert [outcome.dtype, list(outcome.shape)] == [expected["dtype"], expected["shape"]]
    if case["arguments"].get("in_place"):
        assert refs is not None
        assert [it and it.id for it in outcomes] == [ref.id for ref in refs]
