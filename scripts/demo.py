"""`make demo`: a gang of four ranks on Gloo, driven from Elixir, then from Python.

Exits with 0 only if both programs found every value right and no process is left. A signal at any moment
ends every process that was started here, then this one.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from offspring import Child, Interrupted, Offspring

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
ELIXIR = ROOT / "elixir_client"

START_SECONDS = 120.0
PROGRAM_SECONDS = 300.0
STOP_SECONDS = 20.0


class DemoFailed(Exception):
    """Something of the demo did not end as it should."""


def main() -> int:
    """Runs the demo and gives the exit status."""
    with Offspring() as offspring:
        try:
            demo(offspring)
        except DemoFailed as error:
            print(f"demo: FAILED: {error}", *offspring.said(), sep="\n", flush=True)
            return 1
        except Interrupted as stop:
            print(f"demo: stopped by {stop.signal.name}", flush=True)
            offspring.die_by(stop.signal)
    return 0


def demo(offspring: Offspring) -> None:
    """Starts the gang, runs both programs against it, stops it. Raises DemoFailed and Interrupted."""
    with tempfile.TemporaryDirectory(prefix="rankbridge-demo-") as folder:
        endpoints = Path(folder) / "endpoints.json"
        say("compiling the Elixir client")
        mix(offspring, "compile")
        gang = start_gang(offspring, endpoints)
        print("\n== Elixir ==", flush=True)
        mix(offspring, "run", "--no-compile", "demo/demo.exs", str(endpoints))
        print("\n== Python ==", flush=True)
        run(offspring, [str(BIN / "python"), "-m", "rankbridge.demo", str(endpoints)], ROOT, {})
        print(flush=True)
        stop_gang(offspring, gang)


def start_gang(offspring: Offspring, endpoints: Path) -> Child:
    """Starts four ranks and waits until they are formed and have written their endpoints."""
    say("starting a gang of 4 ranks on Gloo")
    started = time.monotonic()
    command = [str(BIN / "rankbridge"), "up", "--size", "4", "--exit-on-stdin-close"]
    gang = offspring.start([*command, "--endpoints-file", str(endpoints)], attended=True)
    if not gang.read_until(endpoints.exists, START_SECONDS):
        raise DemoFailed(f"the gang ended, or was not ready within {START_SECONDS:.0f} s")
    say(f"the gang is ready after {time.monotonic() - started:.2f} s")
    return gang


def stop_gang(offspring: Offspring, gang: Child) -> None:
    """Tells the gang's own process to end, and waits until every process of it has."""
    started = time.monotonic()
    gang.terminate()
    status = gang.wait(STOP_SECONDS)
    if status is None or not offspring.wait(lambda: not offspring.living(), STOP_SECONDS):
        left = ", ".join(offspring.living())
        raise DemoFailed(f"still running {STOP_SECONDS:.0f} s after the gang was told to stop: {left}")
    if status != 0:
        raise DemoFailed(f"the gang ended with status {status}")
    say(f"the gang stopped in {time.monotonic() - started:.2f} s; no process is left")


def mix(offspring: Offspring, *arguments: str) -> None:
    """Runs Mix on the Elixir client. The environment `prod` needs no development tools of it."""
    environment = {"MIX_ENV": "prod", "ELIXIR_ERL_OPTIONS": "+fnu", "LC_ALL": "C.UTF-8"}
    run(offspring, ["mix", *arguments], ELIXIR, environment)


def run(offspring: Offspring, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Runs a program to its end. Raises DemoFailed unless it exits with 0 in time."""
    status = offspring.start(command, folder=folder, environment=environment).wait(PROGRAM_SECONDS)
    if status is None:
        raise DemoFailed(f"{command} was not done within {PROGRAM_SECONDS:.0f} s")
    if status != 0:
        raise DemoFailed(f"{command} ended with status {status}")


def say(text: str) -> None:
    """One line of progress."""
    print(f"demo: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
