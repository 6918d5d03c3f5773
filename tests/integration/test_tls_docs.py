"""The examples of docs/tls.md, run as they are printed for people; only with more patience on a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120


def printed(name: str, language: str) -> str:
    text = (ROOT / "docs" / "tls.md").read_text()
    example, end, _ = text.partition(f"<!-- {name}: begin -->\n```{language}\n")[2].partition("```\n<!-- ")
    assert end
    return example


def test_the_examples_do_what_they_say(tmp_path: Path) -> None:
    # The Python program runs while the shell's gang does.
    (tmp_path / "controller.py").write_text(printed("tls python example", "python"))
    shell = printed("tls example", "bash").replace('kill "$gang"', 'python controller.py\nkill "$gang"')
    shell = shell.replace("rankbridge up", "rankbridge up --heartbeat-misses 300")
    # Should one of its commands fail, the gang must not stay.
    trap = """trap '[ -z "${gang:-}" ] || kill "$gang" 2>/dev/null || true' EXIT\n"""
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", trap + shell],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Both ranks in the table, and what the first says of itself.
    assert [f"\n{rank} " in done.stdout for rank in range(2)] == [True, True]
    assert "GENERATION_STATE_FORMED" in done.stdout
