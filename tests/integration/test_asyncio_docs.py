"""docs/asyncio.md: its example does what it says."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.support.gangs import RunningGang

PATIENCE_S = 60


def test_the_example_prints_what_the_page_says(gloo4: RunningGang, tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "asyncio.md").read_text()
    (example,) = re.findall(r"<!-- example: begin -->\n```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "endpoints.json").write_text(json.dumps(gloo4.description))
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert f"On four ranks that prints `{done.stdout.strip()}`." in text
