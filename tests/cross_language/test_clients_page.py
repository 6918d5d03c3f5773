"""docs/clients.md: its programs, in Ruby and in Node, do what it says, near and far."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import node_project
from tests.conftest import PATIENT
from tests.support.gangs import RunningGang, up

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "clients.md").read_text()
SECONDS = 120


def block(language: str) -> str:
    """The page's only block in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def printed() -> str:
    return block("text")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    with up(tmp_path_factory.mktemp("clients"), 2, "gloo", PATIENT) as gang:
        yield gang


@pytest.fixture(scope="module", params=["near", "far"])
def endpoints(
    request: pytest.FixtureRequest, running: RunningGang, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The endpoints file of a gang: with its unix sockets, and with its TCP ports alone."""
    if request.param == "near":
        return str(running.endpoints_file)
    file = tmp_path_factory.mktemp("far") / "endpoints.json"
    file.write_text(json.dumps(running.tcp))
    return str(file)


@pytest.fixture(scope="module")
def ruby(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's Ruby program, and what the page's command has generated for it."""
    if shutil.which("ruby") is None or shutil.which("grpc_tools_ruby_protoc") is None:
        pytest.skip("Ruby, its gRPC or the generator is not installed")
    folder = tmp_path_factory.mktemp("ruby")
    (folder / "proto").symlink_to(ROOT / "proto")
    (folder / "lib").mkdir()
    subprocess.run(["sh", "-ec", block("sh")], cwd=folder, check=True, timeout=SECONDS)
    (folder / "first.rb").write_text(block("ruby"))
    return folder


def test_the_ruby_program_prints_what_the_page_says(ruby: Path, endpoints: str) -> None:
    done = subprocess.run(
        ["ruby", "-Ilib", "first.rb", endpoints], cwd=ruby, capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout) == (0, printed()), done.stderr


def test_an_error_is_told_with_whether_it_may_have_happened(ruby: Path, endpoints: str) -> None:
    program = ruby / "wrong.rb"
    program.write_text(block("ruby").replace("ref_id: it.id", 'ref_id: "none"'))
    done = subprocess.run(
        ["ruby", "-Ilib", program.name, endpoints], cwd=ruby, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 1
    assert "ERROR_CODE_UNKNOWN_REF" in done.stderr
    assert "it may have happened" not in done.stderr


def test_the_node_program_prints_what_the_page_says(endpoints: str, tmp_path: Path) -> None:
    project = node_project.install(ROOT / "tests" / "cross_language" / "node")
    # Node looks for packages beside the program.
    (tmp_path / "node_modules").symlink_to(project / "node_modules")
    (tmp_path / "first.mjs").write_text(block("js"))
    output = node_project.run(tmp_path, "first.mjs", str(ROOT / "proto"), endpoints)
    assert output == printed().replace(".0, ", ",").replace(".0]", "]")
