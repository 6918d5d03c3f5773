"""The example of docs/functions.md: the module, and the programs that call it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, up

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"


def test_the_module_is_loaded_and_called_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text()
    app, client = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "app.py").write_text(app)
    monkeypatch.chdir(tmp_path)
    with up(tmp_path, 4, "gloo", [*PATIENT, "--load", "app.py"]) as running:
        (tmp_path / "endpoints.json").symlink_to(running.endpoints_file)
        names: dict[str, object] = {}
        exec(f"import rankbridge\n{client}", names)
        printed = capsys.readouterr().out.splitlines()
        # 2 steps of 0.5, and 3 of 0.1, of gradients whose mean is 2.5.
        assert printed[0] == "[-2.5, -2.5, -2.5, -2.5]"
        assert sorted(printed[1:13]) == sorted(f"{rank} {step}" for rank in range(4) for step in (3, 4, 5))
        assert json.loads(printed[13]) == pytest.approx([-3.25] * 4)
        assert printed[14] == "(steps: int, lr: float = 0.1)"
        for command in re.findall(r"^rankbridge (functions|call .*?)(?:  +#.*)?$", text, re.MULTILINE):
            shown = subprocess.run(
                [RANKBRIDGE, *command.split(), "--endpoints", "endpoints.json"],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout
            assert "train" in shown or json.loads(shown.splitlines()[-1]) == pytest.approx(-7.0)
        (script,) = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        environment = {**os.environ, "PATH": f"{Path(RANKBRIDGE).parent}:{os.environ['PATH']}"}
        shown = subprocess.run(
            ["bash", "-ec", script], env=environment, capture_output=True, text=True, check=True, timeout=60
        ).stdout
        members = json.loads(shown)["outcomes"]["members"]
        assert [it["result"]["value"]["float"] for it in members] == pytest.approx([-8.25] * 4)
