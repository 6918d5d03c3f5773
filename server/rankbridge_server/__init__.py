"""The sidecar: gRPC services around the collectives of one rank of a torch.distributed job.

`attach` starts one in a process of a job that something else has started.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .job.attaching import attach, detach, expose
    from .job.attachment import AttachError, Attachment

__all__ = ["AttachError", "Attachment", "attach", "detach", "expose"]


def __getattr__(name: str) -> Any:
    # Not imported for those who run a command.
    if name in ("attach", "detach", "expose"):
        from .job import attaching

        return getattr(attaching, name)
    if name in ("AttachError", "Attachment"):
        from .job import attachment

        return getattr(attachment, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
