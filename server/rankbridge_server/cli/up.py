"""`rankbridge up`: a gang on this host."""

from __future__ import annotations

import gc
import os
import select
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import FrameType

import click

from ..agent.agent import Agent, Interrupted, StartError
from ..agent.messages import Line
from ..agent.pmi import Pmi
from ..agent.ports import HeldPort, held_ports
from ..core.rank import Identity
from ..core.tokens import Tokens
from ..job.loading import LoadError, load
from ..sidecar import endpoints, traces
from ..sidecar.runtime_dir import GANG, UntrustedDirectory, runtime_dir
from ..sidecar.settings import RankSettings
from ..sidecar.tls import Tls
from ..sidecar.token_files import TokenError, write_new
from ..sidecar.traces import NoTraces
from . import others
from .beside import NotServed, served
from .exposition import METRICS
from .extras import NoServer, server_extra
from .logs import LOGS_NOTE, logs_of, logs_options
from .mpi import NoMpi, import_mpi
from .nccl import NoNccl, import_nccl
from .options import FILE, Command, Option, Options, address
from .others import BackendName
from .reports import JsonReport, Report, TextReport, WithEndpointsFiles
from .settings import (
    LOAD,
    OBSERVE,
    PRELOAD,
    RECORD_CALLS,
    check_record_calls,
    heartbeat_of,
    limits_of,
    limits_options,
)
from .tls import TLS_NOTE, TlsError, reread_tls, tls_options
from .tokens import given, tokens_options

START_TIMEOUT_S = 60.0


def run(options: Options) -> int:
    """Runs the command; returns the exit status."""
    report: Report = JsonReport() if options.report == "json" else TextReport()
    try:
        tls = reread_tls(options)
        tokens: Callable[[], Tokens] | None = given(options)
        if tokens is None and not options.no_tokens:
            new = Tokens.new()
            tokens = lambda: new  # noqa: E731
        _check(options)
        traces.check()
    except (NoTraces, TlsError, TokenError, ValueError) as error:
        report.failed(str(error))
        return 2

    def exit_at_once(signum: int, frame: FrameType | None) -> None:
        if options.report == "json":
            report.ended(f"ended by {signal.Signals(signum).name}")
        os._exit(128 + signum)

    # First of all, so that forked ranks have every module from the start. An interrupt finds nothing to clean up yet,
    # and must not be left to Python: extensions that are being imported swallow its KeyboardInterrupt.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, exit_at_once)
    report.starting(options.size)
    try:
        what = "importing gRPC" if options.backend == "fake" else "importing torch and gRPC"
        with report.progress(what), server_extra():
            _import_for_ranks(options.backend, options.preload)
        with runtime_dir() as directory, _ports(options) as ports:
            reason = _up(options, report, tls, tokens, directory, ports)
    except (LoadError, NoMpi, NoNccl, NoServer, NotServed, StartError, UntrustedDirectory) as error:
        report.failed(str(error))
        return 1
    except Interrupted as interrupted:
        report.ended(f"ended by {interrupted}")
        return 0 if interrupted.signum == signal.SIGTERM else 128 + interrupted.signum
    except Exception as error:
        report.failed(f"{type(error).__name__}: {error}")
        raise
    report.ended(reason)
    return 1 if "exited" in reason else 0


def _check(options: Options) -> None:
    """Raises ValueError for settings that are not possible."""
    if options.size < 1:
        raise ValueError("--size must be 1 or more")
    if options.on_rank_exit == "replace" and options.backend == "mpi":
        raise ValueError(
            "--on-rank-exit replace cannot be had on the backend mpi: MPI takes in no process that was not there when "
            "the job began"
        )
    if options.exit_on_stdin_close and not _can_close(0):
        raise ValueError(
            "--exit-on-stdin-close needs a standard input that can be closed, as a pipe: this is a file or /dev/null"
        )
    check_record_calls(options)
    limits_of(options)


def _can_close(fd: int) -> bool:
    """Whether standard input can signal its end; files cannot."""
    with select.epoll() as poll:
        try:
            poll.register(fd, select.EPOLLIN)
        except OSError:
            return False
    return True


def _replaces(options: Options) -> bool:
    # Ranks on the fake backend share one process: no survivor is left for a replacement.
    return options.on_rank_exit != "leave" and options.backend not in ("fake", "mpi")


def _ports(options: Options) -> AbstractContextManager[Sequence[HeldPort]]:
    """The TCP ports of ranks that others may replace: one for each, else none."""
    return held_ports(options.size if _replaces(options) else 0)


def _up(
    options: Options,
    report: Report,
    tls: Callable[[], Tls] | None,
    tokens: Callable[[], Tokens] | None,
    directory: Path,
    ports: Sequence[HeldPort],
) -> str:
    """Start the gang, and stay; returns why it ended. `ports`: as of `_ports`. Raises StartError or Interrupted."""
    limits = limits_of(options)

    def settings(rank: int) -> RankSettings:
        return RankSettings(
            listen=(f"unix:{directory}/rank-{rank}", str(ports[rank].address) if ports else "127.0.0.1:0"),
            links=f"unix:{directory}/links-{rank}",
            tls=tls,
            tokens=tokens,
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

    fake = options.backend == "fake"
    pmi = Pmi(options.size) if options.backend == "mpi" else None

    def run_rank(rank: int, line: Line) -> None:
        from . import rank_process

        # What the user's code forks must not hold them when the agent is gone.
        for port in ports:
            port.close()
        if fake:
            rank_process.run_fake_gang(options.size, settings, line)
            return
        identity = Identity(
            rank, options.size, local_rank=rank, fs_local_rank=rank, local_world_size=options.size
        )
        if pmi is not None:
            pmi.enter(rank)
            rank_process.run_mpi_rank(identity, settings(rank), line)
        elif options.backend == "nccl":
            rank_process.run_nccl_rank(identity, settings(rank), options.max_bytes, line)
        elif others.is_one(options.backend):
            rank_process.run_others_rank(identity, settings(rank), options.backend, line)
        else:
            rank_process.run_gloo_rank(identity, settings(rank), line)

    agent = Agent(
        1 if fake else options.size,
        run_rank,
        replace=_replaces(options),
        watch_stdin=options.exit_on_stdin_close,
        helper=pmi,
    )
    with agent:
        with report.progress(f"starting {options.size} ranks"):
            started = agent.start(START_TIMEOUT_S)
        pids, targets = started.pids, started.endpoints
        if fake:
            # One process serves all ranks; it has sent the endpoints of all of them, two for each.
            targets = [targets[0][2 * rank : 2 * rank + 2] for rank in range(options.size)]
            pids = pids * options.size
        shown = tokens and tokens()
        gang = endpoints.describe(options.name, options.backend, started.generation, pids, targets, shown)
        if shown:
            # For shells: who has the directory has the token.
            gang["token_file"] = str(directory / "token")
            write_new(directory / "token", shown.own + "\n")

        paths = [directory / GANG, *([options.endpoints_file] if options.endpoints_file else [])]
        try:
            published = endpoints.Published(gang, paths)
        except OSError as error:
            raise StartError(f"the endpoints file cannot be written: {error}") from error

        def show_tokens() -> None:
            nonlocal shown
            if tokens is None or (current := tokens()) is shown:
                return
            shown = current
            (directory / "token").unlink()
            write_new(directory / "token", shown.own + "\n")
            published.show(shown)

        with ExitStack() as stack:
            stack.callback(published.remove)
            for what in ("metrics", "page"):
                if (at := getattr(options, what)) is not None:
                    published.serves(what, stack.enter_context(served(what, at, directory / GANG)))
            report.ready(gang)
            return agent.watch(
                WithEndpointsFiles(report, published), show_tokens if options.token_file else None
            )


def _import_for_ranks(backend: str, preload: Sequence[str]) -> None:
    from . import rank_process  # noqa: F401

    if backend == "gloo":
        from ..backends import gloo  # noqa: F401
    elif backend == "nccl":
        import_nccl()
    elif backend == "mpi":
        import_mpi()
    elif others.is_one(backend):
        others.import_for_ranks()
    else:
        from ..backends import fake  # noqa: F401
    load(preload)
    # The ranks' garbage collectors skip the objects of this process: visiting them would copy their pages.
    gc.collect()
    gc.freeze()


COMMAND = Command(
    "up",
    run,
    [
        Option("--size", type=int, default=4, metavar="N", help="ranks to start"),
        Option(
            "--backend",
            type=BackendName(["gloo", "nccl", "mpi", "fake"]),
            default="gloo",
            help="what moves the data; nccl: between CUDA devices, one for each rank; mpi: MPICH, by mpi4py (the extra "
            "rankbridge[mpi]); fake: all ranks in one process, for tests; " + others.HELP,
        ),
        Option("--name", default="gang", help="name of the gang, for people"),
        Option(
            "--endpoints-file",
            type=FILE,
            metavar="FILE",
            help="write where the ranks serve to FILE, as JSON; `rankbridge ls` finds the gang without it, too",
        ),
        Option(
            "--on-rank-exit",
            type=click.Choice(["replace", "leave"]),
            help="replace: a new process serves at the endpoints of a rank that ended, or that was stopped when others "
            "lost it, and waits to be formed into a generation; leave: its place stays empty, the others can form a "
            "smaller gang (default: replace; leave on the backend mpi, which cannot take in new processes)",
        ),
        Option(
            "--exit-on-stdin-close",
            is_flag=True,
            help="end when standard input is closed: for programs that start a gang and may die",
        ),
        Option(
            "--report",
            type=click.Choice(["text", "json"]),
            default="text",
            help="json: for programs, report events as one JSON object a line on standard output, and nothing else "
            "there; docs/up.md has the events",
        ),
        LOAD,
        PRELOAD,
        METRICS,
        OBSERVE,
        RECORD_CALLS,
        Option(
            "--page",
            type=address,
            metavar="HOST:PORT",
            help="serve a live page of the gang there, to who has the key in the URL that is printed; port 0 for any",
        ),
        *limits_options(),
        *logs_options("warning"),
        *tls_options(),
        *tokens_options(),
    ],
    help="Start ranks on this host, form their first generation, print where they serve, and stay. Every rank ends "
    "with this process, however it ends.",
    notes=LOGS_NOTE | TLS_NOTE,
)
