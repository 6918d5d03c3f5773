"""The sidecar: gRPC services around the collectives of one rank of a torch.distributed job.

A module that ranks load marks functions for controllers with `function`, and what every rank calls after a forming with
`on_formed`; both get a `Context`. `attach` starts a sidecar in a process of a job that something else has started.
`expose` shows tensors, values and groups of a process to controllers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .job.registry import function, on_formed

if TYPE_CHECKING:
    from .job.attaching import attach, detach
    from .job.attachment import AttachError, Attachment
    from .job.breakpoints import BreakpointError
    from .job.context import Context
    from .job.exposed import expose
    from .job.guard.errors import GuardError

__all__ = [
    "AttachError",
    "Attachment",
    "BreakpointError",
    "Context",
    "GuardError",
    "attach",
    "detach",
    "expose",
    "function",
    "on_formed",
]

_WHERE = {
    "AttachError": "attachment",
    "Attachment": "attachment",
    "BreakpointError": "breakpoints",
    "Context": "context",
    "GuardError": "guard.errors",
    "attach": "attaching",
    "detach": "attaching",
    "expose": "exposed",
}


def __getattr__(name: str) -> Any:
    # With torch and gRPC: not imported for those who only mark functions, or run a command.
    if name in _WHERE:
        return getattr(import_module(f".job.{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
