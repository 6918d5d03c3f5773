"""Writes the picture of README.md: what `rankbridge status` shows of a gang in which one rank keeps the others waiting.

Starts a gang of four ranks on Gloo, has three of them wait for the fourth, and draws the page that `status` prints.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console

import rankbridge
from rankbridge_server.cli.status import page
from rankbridge_server.cli.survey import Survey, survey

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "status.svg"
RANKBRIDGE = Path(sys.executable).with_name("rankbridge")
WAITED_S = 4.2


def main() -> None:
    """Writes it."""
    with tempfile.TemporaryDirectory() as folder:
        endpoints = Path(folder) / "endpoints.json"
        command = [str(RANKBRIDGE), "up", "--size", "4", "--exit-on-stdin-close"]
        command += ["--endpoints-file", str(endpoints)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as up:
            assert up.stdin
            assert up.stdout
            while not up.stdout.readline().startswith("ready:"):
                """A line for each rank comes first."""
            with rankbridge.connect(str(endpoints), session=False) as gang:
                gang.barrier()
                refs = gang.put([np.ones((1024, 1024), np.float32)] * 4)
                for rank in (0, 1, 3):
                    gang[rank].submit("all_reduce", refs[rank], operation_id="step 7", timeout=60)
                time.sleep(WAITED_S)
                _draw(survey(gang))
            up.stdin.close()


def _draw(found: Survey) -> None:
    console = Console(record=True, width=86, file=io.StringIO())
    console.print("$ rankbridge status")
    console.print(page(found))
    svg = console.export_svg(title="one rank keeps the others waiting")
    # Whoever looks at the picture asks no other host for fonts.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


if __name__ == "__main__":
    main()
