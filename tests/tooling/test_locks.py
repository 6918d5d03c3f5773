"""What is installed is pinned, and pip takes no file whose hash is not in locks/."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.wheels import digest, make_index, make_wheel

import lock
from lock import LockError

ROOT = Path(__file__).resolve().parents[2]
PIP = Path(sys.executable).parent / "pip"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of all that the check reads."""
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    for path in ROOT.glob("constraints*.txt"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_the_locks_have_hashes_for_exactly_what_is_pinned(tree: Path) -> None:
    lock.check(tree)


@pytest.mark.parametrize(
    ("path", "old", "new", "words"),
    [
        ("constraints.txt", r"numpy==.*", "numpy==9", "numpy==9.*make lock"),
        ("constraints-dev.txt", r"ruff==.*\n", "", "ruff==.*make lock"),
        ("constraints.txt", r"(?m)^torch==.*", "torch==9", "torch==9.*write them there"),
        ("locks/torch-cuda.txt", r"(?m)^torch==.*", r"torch==9 \\", "not of torch==.*make lock"),
        ("locks/constraints.txt", r"(numpy==\S+) (?:\\\n.*--hash.*)+", r"\1", "more than pins with hashes"),
        ("locks/constraints.txt", r"\A", "--extra-index-url x\n", "more than pins with hashes"),
        ("locks/constraints-codegen.txt", r"(?=protobuf==)", "--index-url x\n", "more than pins with hashes"),
        ("locks/constraints-tools.txt", r"sha256:.", "sha256:", "more than pins with hashes"),
    ],
)
def test_a_difference_is_found(tree: Path, path: str, old: str, new: str, words: str) -> None:
    text = (tree / path).read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    (tree / path).write_text(changed)
    with pytest.raises(LockError, match=words):
        lock.check(tree)


@pytest.mark.sampled
def test_locks_are_written_from_what_an_index_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = make_wheel(tmp_path / "files", "torch", "2.13.0", needs=["probe", "accelerated>=1,<9"])
    probe = make_wheel(tmp_path / "files", "probe", "1.0")
    older, newer = (make_wheel(tmp_path / "files", "accelerated", version) for version in ("1.5", "2.5"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", make_index(tmp_path / "index", [torch, probe, older, newer]))
    find_uv(monkeypatch)
    (tmp_path / "locks").mkdir()
    (tmp_path / "constraints.txt").write_text("# Pins.\nprobe==1.0\ntorch==2.13.0\n")
    cpu = tmp_path / "locks" / "torch-cpu.txt"
    cpu.write_text(f"torch==2.13.0 \\\n    --hash=sha256:{'0' * 64}\n")
    lock.write(tmp_path)
    lock.check(tmp_path)
    cuda = tmp_path / "locks" / "torch-cuda.txt"
    assert lock.read_lock(tmp_path / "locks" / "constraints.txt") == {"probe==1.0": {digest(probe)}}
    assert lock.read_lock(cuda) == {"accelerated==2.5": {digest(newer)}, "torch==2.13.0": {digest(torch)}}
    assert lock.read_lock(cpu) == {"torch==2.13.0": {"0" * 64}}
    # The version stays what was locked; its hashes are asked for again.
    cuda.write_text(cuda.read_text().replace("==2.5", "==1.5"))
    lock.write(tmp_path)
    assert lock.read_lock(cuda)["accelerated==1.5"] == {digest(older)}


def find_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets commands find the tools, which are installed if they are not there."""
    command = ["scripts/tools", "sh", "-c", 'echo "$PATH"']
    path = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300).stdout
    monkeypatch.setenv("PATH", path.splitlines()[-1])


def install(lock_file: Path, wheels: Path, target: Path) -> "subprocess.CompletedProcess[str]":
    """Installs as set-up does, of the files of a folder."""
    script = f'source {ROOT}/scripts/lib.sh; install_locked "$@"'
    environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_TARGET": str(target)}
    return subprocess.run(
        ["bash", "-c", script, "bash", PIP, lock_file],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """A wheel; beside its folder, `lock.txt` has its hash and one of another file."""
    wheel = make_wheel(tmp_path / "wheels", "probe", "1.0", "HONEST = True\n")
    hashes = f"--hash=sha256:{'0' * 64} \\\n    --hash=sha256:{digest(wheel)}"
    (tmp_path / "lock.txt").write_text(f"probe==1.0 \\\n    {hashes}\n")
    return wheel


def test_a_file_whose_hash_is_locked_is_installed(probe: Path, tmp_path: Path) -> None:
    done = install(tmp_path / "lock.txt", probe.parent, tmp_path / "made")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "probe.py").read_text() == "HONEST = True\n"


def test_a_changed_file_is_refused(probe: Path, tmp_path: Path) -> None:
    make_wheel(probe.parent, "probe", "1.0", "HONEST = False\n")
    done = install(tmp_path / "lock.txt", probe.parent, tmp_path / "made")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_higher_local_version_of_another_index_is_refused(probe: Path, tmp_path: Path) -> None:
    # Where no file has the hash in its link, pip prefers this one.
    make_wheel(probe.parent, "probe", "1.0+evil", "HONEST = False\n")
    done = install(tmp_path / "lock.txt", probe.parent, tmp_path / "made")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_pin_without_a_hash_is_refused(probe: Path, tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_text("probe==1.0\n")
    done = install(tmp_path / "lock.txt", probe.parent, tmp_path / "made")
    assert done.returncode != 0
    assert "Hashes are required" in done.stderr


def test_sources_are_not_built(probe: Path, tmp_path: Path) -> None:
    source = tmp_path / "sources" / "probe-1.0.tar.gz"
    source.parent.mkdir()
    source.write_bytes(b"")
    (tmp_path / "lock.txt").write_text(f"probe==1.0 --hash=sha256:{digest(source)}\n")
    done = install(tmp_path / "lock.txt", source.parent, tmp_path / "made")
    assert done.returncode != 0
    assert "No matching distribution" in done.stderr


def test_every_script_installs_what_is_locked_or_what_is_here() -> None:
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and path.suffix != ".py"]
    lines = [line for path in scripts for line in path.read_text().splitlines() if "pip" in line]
    installs = [line for line in lines if " install " in line and not line.lstrip().startswith("#")]
    assert len(installs) == 3
    safe = ("--require-hashes", "--dry-run", "--no-index")
    assert [line for line in installs if not any(option in line for option in safe)] == []


def needed(requirement: str, found: set[str]) -> set[str]:
    """Names of what the requirement needs on some Python, by what the installed packages say."""
    stated = Requirement(requirement)
    key = str(stated)
    if key not in found:
        found.add(key)
        for text in importlib.metadata.requires(stated.name) or []:
            need = Requirement(text)
            if applies(need, stated.extras):
                need.marker = None
                needed(str(need), found)
    return {canonicalize_name(Requirement(it).name) for it in found}


def applies(need: Requirement, extras: set[str]) -> bool:
    places = [{"extra": extra, "python_version": version} for extra in extras or {""} for version in PYTHONS]
    return need.marker is None or any(need.marker.evaluate(place) for place in places)


def test_ranks_and_the_build_need_exactly_what_images_have() -> None:
    pinned = {Requirement(pin).name for pin in lock.read_pins(ROOT / "constraints.txt")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: set[str] = set()
    for requirement in ["rankbridge[server]", *project["build-system"]["requires"]]:
        needed(requirement, found)
    names = {canonicalize_name(Requirement(it).name) for it in found}
    # CUDA packages are those of the other torch.
    cuda = {Requirement(pin).name for pin in lock.read_lock(ROOT / "locks" / "torch-cuda.txt")} - {"torch"}
    assert names - cuda == pinned | {"rankbridge"}


def test_no_protobuf_is_taken_that_can_be_made_to_recurse_without_end() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (protobuf,) = (it for it in map(Requirement, project["dependencies"]) if it.name == "protobuf")
    versions = [
        "5.29.0",
        "5.29.4",
        "5.29.5",
        "5.30.0",
        "6.30.0",
        "6.30.2",
        "6.31.0",
        "6.31.1",
        "7.36.2",
        "8.0",
    ]
    assert list(protobuf.specifier.filter(versions)) == ["5.29.5", "5.30.0", "6.31.1", "7.36.2"]
