"""Evidence of runs, kept for the tests of verdicts.

`python -m tests.diagnose NAME... --bundles tests/unit/doctor/evidence` writes it.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.diagnose.faults import PROGRAMS, Program
from tests.diagnose.variants import Variant

from rankbridge_server.doctor.bundle import load
from rankbridge_server.doctor.evidence import Evidence

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "tests" / "unit" / "doctor" / "evidence"


def name(program: Program, variant: Variant, seed: int) -> str:
    """Of the file of a run."""
    return f"{program.name}-{variant}-{seed}.json"


def anonymous(bundle: str) -> str:
    """A bundle without the names of this machine and its folders."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for known, shown in (
        (str(ROOT / ".venv"), "/venv"),
        (str(ROOT), "/job"),
        (f"{sys.base_prefix}/lib/python{version}/", f"/usr/lib/python{version}/"),
    ):
        bundle = bundle.replace(known, shown)
    bundle = bundle.replace(f'"host":"{socket.gethostname()}"', '"host":"host"')
    return re.sub(r"/tmp/[\w.-]+", "/tmp/folder", bundle).replace(os.path.expanduser("~"), "/home")


def recorded() -> Iterator[tuple[Program, Variant, int, Evidence]]:
    """What is kept."""
    for path in sorted(EVIDENCE.glob("*.json")):
        program, variant, seed = path.stem.rsplit("-", 2)
        yield PROGRAMS[program], Variant(variant), int(seed), load(path.read_text())
