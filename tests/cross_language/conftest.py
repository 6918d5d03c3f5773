"""A gang of four ranks on Gloo, as any user starts one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_STOP_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class RunningGang:
    """Where the ranks of a running gang serve, by rank."""

    unix: list[str]
    tcp: list[str]


@pytest.fixture(scope="package")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Four ranks, formed. They must end well when told to."""
    path = tmp_path_factory.mktemp("gang") / "endpoints.json"
    command = [str(Path(sys.executable).parent / "rankbridge"), "up", "--size", "4", "--exit-on-stdin-close"]
    with subprocess.Popen(
        [*command, "--endpoints-file", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as up:
        assert up.stdout is not None
        said = []
        for line in up.stdout:
            said.append(line)
            if line.startswith("ready"):
                break
        assert path.exists(), f"the gang did not start; it said: {''.join(said)}"
        ranks = json.loads(path.read_text())["ranks"]
        assert [rank["rank"] for rank in ranks] == [0, 1, 2, 3]
        yield RunningGang(
            unix=[next(e for e in rank["endpoints"] if e.startswith("unix:")) for rank in ranks],
            tcp=[next(e for e in rank["endpoints"] if not e.startswith("unix:")) for rank in ranks],
        )
        up.terminate()
        assert up.wait(_STOP_SECONDS) == 0
