"""`python -m rankbridge_server.attach SCRIPT ARGUMENT...`: runs a script of a job with a sidecar in its process."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .job.attaching import attach


class _Callable(ModuleType):
    """`rankbridge_server.attach(...)` works also when somebody has imported this module of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        return attach(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable


def main(arguments: list[str]) -> dict[str, Any]:
    """Attaches, and runs the script as Python does. Returns its variables."""
    parser = argparse.ArgumentParser(
        prog="python -m rankbridge_server.attach",
        description="Run a script of a torch.distributed job, unchanged, with a sidecar beside it: controllers can "
        "connect once all ranks have called init_process_group. For example: torchrun --nproc-per-node 4 -m "
        "rankbridge_server.attach --endpoints-file endpoints.json train.py --steps 100",
    )
    parser.add_argument(
        "--endpoints-file",
        metavar="FILE",
        help="rank 0 writes where the ranks serve (default: $RANKBRIDGE_ENDPOINTS_FILE)",
    )
    parser.add_argument("--name", default="job", help="name of the gang, for people")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="the gang's tokens (default: $RANKBRIDGE_TOKEN_FILE, else new ones)",
    )
    parser.add_argument(
        "--observe",
        metavar="FOLDER",
        help="the ranks of this host serve those who may only observe in FOLDER as well: doctor, page and top, with "
        "--endpoints FOLDER/gang.json, also while a rank is stuck; their records stay there",
    )
    parser.add_argument(
        "--record-calls",
        action="store_true",
        help="keep in each rank's record also what the script itself calls of torch.distributed",
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    attach(
        options.endpoints_file,
        name=options.name,
        token_file=options.token_file,
        observe=options.observe,
        record_calls=options.record_calls,
    )
    sys.argv = [options.script, *options.arguments]
    if options.is_module:
        return runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    sys.path[0] = str(Path(options.script).resolve().parent)
    return runpy.run_path(options.script, run_name="__main__")


if __name__ == "__main__":
    # What the script has made ends when the interpreter does, as if it had been run by itself.
    SCRIPT = main(sys.argv[1:])
