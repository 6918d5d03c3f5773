"""The environment variables of a launcher, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class LaunchError(ValueError):
    """A launcher's variable is missing or wrong; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A rank that torchrun, or anything that sets the same variables, has started.

    `local_world_size`: ranks on this host; 0: unknown. `fs_local_rank`: rank among those that share the file system.
    `master`: host and port where ranks meet. `agent_store`: the launcher itself runs the store there. `attempt`: number
    of the job's restart.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int = 0
    fs_local_rank: int = 0
    master: tuple[str, int] | None
    agent_store: bool
    attempt: int

    @classmethod
    def read(cls, environ: Mapping[str, str], rank: int | None, size: int | None) -> Launched:
        """From the environment; `rank` and `size` from the command line come first. Raises LaunchError.

        A variable that is empty counts as one that is not set.
        """
        environ = {name: text for name, text in environ.items() if text}
        rank = _number(environ, "RANK") if rank is None else rank
        size = _number(environ, "WORLD_SIZE") if size is None else size
        if not 0 <= rank < size:
            raise LaunchError(f"RANK is {rank}, which is not in a gang of WORLD_SIZE {size}")
        local_rank, local_world_size = _on_host(environ, rank, size)
        # OLMo-core's variables: on one file system for all hosts, every rank has a place of its own.
        shared = environ.get("OLMO_SHARED_FS") == "1"
        master = None
        if "MASTER_ADDR" in environ:
            master = (environ["MASTER_ADDR"], _number(environ, "MASTER_PORT"))
        return cls(
            rank=rank,
            world_size=size,
            local_rank=local_rank,
            local_world_size=local_world_size,
            fs_local_rank=_number(environ, "FS_LOCAL_RANK", rank if shared else local_rank),
            master=master,
            agent_store=environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
            attempt=_number(environ, "TORCHELASTIC_RESTART_COUNT", 0),
        )


def _on_host(environ: Mapping[str, str], rank: int, size: int) -> tuple[int, int]:
    """Rank and number of ranks on this host. Without any of the variables, there is one host."""
    said = [name for name in ("LOCAL_WORLD_SIZE", "NUM_NODES") if name in environ]
    if "LOCAL_RANK" not in environ:
        if said:
            raise LaunchError(f"LOCAL_RANK is not set, but {said[0]} is")
        return rank, 0
    if not said:
        raise LaunchError("neither LOCAL_WORLD_SIZE nor NUM_NODES is set, but LOCAL_RANK is")
    nodes = _number(environ, "NUM_NODES", 1)
    local_size = _number(environ, "LOCAL_WORLD_SIZE", size // max(1, nodes))
    if "NUM_NODES" in environ and nodes * local_size != size:
        raise LaunchError(
            f"NUM_NODES is {nodes} and LOCAL_WORLD_SIZE {local_size}, which makes no gang of WORLD_SIZE {size}"
        )
    if local_size > size:
        raise LaunchError(f"LOCAL_WORLD_SIZE is {local_size}, which is more than WORLD_SIZE {size}")
    local_rank = _number(environ, "LOCAL_RANK")
    if local_rank >= local_size:
        raise LaunchError(f"LOCAL_RANK is {local_rank}, which is not below LOCAL_WORLD_SIZE {local_size}")
    return local_rank, local_size


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name)
    if text is None:
        if default is None:
            raise LaunchError(f"{name} is not set; a launcher such as torchrun sets it")
        return default
    if not text.isdecimal():
        raise LaunchError(f"{name} is {text!r}, which is not a whole number of 0 or more")
    return int(text)
