"""How the outcomes of operations are read: what a value must be, and what it then is in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rankbridge._plan.ref import Ref
from rankbridge._plan.values import from_value
from rankbridge.errors import ProtocolError
from rankbridge.v1 import options_pb2, value_pb2


def one_of_each(what: str, count: int) -> Callable[[value_pb2.Value], list[Any]]:
    """Makes the reader of a list with one value of each of so many.

    The reader raises ``ProtocolError`` for anything else.
    """

    def read(value: value_pb2.Value) -> list[Any]:
        results = from_value(value)
        if not (isinstance(results, list) and len(results) == count):
            raise ProtocolError(
                f"the outcome is not one of each {what}",
                expected=f"a list of {count}",
                got=str(value.WhichOneof("kind")),
            )
        return results

    return read


def _ref_or_none(value: value_pb2.Value) -> Ref | None:
    """Reads what a collective gives that gives one member a tensor and the others none.

    Raises:
        ProtocolError: It is neither a ref nor none.
    """
    return None if value.WhichOneof("kind") == "none" else _ref(value)


def _refs_or_none(value: value_pb2.Value) -> Ref | list[Ref] | None:
    """Reads what a gather gives in any layout.

    Raises:
        ProtocolError: It is neither a ref, nor a list of refs, nor none.
    """
    if value.WhichOneof("kind") == "list":
        return [_ref(item) for item in value.list.items]
    return _ref_or_none(value)


def _value_with_source(value: value_pb2.Value) -> tuple[Any, int]:
    """Reads what a receive gives: what came, and the rank in group that it came from.

    Raises:
        ProtocolError: It is no pair with a rank.
    """
    result = from_value(value)
    if not (isinstance(result, tuple) and len(result) == 2 and type(result[1]) is int):
        raise ProtocolError(
            "the outcome is not what came and from where",
            expected="a tuple of two, the second an int",
            got=str(value.WhichOneof("kind")),
        )
    return result[0], result[1]


def _ref(value: value_pb2.Value) -> Ref:
    result = from_value(value)
    if not isinstance(result, Ref):
        raise ProtocolError("the outcome is no ref", expected="a ref", got=str(value.WhichOneof("kind")))
    return result


def nothing(value: value_pb2.Value) -> None:
    """Reads what an operation gives that gives none.

    Raises:
        ProtocolError: It is a value.
    """
    if value.WhichOneof("kind") != "none":
        raise ProtocolError("the outcome is a value", expected="none", got=str(value.WhichOneof("kind")))


READERS: dict[options_pb2.Gives.ValueType, Callable[[value_pb2.Value], Any]] = {
    options_pb2.GIVES_NONE: nothing,
    options_pb2.GIVES_REF: _ref,
    options_pb2.GIVES_REF_OR_NONE: _ref_or_none,
    options_pb2.GIVES_REFS: _refs_or_none,
    options_pb2.GIVES_REFS_OR_NONE: _refs_or_none,
    options_pb2.GIVES_VALUE: from_value,
    options_pb2.GIVES_VALUES: from_value,
    options_pb2.GIVES_VALUES_OR_NONE: from_value,
    options_pb2.GIVES_DICT: from_value,
    options_pb2.GIVES_REF_AND_SOURCE: _value_with_source,
    options_pb2.GIVES_VALUE_AND_SOURCE: _value_with_source,
    options_pb2.GIVES_DICT_AND_SOURCE: _value_with_source,
}
"""By what an operation gives."""
