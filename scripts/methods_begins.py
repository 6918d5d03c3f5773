"""Methods that begin a send or a receive, from the coordinator's methods that wait for it, for scripts/methods.py."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from described import Documented, service
from rankbridge.v1 import options_pb2

REGION = re.compile(
    r"(?P<begin>^ *# --- that begin: written by scripts/methods\.py.*?\n)"
    r".*?"
    r"(?P<end>^ *# --- end of those that begin\n)",
    re.DOTALL | re.MULTILINE,
)
SIDES = {"_send": "senders", "_receive": "receivers"}
"""What waits, and what makes the parts for it."""


def method(waits: ast.AsyncFunctionDef, given: str) -> str:
    """The method that begins what `waits` waits for. `given`: to each rank, as a type."""
    call = next(
        it
        for it in ast.walk(waits)
        if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute) and it.func.attr in SIDES
    )
    assert isinstance(call.func, ast.Attribute)
    parts = ast.unparse(call).replace(
        f"self.{call.func.attr}", f"self._procedures.{SIDES[call.func.attr]}", 1
    )
    what = (
        "for: None for those that do not send."
        if given == "None"
        else "for: what came, and from which rank in group."
    )
    doc = f'"""Begins `{waits.name}`, and gives by rank what to wait {what}"""'
    head = f"async def i{waits.name}({ast.unparse(waits.args)}) -> list[AsyncWork[{given}] | None]:"
    return f'{head}\n    {doc}\n    return await self._begin("{waits.name}", {parts})'


def written(
    path: Path, documented: list[Documented], given: Mapping[options_pb2.Gives.ValueType, str]
) -> str:
    """The coordinator's file with its region written anew, not formatted."""
    text = path.read_text()
    waiting = {it.name: it for it in ast.walk(ast.parse(text)) if isinstance(it, ast.AsyncFunctionDef)}
    methods = [
        method(waiting[it.kind], given[it.options.gives])
        for it in service(documented, "PointToPointService")[1]
    ]
    inside = textwrap.indent("\n\n".join(methods), "    ")
    return REGION.sub(rf"\g<begin>\n{inside}\n\n\g<end>", text)
