"""How programs are described, and what the ranks are asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from tests.unit.client.declared import SCOPE, answer, asked, calls_of, of_members, ref, refs

from rankbridge import InvalidArgumentError, Named, Program, ProtocolError, RankOutOfRangeError, Ref, at_site
from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Together
from rankbridge._plan.gang_calls import joined
from rankbridge._plan.procedures import finishing
from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collective_pb,
    gang_service_pb2 as gang_pb,
    operation_service_pb2 as pb,
)


def request_of(program: Program, *keep: Named, **options: Any) -> Any:
    """What one rank is asked."""
    with at_site("a.py:7"):
        return asked(ops.run_program(SCOPE, program, keep=keep, **options), pb.RunProgramRequest)


def test_steps_are_requests_without_a_call_in_one_that_has_it() -> None:
    program = Program()
    total = program.all_reduce(ref(), op="max", in_place=True)
    program.barrier()
    rows = program.all_gather(total, dim=0)
    request = request_of(program, rows, group="tp", timeout=2, operation_id="id")
    first, second, third = (step.operation for step in request.steps)
    assert first.operation.all_reduce == collective_pb.AllReduceRequest(
        ref_id="2.0", op=collective_pb.REDUCE_OP_MAX, in_place=True
    )
    assert second.operation.WhichOneof("kind") == "barrier"
    assert not second.operation.barrier.HasField("call")
    assert third.operation.all_gather.ref_id == f"%{first.name}"
    assert third.operation.all_gather.dim == 0
    assert list(request.results) == [third.name]
    assert second.name == "" != first.name != third.name != ""
    assert request.call == call_pb2.Call(
        group="tp", timeout_ms=2000, session_id="theirs", operation_id="id", site="a.py:7"
    )


def test_only_what_is_taken_or_kept_has_a_name() -> None:
    program = Program()
    program.all_reduce(ref(), in_place=True)
    kept = program.all_reduce(ref())
    taken = program.all_reduce(ref())
    program.broadcast(taken)
    assert [bool(step.operation.name) for step in request_of(program, kept).steps] == [
        False,
        True,
        True,
        False,
    ]
    assert [bool(step.operation.name) for step in request_of(program).steps] == [False, False, True, False]


def test_loops_hold_their_steps_and_loops() -> None:
    program = Program()
    with program.loop(3):
        total = program.all_reduce(ref())
        with program.loop(2):
            program.all_reduce(total, into=total)
        program.barrier()
    program.barrier()
    outer, last = request_of(program, total).steps
    assert last.operation.operation.WhichOneof("kind") == "barrier"
    assert (outer.loop.count, len(outer.loop.steps)) == (3, 3)
    first, inner, _ = outer.loop.steps
    (again,) = inner.loop.steps
    assert inner.loop.count == 2
    assert again.operation.operation.all_reduce.ref_id == f"%{first.operation.name}"
    assert again.operation.name == first.operation.name != ""


def test_a_program_can_be_run_again_and_goes_on() -> None:
    program = Program()
    program.barrier()
    assert request_of(program) == request_of(program)
    program.all_reduce(ref())
    assert len(request_of(program).steps) == 2


def an_option(field: FieldDescriptor) -> Any:
    """Another value than a field has if nothing is given."""
    if field.enum_type is not None:
        prefix = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        return field.enum_type.values[-1].name.removeprefix(prefix).lower()
    if field.is_repeated:
        return [1, 2]
    return True if field.type == field.TYPE_BOOL else 1


def test_every_collective_that_is_coalesced_is_a_step_with_the_options_of_a_rank() -> None:
    for operation, field in pb.Operation.DESCRIPTOR.fields_by_name.items():
        request = field.message_type
        assert request is not None
        if request.file is not collective_pb.DESCRIPTOR or "ref_id" not in request.fields_by_name:
            continue
        options = {it.name: an_option(it) for it in request.fields if it.name not in ("call", "ref_id")}
        for own in ({}, options):
            program = Program()
            getattr(program, operation)(ref(), **own)
            (step,) = request_of(program).steps
            coalesced = asked(ops.coalesce(SCOPE, [(operation, ref(), own)]), pb.CoalesceRequest)
            assert step.operation.operation == coalesced.operations[0], operation


def test_every_member_gets_its_own_refs_and_its_own_share_of_the_options() -> None:
    rows = [[1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [2, 0, 0, 0]]
    program = Program()
    with program.loop(2):
        parts = program.all_to_all(refs(), sizes=rows)
        program.barrier()
        back = program.all_to_all(parts, sizes=list(zip(*rows, strict=True)))
    requests = of_members("run_program", program, pb.RunProgramRequest, keep=[back])
    for member, request in enumerate(requests):
        there, _, again = (step.operation.operation for step in request.steps[0].loop.steps)
        assert there.all_to_all.ref_id == f"{member}.0"
        assert list(there.all_to_all.input_sizes) == rows[member]
        assert list(there.all_to_all.output_sizes) == [row[member] for row in rows]
        assert list(again.all_to_all.input_sizes) == [row[member] for row in rows]
    assert len({request.call.operation_id for request in requests}) == 1
    assert {request.call.session_id for request in requests} == {"theirs"}


def test_lists_that_change_later_change_no_program() -> None:
    program, given, sizes = Program(), refs(), [2, 0, 0, 0]
    program.all_gather(given, sizes=sizes)
    before = of_members("run_program", program, pb.RunProgramRequest)
    given.reverse()
    sizes.clear()
    after = of_members("run_program", program, pb.RunProgramRequest)
    assert [it.steps for it in before] == [it.steps for it in after]


def test_barriers_alone_are_of_a_gang_and_of_a_rank() -> None:
    program = Program()
    with program.loop(1000):
        program.barrier()
    requests = of_members("run_program", program, pb.RunProgramRequest)
    assert {request.call.session_id for request in requests} == {"gang"}
    assert request_of(program).call.session_id == "mine"
    assert [it.steps for it in requests] == [request_of(program).steps] * 4


def test_a_program_goes_as_one_gang_call() -> None:
    program = Program()
    kept = program.all_reduce(refs())
    calls = calls_of("run_program", program, keep=[kept], calls="gang")
    assert isinstance(calls, Together)
    whole = joined(calls)
    assert whole is not None
    request = gang_pb.CallRequest.FromString(whole.call.body)
    assert [it.run_program.steps[0].operation.operation.all_reduce.ref_id for it in request.operations] == [
        f"{rank}.0" for rank in range(4)
    ]
    assert request.call.operation_id
    assert not request.operations[0].run_program.HasField("call")


def test_a_program_is_submitted() -> None:
    program = Program()
    kept = program.all_reduce(ref())
    with at_site("a.py:7"):
        call = ops.submit(SCOPE, "run_program", program, keep=[kept], operation_id="id")
    assert asked(call, pb.SubmitRequest).operation.run_program == request_of(program, kept, operation_id="id")


Misuse = Callable[[Program, Named], object]


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda it, _: it.all_reduce(refs()[:3]), "of the same members"),
        (lambda it, _: it.all_reduce(refs()[::-1]), "of the same members"),
        (lambda it, _: it.all_reduce(ref(0)), "of the same members"),
        (lambda it, _: it.all_reduce(refs(1, "other")), "several sessions"),
        (lambda it, _: it.all_reduce([]), "takes refs"),
        (lambda it, _: it.all_reduce(None), "takes refs"),
        (lambda it, _: it.all_reduce("all_reduce_1"), "takes refs"),
        (lambda it, total: it.all_reduce([total]), "takes refs"),
        (lambda it, _: it.all_reduce(Program().all_reduce(refs())), "nothing that the program gives"),
        (lambda it, _: it.all_reduce(refs(), into=Program().all_reduce(refs())), "nothing that the program"),
        (lambda it, _: it.all_reduce(refs(), into="all_reduce_1"), "nothing that the program"),
        (lambda it, _: it.all_reduce(it.all_gather(refs(), layout="list")), "only kept"),
        (lambda it, total: it.all_gather(refs(), layout="list", into=total), "a tensor or for a list"),
        (lambda it, _: it.all_reduce(refs(), op="mean"), "reduce op"),
        (lambda it, _: it.gather(refs(), layout="heap"), "no such gather layout"),
        (lambda it, _: it.all_gather(refs(), sizes=[1, -1]), "do not fit the group"),
        (lambda it, _: it.all_to_all(refs(), sizes=[[1, 1]] * 3), "do not fit the group"),
        (lambda it, total: it.all_to_all(total, sizes=[[1, 1]] * 3), "do not fit the group"),
        (lambda it, _: it.loop(0), "once or more"),
        (lambda it, _: it.loop(-1), "once or more"),
        (lambda it, _: it.loop(2**32), "once or more"),
        (lambda it, _: it.loop(1.5), "once or more"),
        (lambda it, _: it.loop("3"), "once or more"),
    ],
)
def test_what_no_rank_could_do_is_refused_where_it_is_described(misuse: Misuse, message: str) -> None:
    program = Program()
    total = program.all_reduce(refs())
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        misuse(program, total)
    assert not caught.value.indefinite
    # The program is as it was, but for what was described well within the misuse.
    assert repr(program).startswith("Program(all_reduce")
    assert "all_reduce, all_reduce" not in repr(program)


def test_ranks_that_are_none_are_refused_where_they_are_described() -> None:
    with pytest.raises(RankOutOfRangeError):
        Program().broadcast(refs(), src_rank_in_group=-1)
    with pytest.raises(RankOutOfRangeError):
        Program().reduce(ref(), dst_rank_in_group=2**32)


def test_a_gang_and_a_rank_take_their_own_sizes_of_all_to_all() -> None:
    with pytest.raises(TypeError, match="input_sizes"):
        Program().all_to_all(refs(), input_sizes=[1] * 4)
    with pytest.raises(TypeError, match="sizes"):
        Program().all_to_all(ref(), sizes=[[1]])
    with pytest.raises(TypeError, match="timeout"):
        Program().all_reduce(ref(), timeout=1)  # type: ignore[call-arg]


def interrupted(program: Program, given: Any) -> Named:
    """What a step gives in a loop that an exception has ended."""
    with contextlib.suppress(ZeroDivisionError), program.loop(2):
        named = program.all_reduce(given)
        raise ZeroDivisionError
    return named


def test_a_loop_that_was_not_described_to_its_end_is_not_there() -> None:
    program = Program()
    total = program.all_reduce(refs())
    inner = interrupted(program, total)
    with pytest.raises(InvalidArgumentError, match="repeats nothing"), program.loop(2):
        pass
    with pytest.raises(InvalidArgumentError, match="nothing that the program gives"):
        program.all_reduce(inner)
    assert repr(program) == "Program(all_reduce)"
    with program.loop(2):
        other = program.all_reduce(total)
    assert repr(program) == "Program(all_reduce, 2 * [all_reduce])"
    assert len(calls_of("run_program", program, keep=[other])) == 4


def test_the_first_refs_of_a_loop_that_is_not_there_bind_nobody() -> None:
    program = Program()
    interrupted(program, refs())
    program.all_reduce(ref())
    assert request_of(program).call.session_id == "theirs"


def test_loops_are_as_deep_as_can_be_read() -> None:
    program = Program()

    def deeper(depth: int) -> None:
        if depth:
            with program.loop(1):
                deeper(depth - 1)
        else:
            program.barrier()

    deeper(32)
    (step,) = request_of(program).steps
    calls = calls_of("run_program", program, calls="gang")
    whole = joined(calls)
    assert whole is not None
    assert len(gang_pb.CallRequest.FromString(whole.call.body).operations) == 1
    depth = 0
    while step.WhichOneof("kind") == "loop":
        (step,), depth = step.loop.steps, depth + 1
    assert depth == 32
    with pytest.raises(InvalidArgumentError, match="too deep"):
        deeper(33)


def test_a_program_is_not_run_while_it_is_in_a_loop() -> None:
    program = Program()
    with program.loop(2):
        program.barrier()
        for run in (lambda: calls_of("run_program", program), lambda: ops.run_program(SCOPE, program)):
            with pytest.raises(InvalidArgumentError, match="in a loop"):
                run()
    assert len(calls_of("run_program", program)) == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Program(), "is empty"),
        ([("barrier",)], "no program"),
        (None, "no program"),
    ],
)
def test_what_is_no_whole_program_is_not_run(given: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        calls_of("run_program", given)
    with pytest.raises(InvalidArgumentError, match=message):
        ops.run_program(SCOPE, given)


def test_what_is_kept_is_of_the_program_and_once() -> None:
    program, other = Program(), Program()
    total, foreign = program.all_reduce(ref()), other.all_reduce(ref())
    wrong: list[tuple[Any, str]] = [
        ([foreign], "nothing that the program gives"),
        (["all_reduce_1"], "nothing that the program gives"),
        ([ref()], "nothing that the program gives"),
        ([None], "nothing that the program gives"),
        (total, "is a list"),
        ("all_reduce_1", "is a list"),
        ([total, total], "kept twice"),
    ]
    for keep, message in wrong:
        with pytest.raises(InvalidArgumentError, match=message):
            ops.run_program(SCOPE, program, keep=keep)


def test_a_program_of_a_rank_is_none_of_a_gang_and_the_other_way_round() -> None:
    program = Program()
    program.all_reduce(ref())
    with pytest.raises(InvalidArgumentError, match="in group order") as caught:
        calls_of("run_program", program)
    assert caught.value.got == "one ref"
    program = Program()
    program.all_reduce(refs())
    with pytest.raises(InvalidArgumentError, match="a gang's"):
        ops.run_program(SCOPE, program)
    program = Program()
    program.all_reduce(refs()[1:3])
    with pytest.raises(InvalidArgumentError, match="in group order"):
        calls_of("run_program", program)
    assert [call.rank for call in calls_of("run_program", program, group="tp")] == [1, 2]


def test_the_results_are_as_many_as_are_kept() -> None:
    program = Program()
    kept = [program.all_gather(ref(), layout="list"), program.reduce(ref())]
    call = ops.run_program(SCOPE, program, keep=kept)
    assert answer(call, pb.RunProgramResponse, [refs(), None]) == [refs(), None]
    for wrong in ([None], [None] * 3, (None, None), None):
        with pytest.raises(ProtocolError, match="one of each"):
            answer(call, pb.RunProgramResponse, wrong)
    assert answer(ops.run_program(SCOPE, program), pb.RunProgramResponse, []) == []


def test_results_by_member_become_results_by_name() -> None:
    program = Program()
    program.barrier()
    finish = finishing("run_program", program)
    reduced: list[Ref | None] = [ref(0, 1), None, None, None]
    by_member = [list(it) for it in zip(refs(), reduced, strict=True)]
    assert finish(by_member) == [refs(), reduced]
    assert finish([[]] * 4) == []
