"""`rankbridge test`: scenarios on gangs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .options import FILE, Command, Option, Options
from .others import BackendName

_HELP = """Run scenarios: files in TOML, or JSON, that say what is done on the ranks of a gang and what must come of it.

\b
  rankbridge test --example scenarios
  rankbridge test scenarios/*.toml
  rankbridge test --conformance --backend c10d:mine.py

Starts the gangs that they need, and ends them. Prints TAP. Ends with 0 if all is as expected, 1 if something failed, 2
if a file cannot be run (then nothing has run), 3 if a gang did not start. docs/harness.md has the words,
docs/backends.md the report on a backend.
"""


def _run(options: Options) -> int:
    if options.example is not None:
        return _write_examples(options.example)
    if options.conformance:
        return _conformance(options)
    for option, given in (("--backend", options.backend), ("--only", options.only or None)):
        if given is not None:
            raise click.UsageError(f"{option} belongs to --conformance; scenarios name their own backend")
    if not options.files:
        raise click.UsageError(
            "name a file with a scenario; --example FOLDER writes some, --conformance has its own"
        )
    if options.report == "text":
        raise click.UsageError("--report text belongs to --conformance")
    from rankbridge.harness import command

    return command.run_files(
        options.files,
        report=options.report or "tap",
        junit_file=options.junit,
        known_failing=options.known_failing,
        record_file=options.record,
        shrunk_file=options.shrink,
        still=_still(options.still),
    )


def _still(text: str) -> tuple[int, int]:
    """Reads K/N. Raises click.BadParameter."""
    times, _, runs = text.partition("/")
    if times.isdecimal() and runs.isdecimal() and 1 <= int(times) <= int(runs) <= 1000:
        return int(times), int(runs)
    raise click.BadParameter(f"--still is K/N, in K of N runs, as 2/3; not {text!r}")


def _conformance(options: Options) -> int:
    if options.files or options.known_failing or options.record or options.shrink:
        raise click.UsageError(
            "--conformance has cases of its own: it takes no files, nor --known-failing, --record and --shrink"
        )
    from rankbridge.harness.conformance.command import report_on

    return report_on(
        options.backend or "gloo",
        patterns=options.only or ("*",),
        report=options.report or "text",
        junit_file=options.junit,
    )


def _write_examples(folder: Path) -> int:
    from rankbridge.harness.examples import write_examples

    try:
        for path in write_examples(folder):
            print(path)
    except OSError as error:
        print(f"rankbridge test: {error}", file=sys.stderr)
        return 2
    return 0


COMMAND = Command(
    "test",
    _run,
    [
        click.Argument(["files"], nargs=-1, metavar="[FILE]..."),
        Option(
            "--report",
            type=click.Choice(["tap", "json", "text"]),
            help="tap: TAP 14; json: one JSON object a line, for programs; text: tables, of --conformance (default: "
            "tap, with --conformance text)",
        ),
        Option("--junit", type=FILE, metavar="FILE", help="write the results as JUnit's XML to FILE, too"),
        Option(
            "--known-failing",
            metavar="FILE",
            help="cases that are known to fail, with reasons: they do not count, unless one of them passes",
        ),
        Option(
            "--record",
            type=FILE,
            metavar="FILE",
            help="write the first run that fails into FILE, as a scenario of its own, with whatever was drawn",
        ),
        Option(
            "--shrink",
            type=FILE,
            metavar="FILE",
            help="make it smaller, and write the smallest that fails the same way into FILE",
        ),
        Option(
            "--still",
            default="2/3",
            metavar="K/N",
            help="of --shrink: keep what fails in K of N runs (default: 2/3); 1/1 is fastest",
        ),
        Option(
            "--conformance",
            is_flag=True,
            help="instead of files, run the cases that come with rankbridge on a backend, and print what each "
            "operation does with each dtype",
        ),
        Option(
            "--backend",
            type=BackendName(["gloo", "nccl", "mpi"]),
            help="which backend, with --conformance; c10d:MODULE or program:COMMAND: of your own (default: gloo)",
        ),
        Option(
            "--only",
            multiple=True,
            metavar="PATTERN",
            help="cases whose names match, with --conformance: '*float32*'; may be given more than once",
        ),
        Option(
            "--example", type=FILE, metavar="FOLDER", help="write five scenarios into FOLDER, and run none"
        ),
    ],
    help=_HELP,
)
