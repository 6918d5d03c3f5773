"""The shared cases on a backend that has less than Gloo."""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.cases import Json

from rankbridge import Abilities

_OF_TENSORS = ("reduce", "all_reduce", "reduce_scatter", "scan")


def as_able(case: Json, abilities: Abilities) -> Json:
    """The case with the refusal of what the backend says it has not."""
    lacks = [it for it in _refusals(case, abilities) if it]
    return case if not lacks or "error" in case else {**case, "error": lacks[0]}


def _refusals(case: Json, abilities: Abilities) -> Iterator[str]:
    for call in [case, *case.get("calls", [])]:
        if call["operation"] not in _OF_TENSORS:
            continue
        if call["operation"] not in abilities.collectives:
            yield "UNSUPPORTED_OPERATION"
        elif call["inputs"][0]["dtype"] not in abilities.reductions.get(
            call["arguments"].get("op", "sum"), ()
        ):
            yield "UNSUPPORTED_DTYPE"
