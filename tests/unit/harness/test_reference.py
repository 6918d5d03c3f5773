"""The reference model says what the contract's cases say, which were computed without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contract.cases import Json, load, tensor
from tests.contract.values import given

from rankbridge import Tensor
from rankbridge.harness import reference
from rankbridge.harness.floats import decode, encode

MODELLED = (
    *("broadcast", "gather", "all_gather", "all_reduce", "reduce", "reduce_scatter", "scatter", "all_to_all"),
    *("scan", "barrier", "broadcast_object", "scatter_object", "gather_object", "all_gather_object"),
    "all_reduce_value",
)
CASES = [it for it in load() if it["operation"] in MODELLED and "results" in it and "'ref': {" not in str(it)]


def brought(case: Json) -> list[Any]:
    members = len(case["results"])
    if case["inputs"] is not None:
        return [tensor(it) for it in case["inputs"]]
    if "value" in case:
        return [given(case["value"])] * members
    if "values" in case:
        values = [given(it) for it in case["values"]]
        return [values] * members if case["operation"] == "scatter_object" else values
    return [None] * members


def options(case: Json) -> list[Json]:
    by_rank = case.get("arguments_by_rank") or [{}] * len(case["results"])
    each = [{**case["arguments"], **own} for own in by_rank]
    rows = case["arguments"].get("sizes")
    if case["operation"] == "all_to_all" and rows:
        each = [{**it, "input_sizes": rows[member]} for member, it in enumerate(each)]
    return each


def expected(case: Json, result: Any) -> Any:
    match result:
        case None:
            return None
        case list():
            return [expected(case, it) for it in result]
        case {"dtype": _}:
            return tensor(result)
    return given(result)


def test_of_every_case_of_the_contract_the_model_gives_the_results() -> None:
    wrong = []
    for case in CASES:
        modelled = reference.results(case["operation"], brought(case), options(case))
        for got, result in zip(modelled, case["results"], strict=True):
            known = expected(case, result)
            exact = got.tensor if isinstance(got, reference.Near) else got
            if said := reference.difference(known, got) or reference.difference(exact, known):
                wrong.append(f"{case['case']}: {said}")
    assert wrong == []
    assert len(CASES) > 500


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_a_sum_in_another_order_and_the_dtypes_own_precision_is_right_and_a_bit_more_is_not(
    dtype: str,
) -> None:
    generator = np.random.default_rng(7)
    parts = [encode(generator.normal(size=1000) * 10.0 ** generator.integers(-3, 3), dtype) for _ in range(8)]
    near = reference.reduced(parts, "sum")
    total = np.zeros(1000, np.complex128 if dtype == "complex64" else np.float64)
    for part in reversed(parts):
        total = decode(encode(total + decode(part), dtype))
    assert reference.difference(encode(total, dtype), near) == ""
    slip = total.copy()
    slip[17] += sum(np.abs(decode(part)[17]) for part in parts) * 0.2
    said = reference.difference(encode(slip, dtype), near)
    assert said.startswith("1 of 1000 elements differ, the first at [17]: expected ")


def test_a_product_of_complex_numbers_in_their_own_precision_is_right() -> None:
    generator = np.random.default_rng(7)
    parts = [
        encode(generator.normal(size=1000) + 1j * generator.normal(size=1000), "complex64") for _ in range(8)
    ]
    near = reference.reduced(parts, "product")
    product = np.ones(1000, np.complex64)
    for part in reversed(parts):
        product = product * decode(part).astype(np.complex64)
    assert reference.difference(encode(product, "complex64"), near) == ""
    product[17] *= 1 + 1e-5
    said = reference.difference(encode(product, "complex64"), near)
    assert said.startswith("1 of 1000 elements differ, the first at [17]: expected ")


def test_ints_wrap_around_and_bools_are_combined_as_logic_does() -> None:
    bytes_ = [Tensor("uint8", [1], bytes([it])) for it in (200, 100)]
    assert reference.reduced(bytes_, "sum") == Tensor("uint8", [1], bytes([44]))
    bools = [Tensor("bool", [2], bytes(it)) for it in ([1, 0], [1, 1])]
    assert reference.reduced(bools, "sum") == Tensor("bool", [2], bytes([1, 1]))
    assert reference.reduced(bools, "bxor") == Tensor("bool", [2], bytes([0, 1]))


def test_a_sum_that_overflows_in_one_order_only_may_be_infinite_and_nothing_else_may() -> None:
    parts = [encode(np.array([it, 1.0]), "float16") for it in (60000.0, 60000.0, -60000.0)]
    near = reference.reduced(parts, "sum")
    for first in (60000.0, np.inf):
        assert reference.difference(encode(np.array([first, 3.0]), "float16"), near) == ""
    assert reference.difference(encode(np.array([60000.0, np.inf]), "float16"), near) != ""
    assert reference.difference(encode(np.array([1.0, 3.0]), "float16"), near) != ""


def test_nan_stays_nan() -> None:
    near = reference.reduced([encode(np.array([np.nan]), "float32"), encode(np.ones(1), "float32")], "sum")
    assert reference.difference(encode(np.array([np.nan]), "float32"), near) == ""
    assert reference.difference(encode(np.array([1.0]), "float32"), near) != ""


@pytest.mark.parametrize(
    ("operation", "given", "arguments"),
    [
        ("all_reduce", [Tensor("int32", [1], bytes(4))] * 2, [{"op": "avg"}] * 2),
        ("all_reduce", [Tensor("int32", [1], bytes(4))] * 2, [{"op": "sum"}, {"op": "max"}]),
        ("all_reduce", [Tensor("int32", [1], bytes(4)), Tensor("int32", [2], bytes(8))], [{}] * 2),
        ("broadcast", [Tensor("int32", [1], bytes(4))] * 2, [{"src_rank_in_group": 2}] * 2),
        ("scatter", [Tensor("int8", [3], bytes(3))] * 2, [{}] * 2),
        ("all_gather", [Tensor("int8", [], bytes(1))] * 2, [{}] * 2),
        ("all_reduce_value", [1, 1.0], [{}] * 2),
        ("run_program", [], []),
    ],
)
def test_of_what_must_fail_the_model_says_nothing(
    operation: str, given: list[Any], arguments: list[Json]
) -> None:
    with pytest.raises(reference.Unpredictable):
        reference.results(operation, given, arguments)


def test_a_difference_names_how_many_and_the_first_with_both_values() -> None:
    ours = encode(np.arange(6.0).reshape(2, 3), "float32")
    theirs = encode(np.array([[0.0, 1, 2], [9, 4, 9]]), "float32")
    said = "2 of 6 elements differ, the first at [1, 0]: expected 3.0, got 9.0"
    assert reference.difference(theirs, ours) == said
    assert reference.difference(ours, ours) == ""
    assert reference.difference([ours], [ours, ours]).startswith("expected a list of 2")
    assert reference.difference({"a": 1}, {"a": 2}) == "'a': expected 2, got 1"
    assert reference.difference(True, 1) == "expected 1, got True"
