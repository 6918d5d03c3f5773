"""The Python client's exceptions of error codes, from the tree in their module's docstring, for scripts/methods.py."""

from __future__ import annotations

import re
from pathlib import Path

from described import Documented, flowing, values_of

CLASS = re.compile(
    r"^    (?P<indent>[ │├└─]*)(?P<name>\w+Error)(?: \((?P<more>\w+)\))? *(?P<code>[A-Z_]*)", re.M
)
REGION = re.compile(r"(?<=error\.proto\n)(.*?)(?=# --- end of classes\n)", re.DOTALL)
BESIDE = ["Activity", "ErrorCode", "Outcome", "Raised", "RankDetail", "Side"]
"""What the module has beside classes of exceptions."""


def written(path: Path, documented: list[Documented]) -> str:
    """The module with its region written anew, not formatted. A class that it has elsewhere is written by hand."""
    text = path.read_text()
    by_hand = re.findall(r"^class (\w+)", REGION.sub("", text), re.MULTILINE)
    comments = values_of(documented, "ErrorCode")
    above: list[str] = []
    names, classes = [], []
    for found in CLASS.finditer(text):
        name, depth = found["name"], len(found["indent"]) // 4
        above[depth:] = [name]
        names.append(name)
        if name not in by_hand:
            bases = ", ".join(filter(None, [above[depth - 1], found["more"]]))
            doc = flowing(comments[f"ERROR_CODE_{found['code']}"])
            classes.append(
                f'class {name}({bases}):\n    """{doc}"""\n\n    code = ErrorCode.{found["code"]}\n'
            )
    listed = f"__all__ = {sorted(names + BESIDE)}\n"
    return REGION.sub(lambda _: "\n" + "\n".join([listed, *classes]) + "\n", text)
