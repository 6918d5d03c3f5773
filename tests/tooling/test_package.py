"""What a built wheel holds."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The project's wheel, built with the hatchling of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True, timeout=120)
    (path,) = folder.glob("rankbridge-*.whl")
    return zipfile.ZipFile(path)


def test_a_wheel_holds_both_packages_with_types_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {
        "rankbridge",
        "rankbridge_server",
    }
    assert {"rankbridge/py.typed", "rankbridge_server/py.typed", "rankbridge/v1/ref_pb2.pyi"} <= set(names)


def test_a_wheel_needs_torch_for_the_server_only(wheel: zipfile.ZipFile) -> None:
    (path,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    needs = [
        line for line in wheel.read(path).decode().splitlines() if line.startswith("Requires-Dist: torch")
    ]
    assert needs
    assert all("extra == 'server'" in line for line in needs)
