"""The first steps as the pages have them, with what is installed and in a folder where nothing of the source is.

Elixir's are those of elixir_client/test: package_test.exs (the package in a project of its own) and guides_test.exs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import node_project

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
STAYING = {
    "events": (["--all"], r" formed: generation 1 of 2 ranks"),
    "page": (["--listen", "127.0.0.1:0"], r"^page  http://127\.0\.0\.1:\d+/"),
}
"""Commands that go on until they are interrupted: arguments to add, and what the first line says."""


def marked(page: str, name: str, language: str) -> str:
    """The program that stands on a page between two marks."""
    text = (ROOT / page).read_text()
    found = re.search(rf"<!-- {name}: begin -->\n```{language}\n(.*?)```", text, re.DOTALL)
    assert found, (page, name)
    return found[1]


def block(page: str, language: str) -> str:
    """A page's only block in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def host(server: Path) -> Iterator[Path]:
    """A folder where the installed server runs a gang of two, and which stands for the host."""
    # Short, as sockets' paths must be.
    with tempfile.TemporaryDirectory(prefix="rb") as name:
        folder = Path(name)
        torchrun = server / "torchrun"
        torchrun.write_text(f"#!{server}/python\nfrom torch.distributed.run import main\nmain()\n")
        torchrun.chmod(0o755)
        command = [str(server / "rankbridge"), "up", "--size", "2", "--endpoints-file", "endpoints.json"]
        with subprocess.Popen(
            command, cwd=folder, env=environment(server, folder), stdout=subprocess.PIPE, text=True
        ) as up:
            try:
                assert up.stdout is not None
                assert any(line.startswith("ready") for line in up.stdout), "the gang has ended"
                yield folder
            finally:
                up.terminate()


def environment(server: Path, folder: Path) -> dict[str, str]:
    """A shell's, in which the installed commands come first."""
    path = f"{server}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}


def run(server: Path, host: Path, *command: str, folder: Path | None = None) -> str:
    """What a command prints."""
    done = subprocess.run(
        command,
        cwd=folder or host,
        env=environment(server, host),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python(server: Path, host: Path) -> None:
    program = marked("README.md", "python example", "python")
    # The page's gang has four ranks.
    program = program.replace("gang[3].get(sums[3])", "gang[1].get(sums[1])")
    assert run(server, host, "python", "-c", program) == "[1. 4.]\n"


def test_shell(server: Path, host: Path) -> None:
    program = marked("README.md", "call example", "sh")
    assert run(server, host, "bash", "-euc", program).splitlines() == ["[3.0, 3.0]"] * 2


@pytest.mark.sampled
def test_the_operators_questions(server: Path, host: Path) -> None:
    page = (ROOT / "docs" / "operator.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .*? \| (.*) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 16))
    for _, answer in rows:
        words = re.findall(r"`rankbridge ([^`]*)`", answer)[0].split()
        if words[0] not in STAYING:
            printed = run(server, host, "rankbridge", *words)
            assert (host / words[words.index("-o") + 1]).read_text() if "-o" in words else printed
            continue
        arguments, says = STAYING[words[0]]
        with subprocess.Popen(
            [server / "rankbridge", *words, *arguments],
            env=environment(server, host),
            stdout=subprocess.PIPE,
            text=True,
        ) as following:
            assert following.stdout is not None
            assert re.search(says, following.stdout.readline())
            following.send_signal(signal.SIGINT)


@pytest.mark.sampled
def test_torchrun(server: Path, host: Path, tmp_path: Path) -> None:
    command = marked("docs/torchrun.md", "command", "sh").split()
    with subprocess.Popen(
        [server / command[0], *command[1:]],
        cwd=tmp_path,
        env=environment(server, host),
        stdout=subprocess.PIPE,
        text=True,
    ) as job:
        try:
            assert job.stdout is not None
            assert any(line.startswith("ready: 2 ranks") for line in job.stdout), "the job has ended"
            answer = run(
                server,
                host,
                "rankbridge",
                "status",
                "--json",
                "--endpoints",
                "endpoints.json",
                folder=tmp_path,
            )
            assert json.loads(answer)["whole"]
        finally:
            job.terminate()


def protos(server: Path) -> Path:
    """The proto files that are installed."""
    (folder,) = server.parent.glob("lib/python*/site-packages/rankbridge/proto")
    return folder


def test_ruby(server: Path, host: Path, tmp_path: Path) -> None:
    if shutil.which("ruby") is None or shutil.which("grpc_tools_ruby_protoc") is None:
        pytest.skip("Ruby, its gRPC or the generator is not installed")
    (tmp_path / "proto").symlink_to(protos(server))
    (tmp_path / "lib").mkdir()
    run(server, host, "sh", "-ec", block("docs/clients.md", "sh"), folder=tmp_path)
    (tmp_path / "first.rb").write_text(block("docs/clients.md", "ruby"))
    endpoints = str(host / "endpoints.json")
    printed = run(server, host, "ruby", "-Ilib", "first.rb", endpoints, folder=tmp_path)
    assert printed == block("docs/clients.md", "text")


def test_node(server: Path, host: Path, tmp_path: Path) -> None:
    project = node_project.install(ROOT / "tests" / "cross_language" / "node")
    # Node looks for packages beside the program.
    (tmp_path / "node_modules").symlink_to(project / "node_modules")
    (tmp_path / "first.mjs").write_text(block("docs/clients.md", "js"))
    printed = node_project.run(tmp_path, "first.mjs", str(protos(server)), str(host / "endpoints.json"))
    assert printed == block("docs/clients.md", "text").replace(".0, ", ",").replace(".0]", "]")
