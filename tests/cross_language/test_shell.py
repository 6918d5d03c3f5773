"""The shell's example, run exactly as it is printed for people."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- shell example: begin -->\n```bash\n"
END = "```\n<!-- shell example: end -->"


@pytest.fixture(scope="module")
def printed() -> str:
    """The example as it stands in docs/clients.md."""
    _, begin, rest = (ROOT / "docs" / "clients.md").read_text().partition(BEGIN)
    example, end, _ = rest.partition(END)
    assert begin
    assert end
    return example


def test_the_shell_example_does_what_it_says(printed: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    # The gang shares the pipe of the errors: reading it to its end also waits for the end of every rank.
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", printed],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    *services, result = done.stdout.splitlines()
    texts = [path.read_text() for path in (ROOT / "proto" / "rankbridge" / "v1").glob("*_service.proto")]
    published = [
        f"rankbridge.v1.{name}" for text in texts for name in re.findall(r"^service (\w+)", text, re.M)
    ]
    assert [name for name in services if name.startswith("rankbridge.")] == sorted(published)
    assert "grpc.health.v1.Health" in services
    assert [float(element) for element in result.split()] == [10.0, 10.0, 10.0]
