"""What a built wheel and sdist hold, and that they work where they are installed."""

import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tooling.installed import environment

ROOT = Path(__file__).resolve().parents[2]
PROTOS = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto"))

SUM = """
import sys
import rankbridge

assert rankbridge.__file__.startswith(sys.prefix), rankbridge.__file__
with rankbridge.connect(sys.argv[1]) as gang:
    refs = gang.put([[1.0], [2.0]])
    print([gang[ref.rank].get(ref).tolist() for ref in gang.all_reduce(refs)])
"""


def test_a_wheel_holds_both_packages_with_types_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {
        "pytest_rankbridge",
        "rankbridge",
        "rankbridge_server",
    }
    assert {"rankbridge/py.typed", "rankbridge_server/py.typed", "rankbridge/v1/ref_pb2.pyi"} <= set(names)
    assert {f"rankbridge_server/cli/page/static/page.{it}" for it in ("css", "html", "js")} <= set(names)


def test_the_protos_and_the_licence_are_in_wheel_and_sdist(dist: Path, wheel: zipfile.ZipFile) -> None:
    in_wheel = wheel.namelist()
    assert [name for name in PROTOS if f"rankbridge/proto/{name}" not in in_wheel] == []
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in in_wheel)
    (path,) = dist.glob("rankbridge-*.tar.gz")
    with tarfile.open(path) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", *(f"proto/{name}" for name in PROTOS)} <= in_sdist


def test_a_wheel_needs_torch_for_the_server_only(wheel: zipfile.ZipFile) -> None:
    (path,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = wheel.read(path).decode().splitlines()
    needs = [line for line in metadata if line.startswith("Requires-Dist: torch")]
    assert needs
    assert all("extra == 'server'" in line for line in needs)
    assert "License-Expression: Apache-2.0" in metadata
    assert any(line.startswith("Classifier: ") for line in metadata)
    assert sum(line.startswith("Project-URL: ") for line in metadata) == 4
    page = wheel.read(path).decode().partition("\n\n")[2]
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert len(links) > 30
    assert [link for link in links if not link.startswith("https://")] == []


@pytest.fixture(scope="module")
def endpoints(server: Path) -> Iterator[Path]:
    """The endpoints file of a gang that the installed server runs."""
    file = server.parent / "endpoints.json"
    command = [str(server / "rankbridge"), "up", "--size", "2", "--endpoints-file", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as up:
        try:
            assert up.stdout is not None
            assert any(line.startswith("ready") for line in up.stdout), "the gang has ended"
            yield file
        finally:
            up.terminate()


@pytest.mark.sampled
def test_an_installed_server_runs_a_gang(server: Path, endpoints: Path) -> None:
    assert sum_of(server, endpoints) == "[[3.0], [3.0]]\n"


@pytest.mark.sampled
def test_the_client_alone_is_installed_without_torch(dist: Path, endpoints: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path / "client", dist, "--constraint", str(ROOT / "constraints.txt"))
    assert sum_of(commands, endpoints) == "[[3.0], [3.0]]\n"
    up = subprocess.run([commands / "rankbridge", "up"], capture_output=True, text=True, timeout=60)
    assert (up.returncode, up.stderr.count("Traceback")) == (1, 0)
    assert "which is not installed: pip install 'rankbridge[server]'" in up.stderr
    # What only speaks to ranks needs nothing more.
    status = [str(commands / "rankbridge"), "status", "--endpoints", str(endpoints)]
    assert subprocess.run(status, capture_output=True, text=True, timeout=60).returncode == 0


def sum_of(commands: Path, endpoints: Path) -> str:
    command = [str(commands / "python"), "-c", SUM, str(endpoints)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
