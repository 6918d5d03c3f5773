"""docs/two_hosts.md: its commands, in a network of two addresses beyond loopback that the test makes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.support.gangs import RANKBRIDGE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "two_hosts.md").read_text()
TIMEOUT_S = 120
_NETWORK = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "bash",
    "-euc",
]
# The ranks end with the namespace of processes, whose first is the script.
_ADDRESSES = """
ip link set lo up
ip address add 10.77.0.1/24 dev lo
ip address add 10.77.0.2/24 dev lo
"""


def part(name: str) -> str:
    found = re.search(rf"<!-- {name}: begin -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
    assert found, name
    return found[1]


@pytest.mark.sampled
def test_two_ranks_on_two_addresses_are_driven_from_a_third_place(tmp_path: Path) -> None:
    if subprocess.run([*_NETWORK, _ADDRESSES], capture_output=True, check=False).returncode:
        pytest.skip("this user may make no user and network namespaces")
    script = f"""{_ADDRESSES}
export PATH={Path(RANKBRIDGE).parent}:$PATH
{part("once")}
({part("second host")}) >second.log 2>&1 &
exec 3< <({part("first host")})
sed '/^ready/q' <&3
{part("controller")}
stat -c %a gang.tokens endpoints.json
"""
    done = subprocess.run(
        [*_NETWORK, script], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "ready: 2 ranks on gloo, generation 1" in lines
    assert re.search(r"^0 .* 10\.77|^0 +\d+ .* formed", done.stdout, re.MULTILINE)
    assert lines[-4:] == ["[6.0, 6.0]", "[6.0, 6.0]", "600", "600"]
