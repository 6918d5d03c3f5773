"""The operation that calls a function."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import invalid
from ..operations.operation import FunctionPlan, Site, operation
from ..operations.outcome import Packed

MAX_ARGUMENTS = 1024


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Calls a function. `names`: of the parameters that `values` are for; empty: by its place, before all others.

    `alone`: this rank calls it, and no other member.
    """

    function: str
    names: tuple[str, ...]
    values: tuple[Packed, ...]
    alone: bool


@operation(led=True)
def call_function(site: Site, args: CallFunction) -> FunctionPlan:
    """Members agree on the function."""
    if len(args.values) > MAX_ARGUMENTS:
        raise invalid("too many arguments", expected=f"at most {MAX_ARGUMENTS}", got=str(len(args.values)))
    body = site.functions.bind(site, args.function, args.names, args.values)
    return FunctionPlan(args.function, body, args.alone)
