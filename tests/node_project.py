"""Node programs of the tests, with their packages at the versions that their lock file pins."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_CACHE = _ROOT / ".cache" / "node"
_INSTALL_SECONDS = 300.0


def install(folder: Path) -> Path:
    """A copy of the Node project with its packages installed, kept between test runs.

    Skips the test where Node is not installed; fails where Node is there and npm is not, or cannot install.
    """
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    sources = sorted(path for path in folder.iterdir() if path.is_file())
    content = b"\0".join(path.name.encode() + b"\0" + path.read_bytes() for path in sources)
    project = _CACHE / f"{folder.name}-{hashlib.sha256(content).hexdigest()[:16]}"
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not project.exists():
            _install_into(project, sources)
    return project


def _install_into(project: Path, sources: list[Path]) -> None:
    unfinished = project.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for path in sources:
        shutil.copy(path, unfinished)
    done = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=unfinished,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
    )
    assert done.returncode == 0, f"npm ci failed in {project.name}: {done.stderr}"
    unfinished.rename(project)


def run(project: Path, program: str, *arguments: str, seconds: float = 120.0) -> str:
    """Runs a program of an installed project and gives what it printed. Fails unless it exits with 0."""
    done = subprocess.run(
        ["node", program, *arguments], cwd=project, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{program} exited with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
