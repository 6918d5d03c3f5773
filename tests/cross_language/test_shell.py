"""The shell's example, run exactly as it is printed for people."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- shell example: begin -->\n```bash\n"
END = "```\n<!-- shell example: end -->"
SERVICES = ["CollectiveService", "GangService", "GroupService", "RankService", "RefService"]


@pytest.fixture(scope="module")
def printed() -> str:
    """The one example that stands in the README or in docs/."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = [page.read_text() for page in pages if page.exists()]
    (text,) = (text for text in texts if BEGIN in text)
    return text.partition(BEGIN)[2].partition(END)[0]


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
    assert [f"rankbridge.v1.{name}" for name in SERVICES] == [
        line for line in services if "rankbridge" in line
    ]
    assert "grpc.health.v1.Health" in services
    assert [float(element) for element in result.split()] == [10.0, 10.0, 10.0]
