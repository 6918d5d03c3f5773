"""`python -m bench`, as short as can be: that it runs, not how long anything takes."""

from pathlib import Path

import pytest
from bench.__main__ import main
from bench.contender import Contender
from bench.overheads.__main__ import main as overheads
from bench.rows import ROWS

pytestmark = pytest.mark.sampled


def test_it_writes_results_and_tells_of_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--sizes", "2", "--growth", "2,3", "--rounds", "2", "--scale", "0.02"]
    subjects = "copy,admission,grpc_floor,torch_rpc,python"
    assert main([*arguments, "--subjects", subjects, "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [row.title.partition(": ")[0] for row in ROWS]
    lines = (tmp_path / "results.md").read_text().splitlines()
    assert "## 2 ranks" in lines
    assert [line for line in lines if "failed" in line] == []
    for by in ("torch rpc calls", "grpc floor calls", "python ranks", "python gang"):
        assert [line for line in lines if line.startswith(f"| barrier | {by} |")]
    for operation in ("all_reduce 4 B", "all_reduce 4 MB", "broadcast 4 MB"):
        assert [line for line in lines if line.startswith(f"| {operation} | torch rpc calls |")]
    for by in ("grpc floor calls", "torch rpc calls", "python grpc", "python shared memory"):
        assert [line for line in lines if line.startswith(f"| fetch 64 MB | {by} |")]
    for operation in ("barriers", "all_reduce 4 B"):
        assert [line for line in lines if line.startswith(f"| 1,000 {operation}, each | python program |")]
    for sidecars in (2, 3):
        assert [line for line in lines if line.startswith(f"| {sidecars} | gang |")]
    assert (tmp_path / "results.svg").read_text().startswith("<svg")


def test_it_measures_what_each_thing_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert overheads(["--quick", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "overheads.md").read_text()
    assert capsys.readouterr().out in page + "\n"
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    # Heads of five tables, and what is measured: two records, 3 x 4 calls twice, 2 x 6 guarded ones, two with a page.
    assert len(rows) == 2 * 5 + 2 + 2 * 12 + 12 + 2
    assert sum("reached |" in line for line in rows) == 2 + 12 + 12


def test_ranks_of_the_native_loop_run_every_collective(tmp_path: Path) -> None:
    with Contender("native", "2", log=tmp_path) as peer:
        peer.begun()
        assert peer.missing == {}
        assert set(peer.ways) == {"loop", "careful"}
        assert set(peer.ways["loop"]) >= {"barrier", "all_reduce_4B", "all_reduce_4MB", "broadcast_4MB"}
        assert set(peer.ways["careful"]) == {"all_reduce_4B", "all_reduce_4MB"}
        for way, operations in peer.ways.items():
            for operation in operations:
                block = peer.block(way, operation, 2)
                assert len(block.seconds) == 2
                assert min(block.seconds) > 0


@pytest.mark.sampled
@pytest.mark.elixir
def test_the_elixir_client_makes_every_call(tmp_path: Path) -> None:
    with Contender("elixir", "2", log=tmp_path) as elixir:
        elixir.begun()
        assert "" not in elixir.missing
        for way, operation in (
            ("ranks", "barrier"),
            ("ranks", "empty_all"),
            ("ranks", "broadcast_4MB"),
            ("grpc", "fetch_64MB"),
            ("shared_memory", "put_64MB"),
        ):
            assert len(elixir.block(way, operation, 2).seconds) == 2
