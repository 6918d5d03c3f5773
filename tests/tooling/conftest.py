"""The project as it is built and installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.tooling.installed import environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the project's sdist, and with the wheel that is built of it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], cwd=ROOT, check=True
    )
    (sdist,) = folder.glob("rankbridge-*.tar.gz")
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, sdist], check=True, timeout=120)
    return folder


@pytest.fixture
def wheel(dist: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = dist.glob("rankbridge-*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


@pytest.fixture(scope="session")
def server(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Commands of an environment that also has what the extra `server` needs, from this one."""
    folder = tmp_path_factory.mktemp("server")
    commands = environment(folder, dist, "--no-deps")
    (site,) = (folder / "lib").glob("python*/site-packages")
    # An editable install that is there stays unknown: no .pth of that folder is read.
    (site / "dependencies.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    return commands
