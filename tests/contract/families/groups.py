"""Groups other than world: their order is their own."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.families.build import Json, case, encode, tensor
from tests.contract.families.sizes import exchanged


def groups() -> Iterator[Json]:
    """Groups other than world: their order is their own."""
    for ranks in ([0, 2], [3, 1, 0], [2], [3, 2, 1, 0]):
        values = [10 * (place + 1) for place in range(len(ranks))]
        inputs = [tensor("int32", [1], encode("int32", [value])) for value in values]
        total = tensor("int32", [1], encode("int32", [sum(values)]))
        joined = tensor("int32", [len(ranks)], encode("int32", values))
        members = len(ranks)
        last = members - 1
        yield case(f"barrier in {ranks}", "barrier", group=ranks, results=[None] * members)
        yield case(
            f"all_reduce in {ranks}",
            "all_reduce",
            group=ranks,
            arguments={"op": "sum"},
            inputs=inputs,
            results=[total] * members,
        )
        yield case(
            f"all_gather in {ranks}",
            "all_gather",
            group=ranks,
            arguments={"dim": 0},
            inputs=inputs,
            results=[joined] * members,
        )
        yield case(
            f"broadcast in {ranks} from its last", "broadcast", group=ranks,
            arguments={"src_rank_in_group": last}, inputs=inputs, results=[inputs[last]] * members,
        )  # fmt: skip
        yield case(
            f"gather in {ranks} to its first", "gather", group=ranks,
            arguments={"dst_rank_in_group": 0, "dim": 0}, inputs=inputs, results=[joined] + [None] * last,
        )  # fmt: skip
        yield case(
            f"reduce in {ranks} to its last", "reduce", group=ranks,
            arguments={"op": "sum", "dst_rank_in_group": last}, inputs=inputs, results=[None] * last + [total],
        )  # fmt: skip
        yield case(
            f"scatter in {ranks} from its last", "scatter", group=ranks,
            arguments={"src_rank_in_group": last}, inputs=[*inputs[:last], joined], results=inputs,
        )  # fmt: skip
        uneven = [total, *[tensor("int32", [0], b"")] * last]
        yield case(
            f"reduce_scatter in {ranks}, all to its first", "reduce_scatter", group=ranks,
            arguments={"sizes": [1] + [0] * last}, inputs=inputs, results=uneven,
        )  # fmt: skip
        ragged = [tensor("int32", [place], encode("int32", range(place))) for place in range(members)]
        together = [it for place in range(members) for it in range(place)]
        yield case(
            f"all_gather in {ranks} of different sizes", "all_gather", group=ranks,
            arguments={"sizes": list(range(members))},
            inputs=ragged, results=[tensor("int32", [len(together)], encode("int32", together))] * members,
        )  # fmt: skip
        parts, received = exchanged(
            "int64", [1, 2], 0, [[a + b for b in range(members)] for a in range(members)]
        )
        yield case(
            f"all_to_all in {ranks}", "all_to_all", group=ranks,
            arguments={"sizes": [[a + b for b in range(members)] for a in range(members)]},
            inputs=parts, results=received,
        )  # fmt: skip
        yield case(
            f"broadcast in {ranks} from outside", "broadcast", group=ranks,
            arguments={"src_rank_in_group": members}, inputs=inputs, error="RANK_OUT_OF_RANGE",
        )  # fmt: skip
