"""The demo, against sidecars that can add float32."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.sidecars import SidecarGang

from rankbridge import demo
from rankbridge.v1 import collective_service_pb2 as collective_pb, value_pb2


@pytest.fixture
def endpoints(sidecars: SidecarGang, tmp_path: Path) -> str:
    """The endpoints file of four sidecars."""
    path = tmp_path / "endpoints.json"
    path.write_text(json.dumps(sidecars.endpoints()))
    return str(path)


def test_the_demo_prints_its_steps_in_columns_and_leaves_no_ref(
    endpoints: str, sidecars: SidecarGang, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main([endpoints]) == 0
    *steps, last = capsys.readouterr().out.splitlines()
    assert last == "all values are right"
    assert [(line[:12].rstrip(), line[12:66].rstrip()) for line in steps] == [
        ("connect", "4 ranks, backend , generation 1"),
        ("put", "float32[256, 1024] on each of 4 ranks"),
        ("barrier", "group world, 4 members"),
        ("broadcast", "from rank 2 to all"),
        ("all_reduce", "sum, to all"),
        ("gather", "to rank 1, along dimension 0"),
        ("read back", "4 tensors of broadcast"),
        ("read back", "4 tensors of all_reduce"),
        ("read back", "1 tensor of gather"),
        ("read back", "4 tensors of put"),
        ("release", "13 refs"),
        ("close", "session and connections"),
        ("total", ""),
    ]
    assert all(re.fullmatch(r" *\d+\.\d ms", line[66:]) and len(line) == 79 for line in steps)
    assert all(sidecar.sessions == {""} for sidecar in sidecars.sidecars)


def test_the_demo_fails_on_a_wrong_value(
    endpoints: str, sidecars: SidecarGang, capsys: pytest.CaptureFixture[str]
) -> None:
    def instead(request: Any, context: Any) -> Any:
        mine = sidecars[3].held[request.ref_id].ref
        sidecars[3].gang.exchange(3, sidecars[3].held[request.ref_id])
        return collective_pb.BroadcastResponse(value=value_pb2.Value(ref=mine))

    sidecars[3].answers["Broadcast"] = instead
    assert demo.main([endpoints]) == 1
    captured = capsys.readouterr()
    assert captured.err == "not so: broadcast on rank 3 has the expected values\n"
    assert "all values are right" not in captured.out


def test_the_demo_fails_where_there_is_no_gang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main([str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
