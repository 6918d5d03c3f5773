"""rankbridge from its Elixir client, whose gang owns its ranks: `elixir_client/scripts/bench.exs` makes the calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from bench.gang import ARGUMENTS, COMMAND
from bench.subject import NotThere, Timed, Ways, averaged, serve
from bench.ways import NAMES, rankbridge_version

CLIENT = Path(__file__).resolve().parents[2] / "elixir_client"
_COMPILE_S = 300.0


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Compiles the client, and starts the program."""
    if shutil.which("mix") is None:
        raise NotThere("there is no `mix`: `make setup` installs Elixir")
    told = {"ELIXIR_ERL_OPTIONS": "+fnu", "LC_ALL": "C.UTF-8", "RANKBRIDGE_COMMAND": str(COMMAND)}
    environment = {"MIX_ENV": "prod", **os.environ, **told}
    compiled = subprocess.run(
        ["mix", "compile"],
        cwd=CLIENT,
        env=environment,
        # What this process is asked is not for Mix.
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_COMPILE_S,
    )
    if compiled.returncode:
        raise NotThere(f"the Elixir client does not compile: {compiled.stdout}{compiled.stderr}")
    with subprocess.Popen(
        ["mix", "run", "--no-compile", "scripts/bench.exs", str(size), *ARGUMENTS],
        cwd=CLIENT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        try:
            yield _ways(process.stdin, process.stdout)
        finally:
            process.stdin.close()


def _ways(told: IO[str], heard: IO[str]) -> Ways:
    timed: dict[str, dict[str, Timed]] = {}
    for line in heard:
        match line.split():
            case ["has", way, operation]:
                run = partial(_run, told, heard, f"{way} {operation}")
                looped = operation.startswith("loop_")
                timed.setdefault(way, {})[operation] = averaged(run) if looped else run
            case ["ready"]:
                break
    else:
        raise NotThere("the Elixir program did not begin")
    missing = {way: "the Elixir client has no such way yet" for way in NAMES if way not in timed}
    return Ways({"rankbridge": rankbridge_version()}, timed, missing)


def _run(told: IO[str], heard: IO[str], what: str, calls: int) -> list[float]:
    print(what, calls, file=told, flush=True)
    answer = heard.readline()
    form, _, rest = answer.partition(" ")
    if form != "took":
        raise RuntimeError(rest.strip() or "the Elixir program has ended")
    return [int(nanoseconds) / 1e9 for nanoseconds in rest.split()]


if __name__ == "__main__":
    serve(started)
