"""The functions that a module has marked. Imports nothing that takes long: the user's module imports this."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, TypeVar, overload

Marked = TypeVar("Marked", bound=Callable[..., Any])


BUILT_IN = "rankbridge."
"""What the names of the bridge's own functions begin with: they are called, and not listed."""


class Registry:
    """Functions by name, and what is called when a generation was formed."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., Any]] = {}
        self.on_formed: list[Callable[..., Any]] = []

    def add(self, name: str, function: Callable[..., Any]) -> None:
        """Adds a function. Raises ValueError for a name that another has, TypeError for a coroutine function."""
        if iscoroutinefunction(function):
            raise TypeError(f"an async function cannot be called by controllers: {name}, {_where(function)}")
        known = self.functions.setdefault(name, function)
        if known is not function:
            raise ValueError(f"two functions have the name {name!r}: {_where(known)} and {_where(function)}")

    def replace(self, name: str, function: Callable[..., Any]) -> None:
        """Adds a function, or puts another in its place."""
        self.functions[name] = function


REGISTRY = Registry()
"""That of this process."""


@overload
def function(marked: Marked, /) -> Marked: ...
@overload
def function(*, name: str = "") -> Callable[[Marked], Marked]: ...
def function(marked: Callable[..., Any] | None = None, /, *, name: str = "") -> Any:
    """Marks a function that controllers may call by its name, on a rank into which its module was loaded.

    What it takes and returns are values: None, bool, int, float, str, bytes, list, tuple, dict, and torch tensors. A
    ref arrives as the tensor that it stands for; a tensor that is returned becomes a new ref. A parameter named
    `context` gets a `Context`, and is none of the caller's. What a function yields, it reports; what it returns in the
    end is its result.

    Args:
        marked: The function, where this is used without parentheses.
        name: Its name for controllers. Empty: its own.

    Raises:
        ValueError: Another function has the name.
        TypeError: It is a coroutine function.
    """
    if marked is not None:
        REGISTRY.add(name or marked.__name__, marked)
        return marked

    def mark(marked: Marked) -> Marked:
        REGISTRY.add(name or marked.__name__, marked)
        return marked

    return mark


def on_formed(hook: Marked) -> Marked:
    """Marks a function that every rank calls after each forming, with a `Context`, before any other function.

    All ranks call it at once, in a generation that is formed: it may use torch.distributed, for example to bring its
    state to a rank that has replaced another (`Context.broadcast_state`). If it raises, calls of functions fail with
    what it raised, until the next forming.
    """
    REGISTRY.on_formed.append(hook)
    return hook


def _where(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
