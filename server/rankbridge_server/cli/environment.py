"""What a launcher says in the environment, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class LaunchError(ValueError):
    """A variable that a launcher sets is missing or makes no sense; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A rank that torchrun, or anything that sets the same variables, has started.

    `master`: host and port where ranks meet. `agent_store`: the launcher itself runs the store there. `attempt`: which
    restart of the job this is.
    """

    rank: int
    world_size: int
    local_rank: int
    master: tuple[str, int] | None
    agent_store: bool
    attempt: int

    @classmethod
    def read(cls, environ: Mapping[str, str], rank: int | None, size: int | None) -> Launched:
        """From the environment; `rank` and `size` from the command line come first. Raises LaunchError."""
        rank = _number(environ, "RANK") if rank is None else rank
        size = _number(environ, "WORLD_SIZE") if size is None else size
        if not 0 <= rank < size:
            raise LaunchError(f"RANK is {rank}, which is not in a gang of WORLD_SIZE {size}")
        master = None
        if "MASTER_ADDR" in environ:
            master = (environ["MASTER_ADDR"], _number(environ, "MASTER_PORT"))
        return cls(
            rank=rank,
            world_size=size,
            local_rank=_number(environ, "LOCAL_RANK", rank),
            master=master,
            agent_store=environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
            attempt=_number(environ, "TORCHELASTIC_RESTART_COUNT", 0),
        )


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name)
    if text is None:
        if default is None:
            raise LaunchError(f"{name} is not set; a launcher such as torchrun sets it")
        return default
    if not text.isdecimal():
        raise LaunchError(f"{name} is {text!r}, which is not a whole number of 0 or more")
    return int(text)
