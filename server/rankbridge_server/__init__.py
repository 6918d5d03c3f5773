"""The sidecar: gRPC services around the collectives of one rank of a torch.distributed job.

A module that ranks load marks functions for controllers with `function`, and what every rank calls after a forming with
`on_formed`; both get a `Context`. `expose` shows tensors and values of the process to them.
"""

from typing import TYPE_CHECKING, Any

from .job.exposed import expose
from .job.registry import function, on_formed

if TYPE_CHECKING:
    from .job.context import Context

__all__ = ["Context", "expose", "function", "on_formed"]


def __getattr__(name: str) -> Any:
    # With torch and gRPC: not imported for those who only mark functions, or run a command.
    if name == "Context":
        from .job.context import Context

        return Context
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
