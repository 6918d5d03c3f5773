"""Environments into which the project's wheel is installed, and nothing of its folder."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path


def environment(folder: Path, dist: Path, *arguments: str) -> Path:
    """Makes a virtual environment into which the wheel is installed; gives the folder of its commands."""
    venv.create(folder, with_pip=False)
    (wheel,) = dist.glob("rankbridge-*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "-qq"]
    subprocess.run([*pip, *arguments, wheel], check=True, timeout=300)
    return folder / "bin"
