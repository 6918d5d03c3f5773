"""`rankbridge doctor`: why a job hangs."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import click
from click.core import ParameterSource

from ..core.printable import lines
from ..doctor.evidence import Evidence
from ..doctor.verdict import Kind, Verdict
from .gang_verdicts import is_gang, verdict_in, verdict_on
from .gangs import NoGang, gang_options, running
from .observed_folder import is_observed, verdict_on_folder
from .options import FILE, JSON, Command, Option, Options

HEALTHY, FOUND, BAD, UNSURE = 0, 1, 2, 3


def _run(options: Options) -> int:
    from rankbridge import RankBridgeError

    from ..doctor.bundle import BadBundle
    from ..job.outside.processes import NoJob

    began = time.monotonic()
    try:
        verdict = _verdict(options)
    except (NoJob, NoGang, RankBridgeError, BadBundle, OSError) as error:
        print(f"rankbridge doctor: {lines(str(error))}", file=sys.stderr)
        return BAD
    seconds = time.monotonic() - began
    if options.as_json:
        print(json.dumps({**asdict(verdict), "seconds": round(seconds, 3)}))
    else:
        from ..doctor.page import page

        print(page(verdict))
    return status(verdict)


def status(verdict: Verdict) -> int:
    """The exit status of a verdict."""
    return {Kind.HEALTHY: HEALTHY, Kind.UNKNOWN: UNSURE}.get(verdict.kind, FOUND)


def _verdict(options: Options) -> Verdict:
    """Of a bundle; of a gang, if one is named or nothing else is there; otherwise of a job."""
    from ..doctor.bundle import dump, load
    from ..doctor.judge import judge
    from ..job.outside.processes import NoJob
    from ..service.gang_verdict import is_bundle

    if options.torchrun:
        _check_alone(options)
    elif options.read is None and is_observed(options):
        return verdict_on_folder(Path(options.job[0]), options)
    elif options.read is None and is_gang(options):
        return verdict_on(options)
    try:
        if options.read is None:
            evidence = _collected(options)
        elif is_bundle(text := _text(options.read)):
            return verdict_in(text, options)
        else:
            evidence = load(text)
    except NoJob:
        if options.job or options.torchrun or not running():
            raise
        return verdict_on(options)
    if options.bundle is not None:
        options.bundle.write_text(dump(evidence) + "\n")
    return judge(evidence, options.patience)


def _check_alone(options: Options) -> None:
    # A gang that the environment names is not asked for.
    source = click.get_current_context().get_parameter_source("endpoints")
    if options.job or options.read or options.gang or source is ParameterSource.COMMANDLINE:
        raise click.UsageError("--torchrun finds the job by itself: it takes no other name of one")


def _collected(options: Options) -> Evidence:
    from ..job.outside import ras
    from ..job.outside.collect import collect
    from ..job.outside.processes import NoJob, find

    paths = [Path(it) for it in options.job if not it.isdecimal()]
    if not paths:
        pids = [int(it) for it in options.job]
        return collect(find(pids, by_torchrun=options.torchrun), inject=options.inject)
    if len(paths) == len(options.job) and all(it.is_file() for it in paths):
        return ras.collect(paths)
    if len(options.job) > 1 or not paths[0].is_dir():
        wrong = next(it for it in paths if not it.is_file())
        raise NoJob(f"{wrong} is neither a process, nor the only folder, nor a file among files")
    return evidence_of(paths[0], inject=options.inject)


def evidence_of(folder: Path, *, inject: bool) -> Evidence:
    """Of records that ranks still write, of those that they have left, or of dumps of torch's flight recorder.

    Raises NoJob.
    """
    from ..job.outside import afterwards, dumps
    from ..job.outside.collect import collect
    from ..job.outside.processes import NoJob, find

    if not afterwards.has_records(folder):
        return dumps.collect(folder)
    if running := afterwards.running(folder):
        try:
            return collect(find(running), inject=inject)
        except NoJob:
            # They may have ended meanwhile.
            if afterwards.running(folder):
                raise
    return afterwards.collect(folder)


def _text(path: Path) -> str:
    from ..doctor.bundle import BadBundle

    try:
        return path.read_text()
    except UnicodeDecodeError:
        raise BadBundle(f"{path} is no bundle") from None


COMMAND = Command(
    "doctor",
    _run,
    [
        click.Argument(["job"], nargs=-1, metavar="[PID... | FOLDER | FILE...]"),
        Option(
            "--torchrun",
            is_flag=True,
            help="the only job that torchrun has started on this host, whatever else runs there",
        ),
        Option(
            "--read", type=FILE, metavar="FILE", help="judge what --bundle has written, here or elsewhere"
        ),
        Option("--bundle", type=FILE, metavar="FILE", help="write all evidence into one file"),
        Option(
            "--patience",
            type=click.FloatRange(min=0.1),
            default=2.0,
            metavar="SECONDS",
            help="what ranks may wait for each other without being called stuck",
        ),
        Option(
            "--inject/--no-inject",
            default=True,
            help="ask torch inside the ranks for their collectives: a blocked thread of each runs some lines",
        ),
        JSON,
        *gang_options(3.0),
    ],
    help="Say which rank of a torch.distributed job keeps the others waiting, in which call, and why. The job needs no "
    "preparation. PID: a process of it, a rank or torchrun, or a rank of a gang of `rankbridge up`; without one, the "
    "only job of this host, else its only gang. FOLDER: that of `rankbridge watch`, also after the job's death; of "
    "--observe, also after the death of ranks; one with dumps of torch's flight recorder. FILE: what `ncclras -f json` "
    "has printed, better twice, seconds apart. A gang may be on several hosts: its ranks are asked. Nothing is stopped "
    "or changed. Exit status: 0 healthy, 1 a verdict, 2 no job or a bad bundle, 3 not certain.",
)
