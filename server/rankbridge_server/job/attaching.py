"""Attaching to the job of this process, and leaving it before the interpreter ends."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from ..core.address import Address
from ..core.logger import LOGGER
from .attachment import BACKENDS, AttachError, Attachment, Settings
from .dispatch import hook
from .found_modules import FOUND

ENDPOINTS_FILE = "RANKBRIDGE_ENDPOINTS_FILE"
TOKEN_FILE = "RANKBRIDGE_TOKEN_FILE"

_LOCK = threading.Lock()
_now: Attachment | None = None
_count = 0


def attach(
    endpoints_file: str | os.PathLike[str] | None = None,
    *,
    name: str = "job",
    groups: Mapping[str, object] | None = None,
    token_file: str | os.PathLike[str] | None = None,
    listen: str | None = None,
    advertise: str | None = None,
    insecure_token: bool = False,
    max_bytes: int = 0,
    timeout: float = 300.0,
    backend: str = "gloo",
    observe: str | os.PathLike[str] | None = None,
    record_calls: bool = False,
) -> Attachment:
    """Starts a sidecar in this process of a torch.distributed job, beside the job, and returns at once.

    Every rank calls it, before or after init_process_group. When all have, the gang is formed with the job's groups,
    and rank 0 writes the endpoints. The job never waits for it. In a process that is attached it changes nothing, and
    returns the attachment that is there.

    Args:
        endpoints_file: Where rank 0 writes how controllers reach the ranks, with tokens, for the user alone. Default:
            the environment's RANKBRIDGE_ENDPOINTS_FILE; without either, only `rankbridge ls` finds the gang.
        name: Name of the gang, for people.
        groups: As of `expose`. They must be there already.
        token_file: The gang's tokens, as `rankbridge tokens` writes them. Default: the environment's
            RANKBRIDGE_TOKEN_FILE, else new ones. Needed if the ranks are on several hosts, the same on all.
        listen: Address, "HOST" or "HOST:PORT", at which other hosts reach this rank. Default: this host alone.
        advertise: Host name by which they do. Default: that of `listen`.
        insecure_token: Tokens may go between hosts in plain text.
        max_bytes: Bytes of tensors that controllers may put on this rank; 0: an eighth of the host's memory, or a
            sixteenth of the device's.
        timeout: Seconds in which all ranks must have attached, once this one has a default group.
        backend: What moves controllers' tensors, the same on all ranks: "gloo", on the CPU, whatever the job uses; or
            "nccl", on the job's devices, each of which must have one rank.
        observe: Folder in which the ranks of this host serve those who may only observe; `gang.json` in it says where.
            Who may enter the folder may call. It is made, for the user alone, if it is not there.
        record_calls: Each rank's record has also what the job itself calls of torch.distributed from then on, and of
            objects that look like vLLM's GroupCoordinator: give it at the same place on all ranks.

    Raises:
        ValueError: An argument is wrong. What fails later is logged, and `Attachment.wait` raises it.
    """
    global _now, _count
    if backend not in BACKENDS:
        raise ValueError(f"backend is one of {', '.join(BACKENDS)}, not {backend!r}")
    file, tokens = endpoints_file or os.environ.get(ENDPOINTS_FILE), token_file or os.environ.get(TOKEN_FILE)
    settings = Settings(
        endpoints_file=Path(file).absolute() if file else None,
        name=name,
        token_file=Path(tokens).absolute() if tokens else None,
        listen=_address(listen),
        advertise=advertise or "",
        insecure_token=insecure_token,
        max_bytes=max_bytes,
        timeout=timeout,
        backend=backend,
        observe=Path(observe).absolute() if observe else None,
        record_calls=record_calls,
    )
    with _LOCK:
        if _now is not None and not _now.ended:
            return _now
        if _count == 0:
            # Before threads are joined, and before torch and gRPC are taken down.
            threading._register_atexit(_at_exit)  # type: ignore[attr-defined]
            os.register_at_fork(after_in_child=_in_child)
            FOUND.watch()
        if record_calls:
            # Here, and not when the gang is formed: at this place all ranks have called the same.
            hook().count_coordinators()
        attachment = Attachment(settings, _count, groups or {})
        _count += 1
        _now = attachment
    return attachment


def expose_groups(groups: Mapping[str, object]) -> None:
    """Names groups of the job for controllers. See `rankbridge_server.expose`."""
    attachment = _now
    if attachment is None or attachment.ended:
        raise AttachError("this process is not attached: call rankbridge_server.attach() first")
    attachment.expose(groups)


def detach() -> None:
    """Stops the sidecar of this process, if there is one; at the end of the process that happens by itself.

    The gang's generation ends, on every rank. All ranks may attach again, each as many times as the others.
    """
    if _now is not None:
        _now.detach()


def _address(text: str | None) -> Address | None:
    if text is None:
        return None
    address = Address.parse(text)
    if address.host in ("", "0.0.0.0", "::"):
        raise ValueError(
            f"listen must be the address of one network, at which the others reach this rank, not {text!r}"
        )
    return address


def _at_exit() -> None:
    attachment = _now
    if attachment is None or attachment.pid != os.getpid():
        return
    try:
        attachment.detach()
    except Exception as error:
        LOGGER.warning("the sidecar has not ended in order: %s: %s", type(error).__name__, error)


def _in_child() -> None:
    """In a forked process there is no sidecar, only its memory, which must not be taken down: its threads are gone."""
    global _now
    if _now is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_now))
        _now = None
