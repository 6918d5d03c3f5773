"""`rankbridge rank`: one rank, started by torchrun, mpirun, a container, or by hand."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.address import Address
from ..core.errors import BridgeError
from ..core.printable import lines
from ..core.rank import Identity
from ..core.reread import Reread
from ..core.tokens import Tokens
from ..job.interfaces import address_towards
from ..job.loading import LoadError
from ..job.outside import stacks
from ..sidecar import endpoints, traces
from ..sidecar.logs import begin as begin_logs
from ..sidecar.runtime_dir import GANG, UntrustedDirectory, runtime_dir
from ..sidecar.settings import RankSettings
from ..sidecar.tls import Tls
from ..sidecar.token_files import TokenError
from ..sidecar.traces import NoTraces
from . import mpi, nccl, others
from .environment import Launched, LaunchError
from .exposition import METRICS, serve
from .extras import NoServer, server_extra
from .loaded import loaded
from .logs import LOGS_NOTE, logs_of, logs_options
from .options import FILE, Command, Option, Options, address
from .others import BackendName
from .progress import progress
from .settings import LOAD, OBSERVE, RECORD_CALLS, check_record_calls, heartbeat_of, limits_of, limits_options
from .tls import TLS_NOTE, TlsError, reread_tls, tls_options
from .tokens import WHO, JobTokens, of_ranks, tokens_options

if TYPE_CHECKING:
    from ..backends.mpi import MpiWorld
    from ..core.coordinator import Backend
    from ..sidecar.sidecar import Sidecar

MEET_TIMEOUT_S = 60.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(options: Options) -> int:
    """Runs the command; returns the exit status."""
    check_record_calls(options)
    try:
        traces.check()
        if options.backend == "mpi":
            _block_signals()
            with progress("beginning MPI"):
                world, launched, host = mpi.begin(options.rank, options.size, MEET_TIMEOUT_S)
            host = _host(launched, options, host)
            tls = reread_tls(options, host)
        else:
            world, launched = None, Launched.read(os.environ, options.rank, options.size)
            host = _host(launched, options)
            tls = reread_tls(options, host)
            _block_signals()
        listen: Address = options.listen or Address(host)
        if _is_everywhere(listen.host) and not options.trusted_network:
            raise TokenError(
                f"--listen {listen.host} serves on every network that this host is in. Give the address of one that is "
                "yours, or --trusted-network if you trust all of them: the data between ranks is neither encrypted nor "
                "authenticated"
            )
        tokens = of_ranks(options, launched.master, listen.host, secure=tls is not None)
        return _serve(launched, world, host, tls, tokens, options)
    except (NoTraces, TlsError, TokenError) as error:
        print(f"rankbridge rank: {error}", file=sys.stderr)
        return 2
    except (LaunchError, LoadError, mpi.NoMpi, nccl.NoNccl, NoServer, OSError, BridgeError) as error:
        print(f"rankbridge rank: {lines(str(error))}", file=sys.stderr)
        return 1


def _block_signals() -> None:
    # Before any thread starts, so that all threads inherit it, and `sigwait` at the end gets the signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _serve(
    launched: Launched,
    world: MpiWorld | None,
    host: str,
    tls: Reread[Tls] | None,
    tokens: JobTokens,
    options: Options,
) -> int:
    limits = limits_of(options)
    with progress("importing torch"), server_extra():
        if options.backend == "nccl":
            backend: Backend = (on_nccl := nccl.begin(launched.local_rank))
            limits = nccl.limits_on(on_nccl, limits, options.max_bytes)
        else:
            backend = _backend(world, host, options)
        from ..sidecar.sidecar import Sidecar
    from ..links.sockets import SocketLinkMaker

    begin_logs(logs_of(options))
    listen: Address = options.listen or Address(host)
    settings = RankSettings(
        listen=(str(listen._replace(port=listen.port or 0)),),
        links=str(listen._replace(port=0)),
        advertise=host,
        tls=tls,
        tokens=tokens.tokens,
        limits=limits,
        heartbeat=heartbeat_of(options),
        default_timeout=options.default_timeout,
        data_timeout=options.data_timeout,
        share_memory=not options.no_shared_memory,
        straggler_after=options.straggler_after,
        audit=options.audit,
        logs=logs_of(options),
        metrics=options.metrics is not None,
        load=tuple(options.load),
        observe=options.observe,
        record_calls=options.record_calls,
    )
    identity = Identity(
        rank=launched.rank,
        world_size=launched.world_size,
        local_rank=launched.local_rank,
        fs_local_rank=launched.fs_local_rank,
        local_world_size=launched.local_world_size,
    )
    links = SocketLinkMaker(
        settings.links,
        settings.advertise,
        settings.heartbeat,
        (lambda: tls().links) if tls else None,
        settings.straggler_after,
    )
    gang = _Gang(options)
    functions, hook, record_calls = loaded(settings.load, backend, host)
    sidecar = Sidecar(
        identity,
        backend,
        links,
        settings,
        formed=gang.formed,
        functions=functions,
        hook=hook,
        look_inside=stacks.threads,
        record_calls=record_calls if settings.record_calls else None,
    )
    target = _advertised(options.advertise, host, sidecar.endpoints[0])
    print(f"rank {launched.rank}  pid {os.getpid()}  {target}", flush=True)
    own = {"rank": str(launched.rank)}
    if tokens.file is not None:
        print(f"tokens  {tokens.file}", flush=True)
    if options.metrics is not None:
        print(f"metrics  {serve(options.metrics, lambda: [(own, sidecar.metrics())])}", flush=True)
    mine = json.dumps([os.getpid(), target])
    if world is not None:
        _form(launched, world.exchange(mine, MEET_TIMEOUT_S), sidecar, tokens, gang)
    elif launched.master is not None:
        _form(
            launched,
            _meet(launched, launched.master, mine, tokens.now()),
            sidecar,
            tokens,
            gang,
        )
    while (signum := signal.sigwait(_SIGNALS)) == signal.SIGHUP:
        for files in (tls, tokens.tokens):
            if files is not None:
                files.look()
    sidecar.stop()
    gang.remove()
    # Engines may have threads that never end, and nothing here needs an orderly exit.
    sys.stdout.flush()
    os._exit(0 if signum == signal.SIGTERM else 128 + signum)


def _backend(world: MpiWorld | None, host: str, options: Options) -> Backend:
    if world is not None:
        from ..backends.mpi import MpiBackend

        return MpiBackend(world)
    if others.is_one(options.backend):
        return others.begin(options.backend, host, options.data_timeout)
    from ..backends.gloo import GlooBackend

    return GlooBackend(host)


def _meet(launched: Launched, master: tuple[str, int], mine: str, tokens: Tokens | None) -> Sequence[str]:
    """Exchanges data with the other ranks. Raises TokenError for data of somebody who has not their tokens."""
    from ..backends.rendezvous import exchange

    prefix = f"rankbridge/{launched.attempt}"

    def context(rank: int) -> str:
        return f"{prefix} {master} rank {rank} of {launched.world_size}"

    with progress("meeting the other ranks"):
        given = exchange(
            host=master[0],
            port=master[1],
            serve=launched.rank == 0 and not launched.agent_store,
            prefix=prefix,
            rank=launched.rank,
            world_size=launched.world_size,
            mine=tokens.seal(mine, context(launched.rank)) if tokens else mine,
            timeout=MEET_TIMEOUT_S,
        )
    if tokens is None:
        return given
    opened: list[str] = []
    for rank, one in enumerate(given):
        try:
            # The store lets everybody write who reaches it.
            opened.append(tokens.unseal(one, context(rank)))
        except ValueError as error:
            raise TokenError(
                f"what the store at {Address(*master)} has of rank {rank} is not believed: {error}. "
                "Do all ranks have the same --token-file?"
            ) from error
    return opened


def _form(launched: Launched, given: Sequence[str], sidecar: Sidecar, tokens: JobTokens, gang: _Gang) -> None:
    """As rank 0, form the first generation of all; `given`: pid and target of each."""
    if launched.rank != 0:
        return
    pids, targets = zip(*map(json.loads, given), strict=True)
    with progress("forming the first generation"):
        formed = sidecar.form(list(targets), MEET_TIMEOUT_S)
    gang.publish(formed.generation, list(pids), [[one] for one in targets], tokens.now())
    print(f"ready: {launched.world_size} ranks on {gang.backend}, generation {formed.generation}", flush=True)


class _Gang:
    """What rank 0 lets controllers know of the gang."""

    def __init__(self, options: Options) -> None:
        self.backend = options.backend
        self._name = options.name
        self._path: Path | None = options.endpoints_file
        self._published: endpoints.Published | None = None
        self._directory = ExitStack()

    def publish(
        self, generation: int, pids: list[int], targets: list[list[str]], tokens: Tokens | None
    ) -> None:
        """Writes the files. Raises OSError."""
        paths = [] if self._path is None else [self._path]
        # Where others could change it, `rankbridge ls` does not find the gang.
        with suppress(UntrustedDirectory, OSError):
            paths.append(self._directory.enter_context(runtime_dir()) / GANG)
        gang = endpoints.describe(self._name, self.backend, generation, pids, targets, tokens)
        self._published = endpoints.Published(gang, paths)

    def formed(self, generation: int) -> None:
        """A generation was formed."""
        if self._published is not None:
            self._published.formed(generation)

    def remove(self) -> None:
        """Removes what was written."""
        if self._published is not None:
            self._published.remove()
        self._directory.close()


def _host(launched: Launched, options: Options, default: str = "127.0.0.1") -> str:
    """Host name or address of this rank, as the other ranks reach it."""
    given: Address | None = options.advertise or options.listen
    if given is not None and not _is_everywhere(given.host):
        return given.host
    if launched.master is None:
        return default if given is None else socket.gethostname()
    return address_towards(*launched.master)


def _is_everywhere(host: str) -> bool:
    """Whether it is the address of all interfaces, at which nobody can be reached."""
    return host in ("0.0.0.0", "::")


def _advertised(advertise: Address | None, host: str, bound: str) -> str:
    if advertise is not None and advertise.port:
        return str(advertise)
    at = Address.parse(bound)
    return str(Address(host, at.port)) if advertise or _is_everywhere(at.host) else bound


COMMAND = Command(
    "rank",
    run,
    [
        Option(
            "--backend",
            type=BackendName(["gloo", "nccl", "mpi"]),
            default="gloo",
            help="what moves the data; nccl: between CUDA devices, of which the rank takes the one of its place on its "
            "host; mpi: the rank was started by mpirun; " + others.HELP,
        ),
        Option("--rank", type=int, metavar="N", help="rank in the gang (default: $RANK)"),
        Option("--size", type=int, metavar="N", help="ranks in the gang (default: $WORLD_SIZE)"),
        Option(
            "--listen",
            type=address,
            metavar="HOST:PORT",
            help="where gRPC is served; port 0 or none for any; an IPv6 address stands in brackets (default: the "
            "interface that reaches the other ranks, any port)",
        ),
        Option(
            "--advertise",
            type=address,
            metavar="HOST[:PORT]",
            help="how others reach this rank; an IPv6 address stands in brackets (default: what it listens on)",
        ),
        Option("--name", default="gang", help="name of the gang, for people"),
        Option(
            "--endpoints-file",
            type=FILE,
            metavar="FILE",
            help="rank 0 writes where the ranks serve to FILE, as JSON",
        ),
        LOAD,
        METRICS,
        OBSERVE,
        RECORD_CALLS,
        *limits_options(),
        *logs_options("info"),
        *tls_options(),
        *tokens_options(),
        Option(
            "--insecure-token",
            section=WHO,
            is_flag=True,
            help="show tokens in plain text beyond this host: whoever hears the network has them",
        ),
        Option(
            "--trusted-network",
            section=WHO,
            is_flag=True,
            help="serve on all networks of this host (--listen 0.0.0.0 or [::]), all of which you trust: the data "
            "between ranks is plain, and while a group is formed, whoever reaches the backend's port can take part",
        ),
    ],
    help="Be one rank. With MASTER_ADDR and MASTER_PORT in the environment, as torchrun sets them, all ranks meet "
    "there and rank 0 forms the first generation; without them the rank waits for a controller to form one "
    "(GangService.Form). On the backend mpi, ranks meet by MPI, which also says who is which rank.",
    notes=LOGS_NOTE | TLS_NOTE,
)
