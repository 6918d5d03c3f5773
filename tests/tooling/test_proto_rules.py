"""buf's rules on proto/, and that they are able to fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto"
BASELINE = PROTO / "baseline.binpb"
FIRST_COMMENT = "  // Names the value."
BUF = Path(sys.executable).parent / "buf"


def buf(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([BUF, *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of proto/ to be changed."""
    return Path(shutil.copytree(PROTO, tmp_path / "proto"))


def edit(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / "rankbridge" / "v1" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_proto_follows_the_style() -> None:
    assert buf("lint", PROTO).stdout == ""


def test_proto_does_not_break_the_baseline() -> None:
    done = buf("breaking", PROTO, "--against", BASELINE)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_field_without_a_comment_is_refused(changed: Path) -> None:
    edit(changed, "ref.proto", FIRST_COMMENT, "\n  string extra = 90;\n" + FIRST_COMMENT)
    done = buf("lint", changed)
    assert done.returncode != 0
    assert 'Field "extra" should have a non-empty comment' in done.stdout


def test_an_added_field_breaks_nothing(changed: Path) -> None:
    edit(
        changed,
        "ref.proto",
        "  // Names the value.",
        "  // More.\n  string extra = 90;\n  // Names the value.",
    )
    assert buf("breaking", changed, "--against", BASELINE).returncode == 0


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("ref.proto", "  uint32 rank = 2;\n", "", 'Previously present field "2" with name "rank"'),
        (
            "ref.proto",
            "  string session_id = 3;",
            "  bytes session_id = 3;",
            'Field "3" with name "session_id"',
        ),
        ("dtype.proto", "  DTYPE_BOOL = 13;", "  DTYPE_BOOLEAN = 13;", 'changed name from "DTYPE_BOOL"'),
        (
            "collective_service.proto",
            "  rpc Barrier(BarrierRequest) returns (BarrierResponse) {\n    option (role) = ROLE_DRIVE;\n  }",
            "",
            'Previously present RPC "Barrier"',
        ),
    ],
    ids=["a removed field", "a changed type", "a renamed value", "a removed call"],
)
def test_a_change_that_breaks_clients_is_refused(
    changed: Path, file: str, old: str, new: str, said: str
) -> None:
    edit(changed, file, old, new)
    done = buf("breaking", changed, "--against", BASELINE)
    assert done.returncode != 0
    assert said in done.stdout
