"""Evidence as JSON: what `--bundle` writes, and what tests have recorded."""

from __future__ import annotations

import json
import types
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from .evidence import Evidence

FORMAT = "rankbridge evidence 1"


class BadBundle(ValueError):
    """What is wrong with it."""


def dump(evidence: Evidence) -> str:
    """The evidence as JSON."""
    return json.dumps({"format": FORMAT, **asdict(evidence)}, separators=(",", ":"))


def load(text: str) -> Evidence:
    """Evidence that `dump` has written. Raises BadBundle if the text is anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadBundle(f"the bundle is cut off, or is none: {error}") from None
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise BadBundle(f"the bundle is not of the format {FORMAT!r}")
    evidence = _decode(Evidence, data, "bundle")
    assert isinstance(evidence, Evidence)
    return evidence


@cache
def _hints(of: type) -> dict[str, Any]:
    return get_type_hints(of)


def _decode(wanted: Any, data: object, where: str) -> object:
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return None if data is None else _decode(arguments[0], data, where)
    if origin is tuple:
        items = _checked(list, data, where)
        return tuple(_decode(arguments[0], it, f"{where}[{place}]") for place, it in enumerate(items))
    if origin is dict:
        pairs = _checked(dict, data, where)
        return {key: _decode(arguments[1], it, f"{where}.{key}") for key, it in pairs.items()}
    if is_dataclass(wanted) and isinstance(wanted, type):
        return _decode_record(wanted, _checked(dict, data, where), where)
    if wanted is float and type(data) is int:
        return float(data)
    return _checked(wanted, data, where)


def _decode_record(wanted: type, data: dict[str, object], where: str) -> object:
    names = {it.name for it in fields(wanted)}
    if strange := sorted(data.keys() - names):
        raise BadBundle(f"{where} has a field that is not known: {strange[0]!r}")
    values = {name: _decode(_hints(wanted)[name], it, f"{where}.{name}") for name, it in data.items()}
    try:
        return wanted(**values)
    except TypeError as error:
        raise BadBundle(f"{where}: {error}") from None


def _checked(wanted: Any, data: object, where: str) -> Any:
    if type(data) is not wanted:
        raise BadBundle(f"{where} must be {wanted.__name__}, and is {type(data).__name__}")
    return data
