"""The audit of a gang on real ranks: a line for whoever is let in or refused, and for each generation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PATIENT
from tests.support.gangs import up
from tests.support.waiting import until

import rankbridge
from rankbridge_server.core.audit import MAX_LINES_PER_S, Audit


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_callers_refusals_and_generations_have_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    with up(tmp_path, 2, "gloo", [*PATIENT, "--audit", str(file)]) as running:
        with rankbridge.connect(running.tcp) as owner:
            for _ in range(3):
                owner.barrier()
            with rankbridge.connect(running.guest) as guest:
                guest.barrier()
            with pytest.raises(rankbridge.RankBridgeError, match="no token"):
                rankbridge.connect(running.tcp_targets).close()
            with pytest.raises(rankbridge.RankBridgeError, match="none of the gang's"):
                rankbridge.connect(running.tcp_targets, token="x" * 43).close()
            assert owner.form().generation == 2
        with rankbridge.connect(running.targets) as near:
            near.barrier()
        assert file.stat().st_mode & 0o777 == 0o600
    found = lines(file)
    assert {it["rank"] for it in found} == {0, 1}
    of_rank_0 = [it for it in found if it["rank"] == 0]
    events = [(it["event"], it["generation"]) for it in of_rank_0 if "generation" in it]
    assert events == [("formed", 1), ("over", 1), ("formed", 2), ("over", 2)]
    admitted = [(it["caller"], it["role"]) for it in of_rank_0 if it["event"] == "admitted"]
    # One line for each connection, whatever it calls; the peer's are of the rank that forms.
    assert admitted.count(("own", "own")) == admitted.count(("drive", "drive")) == 1
    assert ("user of the ranks", "own") in admitted
    refused = {it["reason"].split(":")[0] for it in of_rank_0 if it["event"] == "refused"}
    assert refused == {"no token", "this token is none of the gang's"}
    assert all(it["time"].endswith("+00:00") for it in found)


def test_a_file_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Audit(tmp_path / "nowhere" / "audit", 0)


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    audit = Audit(file, 3)
    audit.refused("ipv4:1", "/a", "no")
    file.rename(tmp_path / "old")
    audit.refused("ipv4:2", "/b", "no")
    assert [it["peer"] for it in (*lines(tmp_path / "old"), *lines(file))] == ["ipv4:1", "ipv4:2"]


def test_a_flood_of_refusals_does_not_fill_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    audit = Audit(file, 0)
    sent = 0

    def said() -> bool:
        nonlocal sent
        for _ in range(10 * MAX_LINES_PER_S):
            audit.refused("ipv4:1", "/a", "no")
            sent += 1
        return bool(sum(it.get("left_out", 0) for it in lines(file)))

    until(said)
    found = lines(file)
    assert len(found) + sum(it.get("left_out", 0) for it in found) <= sent
    seconds = {it["time"][:19] for it in found}
    # A second of the clock may have parts of two of the limit's.
    assert all(sum(it["time"][:19] == second for it in found) <= 2 * MAX_LINES_PER_S for second in seconds)
