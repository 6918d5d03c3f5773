"""`make proto-check` fails on every kind of difference between proto/ and what was made from it."""

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUBS = Path("pyclient/rankbridge/v1")
ELIXIR = Path("elixir_client/lib/rank_bridge/proto/v1")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all that the check reads."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in ("proto", "scripts", "locks", "elixir_client/codegen", "elixir_client/scripts"):
        shutil.copytree(ROOT / folder, tree / folder)
    shutil.copytree(ROOT / "pyclient", tree / "pyclient", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ELIXIR, tree / ELIXIR)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    borrow_generators(tree)
    return tree


def borrow_generators(tree: Path) -> None:
    """The code generators of this checkout, if it has those that are pinned; otherwise the check installs its own."""
    own, borrowed = ROOT / ".venv-gen", tree / ".venv-gen"
    stamp = own / ".set-up"
    if not stamp.exists() or stamp.read_text() != stamp_of(ROOT):
        return
    borrowed.mkdir()
    for path in own.iterdir():
        if path != stamp:
            (borrowed / path.name).symlink_to(path)
    (borrowed / ".set-up").write_text(stamp_of(tree))


def stamp_of(root: Path) -> str:
    """What `environment` of scripts/lib.sh notes down when it has installed the generators."""
    pinned = f"{root}\n".encode() + (ROOT / "locks" / "constraints-codegen.txt").read_bytes()
    return f"{hashlib.sha256(pinned).hexdigest()}  -\n"


def check(tree: Path) -> "subprocess.CompletedProcess[str]":
    command = [str(tree / "scripts" / "proto"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def append(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(path.read_text() + text)


def test_what_is_committed_is_fresh(tree: Path) -> None:
    done = check(tree)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (STUBS / "ref_pb2.py", append("# changed\n")),
        (STUBS / "ref_pb2.pyi", Path.unlink),
        (STUBS / "ref_service_pb2_grpc.py", append("# changed\n")),
        (STUBS / "gone_pb2.py", Path.touch),
        (ELIXIR / "ref.pb.ex", append("# changed\n")),
        (Path("proto/baseline.binpb"), Path.unlink),
        (Path("proto/rankbridge/v1/ref.proto"), append("\n// More.\nmessage More {}\n")),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_a_difference_is_found(tree: Path, path: Path, change: Callable[[Path], object]) -> None:
    changed = tree / path
    before = changed.read_bytes() if changed.exists() else None
    change(changed)
    try:
        done = check(tree)
    finally:
        changed.unlink(missing_ok=True)
        if before is not None:
            changed.write_bytes(before)
    assert done.returncode == 1
    assert changed.stem.partition("_")[0].partition(".")[0] in done.stdout
    assert "Run `make proto`" in done.stderr
