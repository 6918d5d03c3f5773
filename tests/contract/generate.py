"""Writes `cases/*.json`: what every backend must answer, through every client.

Run `python -m tests.contract.generate`; a test checks that running it again changes nothing. Nothing here computes
with torch: moves are told in random bytes, reductions in small whole numbers that every dtype holds exactly.

A case: `ranks` in the gang; `group`, ranks of a group that is made for it, or null for world; `operation` and
`arguments`, the same on every member, or `arguments_by_rank`, one for each, null for a member that does not call;
`inputs`, one tensor for each member, or null; `timeout` in seconds, if it matters; and either `results`, for each
member a tensor, a list of tensors or null, or `error`, the code of the error that the call raises on every member. A
tensor is `{dtype, shape, data}`, data in base64 of its little-endian bytes. Cases with values, messages and several
calls in one have other fields: see `families`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.contract.families.build import Json
from tests.contract.families.coalesced import coalesced
from tests.contract.families.groups import groups
from tests.contract.families.layouts import layouts
from tests.contract.families.messages import messages
from tests.contract.families.moves import moves
from tests.contract.families.objects import objects
from tests.contract.families.programs import programs
from tests.contract.families.reductions import reductions
from tests.contract.families.refusals import missing, refusals
from tests.contract.families.shapes import shapes
from tests.contract.families.sizes import sizes

CASES = Path(__file__).parent / "cases"

FILES: dict[str, Callable[[], Iterator[Json]]] = {
    "moves": moves,
    "shapes": shapes,
    "sizes": sizes,
    "layouts": layouts,
    "objects": objects,
    "messages": messages,
    "coalesced": coalesced,
    "programs": programs,
    "reductions": reductions,
    "groups": groups,
    "refusals": refusals,
    "missing": missing,
}


def rendered(name: str) -> str:
    """What the file of that name holds."""
    lines = ",\n".join(json.dumps(it) for it in FILES[name]())
    return f"[\n{lines}\n]\n"


def main() -> None:
    """Write all files."""
    CASES.mkdir(exist_ok=True)
    for name in FILES:
        (CASES / f"{name}.json").write_text(rendered(name))


if __name__ == "__main__":
    main()
