"""A sidecar in a process of somebody else's job: it meets the others, forms, follows the job's groups, and leaves."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import engine_threads
from ..core.address import Address
from ..core.coordinator import GroupDescription
from ..core.errors import BridgeError, ErrorCode
from ..core.limits import Limits
from ..core.logger import LOGGER
from ..core.queues.host import host_id
from ..core.tokens import Tokens
from ..links.heartbeat import Heartbeat
from ..sidecar import endpoints
from ..sidecar.runtime_dir import GANG, UntrustedDirectory, runtime_dir
from ..sidecar.token_files import TokenError, read as read_tokens, write_new
from .board import Board, Stopped
from .found_modules import FOUND
from .group_names import FoundGroup, complete, named
from .registry import REGISTRY
from .torch_job import TorchJob, default_group_exists, local_rank, ranks_of

if TYPE_CHECKING:
    from ..core.coordinator import Backend
    from ..sidecar.sidecar import Sidecar

# A job may hold Python's lock for seconds, to compile for example; a process that has died is noticed by its sockets.
HEARTBEAT = Heartbeat(interval=1.0, misses=10)
DATA_TIMEOUT_S = 10.0
FORM_TIMEOUT_S = 60.0
_GROUP_TIMEOUT_S = 30.0
_TRIES = 3
_LOOK_S = 1.0
"""Seconds between two looks at the job's groups."""
_SETTLE_S = 0.1
_SETTLED_S = 5.0
_WATCH_S = 0.02
"""Seconds between two looks for the default group."""
_STOP_S = 5.0
BACKENDS = ("gloo", "nccl")
_SYNCHRONOUS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}


class AttachError(RuntimeError):
    """The sidecar could not be attached; says why. The job goes on without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to attach. See `rankbridge_server.attach`."""

    endpoints_file: Path | None = None
    name: str = "job"
    token_file: Path | None = None
    listen: Address | None = None
    advertise: str = ""
    insecure_token: bool = False
    max_bytes: int = 0
    timeout: float = 300.0
    backend: str = "gloo"
    observe: Path | None = None
    record_calls: bool = False


class Attachment:
    """The sidecar of this process. Thread-safe; its methods never touch the job's communication.

    `number`: how many times this process has attached before, which must be the same on all ranks.
    """

    def __init__(self, settings: Settings, number: int, groups: Mapping[str, object]) -> None:
        self.pid = os.getpid()
        self._settings = settings
        # A launcher's store may outlive the processes of its job, with all that they have written.
        self._prefix = f"rankbridge/attach/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{number}"
        self._stop = threading.Event()
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._sidecar: Sidecar | None = None
        self._published: endpoints.Published | None = None
        self._directory = ExitStack()
        self._error: Exception | None = None
        self._given: dict[str, object] = {}
        if groups:
            self.expose(groups)
        self._targets: list[str] = []
        self._groups: dict[str, tuple[int, ...]] = {}
        self._looked: object = None
        # Whether rank 0 has still to make sense of what the ranks have found.
        self._unsettled = False
        self._private: Path | None = None
        self._thread = engine_threads.start("attaching", self._run)

    @property
    def attached(self) -> bool:
        """Whether the gang is formed, and controllers can connect."""
        return self._done.is_set() and self._error is None and not self._stop.is_set()

    @property
    def endpoints(self) -> list[str]:
        """GRPC targets of this rank; none before it serves."""
        sidecar = self._sidecar
        if sidecar is None:
            return []
        # Other hosts do not reach the unix socket.
        return sidecar.endpoints[1:] if self._settings.listen else sidecar.endpoints

    @property
    def ended(self) -> bool:
        """Whether it was detached, or has failed."""
        return self._stop.is_set() or self._error is not None

    def wait(self, timeout: float | None = None) -> Attachment:
        """Waits until all ranks have attached and the gang is formed. A job has no need to.

        Args:
            timeout: Seconds; None: as long as it takes.

        Raises:
            AttachError: The sidecar could not be attached.
            TimeoutError: It is not attached yet.
        """
        if not self._done.wait(timeout):
            raise TimeoutError("the ranks have not all attached yet")
        if self._error is not None:
            raise AttachError(str(self._error)) from self._error
        return self

    def expose(self, groups: Mapping[str, object]) -> None:
        """Names groups that are not found by themselves. See `rankbridge_server.expose`."""
        for thing in groups.values():
            ranks_of(thing)
        self._given = {**self._given, **groups}

    def detach(self) -> None:
        """Stops the sidecar: the gang's generation ends, on every rank. Returns in some seconds, whatever hangs."""
        with self._lock:
            self._stop.set()
            if self._thread is not threading.current_thread():
                self._thread.join(_STOP_S)
            sidecar, self._sidecar = self._sidecar, None
            if sidecar is not None:
                sidecar.stop()
            if left := engine_threads.join(DATA_TIMEOUT_S + 1):
                LOGGER.warning("threads of the sidecar have not ended: %s", ", ".join(left))
            if self._published is not None:
                self._published.remove()
            self._directory.close()
            if not self._done.is_set():
                self._error = AttachError("it was detached")
                self._done.set()

    # The thread.

    def _run(self) -> None:
        # A signal is the job's: a thread that does not block it would take it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _SYNCHRONOUS)
        try:
            while not default_group_exists():
                if self._stop.wait(_WATCH_S):
                    return
            job = TorchJob()
            board = self._attach(job)
            self._done.set()
            self._follow(job, board)
        except Stopped:
            pass
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        LOGGER.warning("the job goes on without a sidecar: %s", str(error) or type(error).__name__)
        if not self._done.is_set():
            self._error = error
            self._done.set()

    def _attach(self, job: TorchJob) -> Board:
        until = time.monotonic() + self._settings.timeout
        board = Board(job.store, self._prefix, job.rank, job.size, until, self._stop)
        board.write_mine("host", host_id())
        hosts = board.read_all("host")
        if len(set(hosts)) > 1:
            self._check_network()
        tokens = self._tokens(board, job.rank, one_host=len(set(hosts)) == 1)
        self._serve(job, hosts, tokens)
        mine = json.dumps([os.getpid(), self.endpoints])
        board.write_mine("rank", tokens.seal(mine, f"{self._prefix} rank {job.rank}"))
        self._publish_groups(job, board)
        if job.rank == 0:
            self._form(job, board, tokens)
        elif (outcome := board.read("outcome")) != "formed":
            raise AttachError(outcome)
        return board

    def _check_network(self) -> None:
        if self._settings.listen is None:
            raise AttachError(
                "the job's ranks are on several hosts: say where each listens, listen='ADDRESS'"
            )
        if not self._settings.insecure_token:
            raise AttachError(
                "tokens would go between hosts in plain text: insecure_token=True if you trust everybody on that "
                "network"
            )

    def _tokens(self, board: Board, rank: int, *, one_host: bool) -> Tokens:
        """The gang's tokens. The store only says where they are: everybody may be able to read it."""
        if self._settings.token_file is not None:
            return read_tokens(self._settings.token_file)
        if not one_host:
            raise AttachError("the job's ranks are on several hosts: give all the same token_file")
        if rank == 0:
            path = self._private_directory() / "tokens"
            tokens = Tokens.new()
            write_new(path, tokens.to_json() + "\n")
            board.write("tokens", str(path))
            return tokens
        path = Path(board.read("tokens"))
        if path.stat().st_uid != os.geteuid():
            raise TokenError(f"{path}, which the job's store names, is another user's")
        return read_tokens(path)

    def _private_directory(self) -> Path:
        if self._private is None:
            self._private = self._directory.enter_context(runtime_dir())
        return self._private

    def _serve(self, job: TorchJob, hosts: list[str], tokens: Tokens) -> None:
        from ..core.rank import Identity
        from ..links.sockets import SocketLinkMaker
        from ..sidecar.settings import RankSettings
        from ..sidecar.sidecar import Sidecar
        from . import breakpoints, recorded_calls
        from .exposed import EXPOSED, with_built_in
        from .host import FunctionHost
        from .outside import stacks

        settings, directory = self._settings, self._private_directory()
        many = len(set(hosts)) > 1
        host = settings.advertise or (settings.listen.host if settings.listen else "127.0.0.1")
        tcp = settings.listen or Address("127.0.0.1")
        at, here = local_rank(hosts, job.rank)
        backend, most = self._backend(job, host, at)
        made = RankSettings(
            listen=(f"unix:{directory}/rank-{job.rank}", str(tcp._replace(port=tcp.port or 0))),
            links=str(tcp._replace(port=0)) if many else f"unix:{directory}/links-{job.rank}",
            advertise=host if many else "",
            tokens=lambda: tokens,
            limits=Limits(max_bytes=settings.max_bytes or most),
            heartbeat=HEARTBEAT,
            data_timeout=DATA_TIMEOUT_S,
            own_process=False,
            observe=settings.observe,
        )
        links = SocketLinkMaker(made.links, made.advertise, made.heartbeat, patience=made.straggler_after)
        identity = Identity(job.rank, job.size, local_rank=at, fs_local_rank=at, local_world_size=here)
        EXPOSED.otherwise(FOUND.by_name)
        functions = FunctionHost(with_built_in(REGISTRY), backend.tensors, None)
        sidecar = Sidecar(
            identity,
            backend,
            links,
            made,
            formed=self._formed,
            functions=functions,
            hook=breakpoints.begin,
            look_inside=stacks.threads,
            record_calls=recorded_calls.begin if settings.record_calls else None,
        )
        if self._stop.is_set():
            sidecar.stop()
            raise Stopped
        self._sidecar = sidecar

    def _backend(self, job: TorchJob, host: str, local_rank: int) -> tuple[Backend, int]:
        """What moves controllers' tensors, and how many bytes of them a rank takes unless somebody says so."""
        if self._settings.backend == "gloo":
            from ..backends.gloo import GlooBackend

            return GlooBackend(host, torch_threads=0), Limits().max_bytes // 4
        from ..backends import nccl

        engine = nccl.engine_beside_job(job.device_index, local_rank, job.size)
        return nccl.NcclBackend(local_rank, engine, torch_threads=0), engine.memory // 16

    def _form(self, job: TorchJob, board: Board, tokens: Tokens) -> None:
        sidecar = self._sidecar
        assert sidecar is not None
        try:
            entries = [
                json.loads(tokens.unseal(sealed, f"{self._prefix} rank {rank}"))
                for rank, sealed in enumerate(board.read_all("rank"))
            ]
            pids, targets = [pid for pid, _ in entries], [served for _, served in entries]
            self._targets = [it[0] for it in targets]
            settled, found = self._read_groups(board)
            self._unsettled = not settled
            wanted = named(complete(found), job.size, {}) if settled else []
            formed = sidecar.form(self._targets, FORM_TIMEOUT_S, wanted)
            self._groups = {it.name: it.ranks for it in wanted}
            self._publish(formed.generation, pids, targets, tokens)
        except Exception as error:
            board.write("outcome", f"rank 0 could not form the gang: {error}")
            raise
        board.write("outcome", "formed")

    def _publish(self, generation: int, pids: list[int], targets: list[list[str]], tokens: Tokens) -> None:
        paths = [self._settings.endpoints_file] if self._settings.endpoints_file is not None else []
        with suppress(UntrustedDirectory, OSError):
            paths.append(self._private_directory() / GANG)
        gang = endpoints.describe(
            self._settings.name, self._settings.backend, generation, pids, targets, tokens
        )
        self._published = endpoints.Published(gang, paths)

    def _formed(self, generation: int) -> None:
        if self._published is not None:
            self._published.formed(generation)

    # The job's groups.

    def _follow(self, job: TorchJob, board: Board) -> None:
        """Makes groups that the job makes later. Rank 0 does, when all ranks have seen them."""
        since = time.monotonic()
        while not self._stop.wait(_SETTLE_S if self._unsettled else _LOOK_S):
            if not default_group_exists():
                continue
            if self._publish_groups(job, board):
                self._unsettled, since = True, time.monotonic()
            if job.rank != 0 or not self._unsettled:
                self._unsettled = False
                continue
            settled, found = self._read_groups(board)
            if settled or time.monotonic() > since + _SETTLED_S:
                self._unsettled = False
                for group in named(complete(found), job.size, self._groups):
                    self._groups[group.name] = group.ranks
                    self._make(group)

    def _publish_groups(self, job: TorchJob, board: Board) -> bool:
        """Writes down what this rank has found, if that may have changed."""
        given, mark = self._given, job.mark()
        if self._looked == (mark, given):
            return False
        self._looked = mark, given
        found = [[it.key, it.name, it.ranks] for it in job.groups(given)]
        board.write_mine("groups", json.dumps({"seen": [mark[0], len(given)], "found": found}))
        return True

    @staticmethod
    def _read_groups(board: Board) -> tuple[bool, list[list[FoundGroup]]]:
        """What every rank has found, and whether they have all seen as many groups being made."""
        entries = [json.loads(it) for it in board.read_all("groups")]
        found = [[FoundGroup(key, name, tuple(ranks)) for key, name, ranks in it["found"]] for it in entries]
        return all(it["seen"] == entries[0]["seen"] for it in entries), found

    def _make(self, group: GroupDescription) -> None:
        sidecar = self._sidecar
        for _ in range(_TRIES):
            try:
                if sidecar is not None:
                    sidecar.new_group(self._targets, group, _GROUP_TIMEOUT_S)
                return
            except BridgeError as error:
                failed = error
            # A controller has called something else on "world" at the same time.
            if failed.failure.code is not ErrorCode.MISMATCH:
                break
        LOGGER.warning("the job's group %s is not made: %s", group.name, failed)
