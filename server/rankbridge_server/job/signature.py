"""The parameters of a marked function, as its callers see them."""

from __future__ import annotations

import inspect
import types
import typing
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.errors import invalid, shown
from ..core.functions.functions import FunctionDescription, Parameter, ParameterKind

CONTEXT = "context"
"""The name of the parameter that is no caller's."""

_KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: ParameterKind.PLAIN,
    inspect.Parameter.POSITIONAL_ONLY: ParameterKind.POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY: ParameterKind.NAMED,
    inspect.Parameter.VAR_POSITIONAL: ParameterKind.REST,
    inspect.Parameter.VAR_KEYWORD: ParameterKind.NAMED_REST,
}


class Signature:
    """A marked function with its parameters. `takes_context`: it has a parameter named so."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        whole = inspect.signature(function)
        self.takes_context = CONTEXT in whole.parameters
        self._whole = whole
        self._hints = _hints_of(function)
        # What fits where nothing is given, once it is known that this fits.
        self._nothing: inspect.BoundArguments | None = None
        self._signature = whole.replace(
            parameters=[
                it.replace(annotation=self._annotation(it.name, it.annotation))
                for it in whole.parameters.values()
                if it.name != CONTEXT
            ],
            return_annotation=self._annotation("return", whole.return_annotation),
        )

    def __str__(self) -> str:
        return f"{self.name}{self._signature}"

    def arguments(self, positional: Sequence[Any], named: Mapping[str, Any]) -> inspect.BoundArguments:
        """Binds arguments to parameters. Raises INVALID_ARGUMENT for what does not fit names or annotated types."""
        if self._nothing is not None and not positional and not named:
            return self._nothing
        try:
            bound = self._signature.bind(*positional, **named)
        except TypeError as error:
            got = f"{len(positional)} by place, {sorted(named)} by name"
            raise invalid(f"{self.name}: {error}", expected=str(self), got=got) from None
        for name, value in bound.arguments.items():
            self._check(name, value)
        if not positional and not named:
            self._nothing = bound
        return bound

    def call(self, bound: inspect.BoundArguments, context: object) -> Any:
        """Calls the function."""
        if not self.takes_context:
            return self.function(*bound.args, **bound.kwargs)
        given = {**bound.arguments, CONTEXT: context}
        whole = inspect.BoundArguments(
            self._whole, OrderedDict((name, given[name]) for name in self._whole.parameters if name in given)
        )
        return self.function(*whole.args, **whole.kwargs)

    def describe(self) -> FunctionDescription:
        """The function as it is listed."""
        returns = self._signature.return_annotation
        return FunctionDescription(
            name=self.name,
            doc=inspect.getdoc(self.function) or "",
            parameters=tuple(map(_parameter, self._signature.parameters.values())),
            returns="" if returns is inspect.Signature.empty else _written(returns),
            yields=inspect.isgeneratorfunction(self.function),
            signature=str(self._signature),
        )

    def _annotation(self, name: str, annotation: Any) -> Any:
        """An annotation, resolved where it can be; one that cannot stays as it is written, without quotes."""
        found = self._hints.get(name, annotation)
        return _Written(found) if isinstance(found, str) else found

    def _check(self, name: str, value: Any) -> None:
        kind = self._signature.parameters[name].kind
        hint = self._hints.get(name, Any)
        if kind is inspect.Parameter.VAR_POSITIONAL:
            values = list(value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            values = list(value.values())
        else:
            values = [value]
        for it in values:
            if not _fits(it, hint):
                raise invalid(
                    f"{self.name}: argument {name!r} is of another type",
                    expected=_written(hint),
                    got=f"{type(it).__name__}: {shown(repr(it))}",
                )


class _Written(str):
    """An annotation that Python has as text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:
        # An annotation that cannot be resolved, as one for type checkers alone: nothing is checked then.
        return {}


def _parameter(it: inspect.Parameter) -> Parameter:
    empty = inspect.Parameter.empty
    rest = it.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return Parameter(
        name=it.name,
        kind=_KINDS[it.kind],
        type="" if it.annotation is empty else _written(it.annotation),
        optional=rest or it.default is not empty,
        default="" if it.default is empty else shown(repr(it.default)),
    )


def _written(annotation: Any) -> str:
    return inspect.formatannotation(annotation)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type, as far as that is plain: of containers, not of what is inside."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, it) for it in typing.get_args(hint))
    if origin is typing.Annotated:
        return _fits(value, typing.get_args(hint)[0])
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    kind = origin or hint
    if kind is None:
        return value is None
    if kind is Any or not isinstance(kind, type):
        return True
    if kind is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    try:
        return isinstance(value, kind)
    except TypeError:
        # A protocol for type checkers alone.
        return True
