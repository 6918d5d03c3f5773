"""The helpers of harness/, each by its own tests in its language's own runner."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[2] / "harness"
SECONDS = 120

# By folder: what it needs, what runs its tests, and what that says of a success.
RUNNERS = {
    "bash": (("bash", "jq"), ("./test.sh",), "1..8"),
    "node": (("node",), ("node", "--test"), "# pass 5"),
    "perl": (("perl", "prove"), ("prove", "-Ilib", "t"), "Result: PASS"),
    "ruby": (("ruby",), ("ruby", "test_rankbridge.rb"), "0 failures, 0 errors, 0 skips"),
    "go": (("go",), ("go", "test", "-count=1", "./..."), "ok"),
}


@pytest.mark.parametrize("language", RUNNERS)
def test_the_helper_passes_its_own_tests(language: str, tmp_path: Path, quick: str) -> None:
    needs, command, passed = RUNNERS[language]
    lacking = [it for it in needs if shutil.which(it) is None]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} is not installed")
    done = subprocess.run(
        command,
        cwd=HARNESS / language,
        env={**os.environ, "RANKBRIDGE_COMMAND": quick, "GOCACHE": str(tmp_path), "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, passed in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_folder_that_no_runner_knows_is_none() -> None:
    assert {it.name for it in HARNESS.iterdir() if it.is_dir()} == set(RUNNERS)


@pytest.mark.parametrize(
    "file",
    [
        "bash/rankbridge.sh",
        "node/rankbridge.mjs",
        "perl/lib/RankBridge.pm",
        "ruby/rankbridge.rb",
        "go/rankbridge.go",
    ],
)
def test_a_helper_is_short(file: str) -> None:
    assert (HARNESS / file).read_text().count("\n") <= 100
