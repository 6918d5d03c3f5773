"""A case of the report: a scenario, and which cell of the table it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbridge.harness.cases import Case, cases_in

SIZE = 4
"""Ranks of the gang."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Probe:
    """A case.

    Attributes:
        part: Part of the report.
        operation: Row of the table: an operation, and its op.
        dtype: Its column; empty: none.
        what: What the case is about beyond that.
        steps: What is done.
        tensors: What every rank has.
        needs: What the backend must have.
        groups: Groups beside world.
    """

    part: str
    operation: str
    dtype: str
    what: str
    steps: Sequence[Json]
    tensors: Mapping[str, Json]
    needs: Mapping[str, Any]
    groups: Mapping[str, Sequence[int]]

    @property
    def name(self) -> str:
        """Names it among all."""
        about = f"{self.operation} {self.dtype}".strip()
        return f"{about}: {self.what}" if self.what else about

    def case(self, backend: str) -> Case:
        """Gives it as a case of a scenario."""
        scenario = {
            "format": 1,
            "name": self.name,
            "gang": {"size": SIZE, "backend": backend},
            "groups": self.groups,
            "tensors": self.tensors,
            "needs": self.needs,
            "timeout_ms": 20_000,
            "step": list(self.steps),
        }
        (case,) = cases_in(json.dumps(scenario), f"{self.part}.json")
        return case


def probe(
    part: str,
    operation: str,
    steps: Sequence[Json],
    *,
    dtype: str = "",
    what: str = "",
    op: str = "",
    tensors: Mapping[str, Json] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    operations: Sequence[str] = (),
) -> Probe:
    """Makes a case. `op`: its reduction, which the backend must have; `operations`: what it needs beside its own."""
    needs: Json = {"operations": [operation, *operations]}
    if op:
        needs["reductions"] = {op: [dtype or "float32"]}
    return Probe(part, f"{operation} {op}".strip(), dtype, what, steps, tensors or {}, needs, groups or {})


def right(call: str, **words: Any) -> Json:
    """Gives a step on all members that must give what the model gives."""
    return {"call": call, **words, "expect": {"ok": True}}


def seeded(dtype: str, *shape: int | str) -> Json:
    """Gives a tensor with pseudorandom elements."""
    return {"dtype": dtype, "shape": list(shape), "fill": {"seed": 7}}
