"""Dumps of torch's flight recorder on disk: what torchfrtrace blames falsely, and files that are cut off or hostile."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from rankbridge_server.doctor.flight_recorder import BadTrace
from rankbridge_server.doctor.judge import judge
from rankbridge_server.doctor.verdict import Kind, Verdict
from rankbridge_server.job.outside import dumps
from rankbridge_server.job.outside.processes import NoJob

NOW_NS = 1_700_000_000_000_000_000


def entry(number: int, kind: str = "all_reduce", state: str = "completed", **fields: Any) -> dict[str, Any]:
    """One collective on NCCL, as torch writes it, an hour ago if it is not done."""
    return {
        "record_id": number - 1,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": f"nccl:{kind}",
        "input_sizes": [[4]],
        "input_dtypes": ["Float"],
        "output_sizes": [[4]],
        "output_dtypes": ["Float"],
        "state": state,
        "retired": state == "completed",
        "is_p2p": False,
        "time_created_ns": NOW_NS + number * 1_000_000,
        "frames": [{"name": "step", "filename": "/job/train.py", "line": 7}],
        **fields,
    }


def dump(entries: list[dict[str, Any]], size: int = 3) -> dict[str, Any]:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(size)))}}
    return {"version": "2.10", "pg_config": config, "entries": entries}


def verdict(folder: Path, by_rank: dict[int, list[dict[str, Any]]], size: int = 3) -> Verdict:
    for rank, entries in by_rank.items():
        path = folder / f"nccl_trace_rank_{rank}"
        path.write_bytes(pickle.dumps(dump(entries, size)))
        os.utime(path, (NOW_NS / 1e9 + 3600,) * 2)
    return judge(dumps.collect(folder))


DONE = [entry(1), entry(2)]
PENDING = [*DONE, entry(3, state="started")]


def test_the_rank_that_did_not_come_is_named(tmp_path: Path) -> None:
    found = verdict(tmp_path, {0: PENDING, 1: PENDING, 2: DONE})
    assert (found.kind, [it.rank for it in found.culprits]) == (Kind.NEVER_CALLED, [2])


def test_of_other_shapes_the_minority_is_named_whatever_file_is_read_first(tmp_path: Path) -> None:
    other = [*DONE, entry(3, state="started", input_sizes=[[8]])]
    found = verdict(tmp_path, {0: other, 1: PENDING, 2: PENDING})
    assert (found.kind, [it.rank for it in found.culprits]) == (Kind.MISMATCH_SHAPE, [0])
    assert found.sides[0].sites[0].line == 7


def test_a_healthy_send_blames_nobody(tmp_path: Path) -> None:
    send = entry(3, "send 0->1", is_p2p=True)
    found = verdict(tmp_path, {0: [*DONE, send], 1: [*DONE, entry(3, "recv 1<-0", is_p2p=True)], 2: DONE})
    assert found.culprits == ()


def test_records_that_begin_at_another_call_blame_nobody(tmp_path: Path) -> None:
    later = [entry(it, record_id=it + 4) for it in range(3, 6)]
    found = verdict(tmp_path, {0: [entry(it) for it in range(1, 6)], 1: later, 2: later})
    assert found.culprits == ()


@pytest.mark.parametrize("kind", ["broadcast", "gather_single"])
def test_a_call_that_is_done_on_one_rank_alone_blames_only_who_did_not_come(
    tmp_path: Path, kind: str
) -> None:
    one = [*DONE, entry(3, kind)]
    waits = [*DONE, entry(3, kind, state="started")]
    assert verdict(tmp_path, {0: one, 1: waits, 2: waits}).culprits == ()
    found = verdict(tmp_path, {0: one, 1: waits, 2: DONE})
    assert [it.rank for it in found.culprits] == [2]
    # As the record of `rankbridge watch` names it, which torch's recorder names anew.
    assert found.call.startswith({"gather_single": "gather_into_tensor"}.get(kind, kind))


def test_a_dump_that_is_absent_makes_the_rank_unknown_and_not_guilty(tmp_path: Path) -> None:
    found = verdict(tmp_path, {0: PENDING, 1: PENDING})
    assert (found.kind, found.culprits) == (Kind.UNKNOWN, ())


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/rankbridge-was-run",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pickle.dumps({"entries": [Evil()]}), "it names posix.system"),
        (pickle.dumps({"entries": [Path("/")]}), "it names pathlib"),
        (pickle.dumps(dump(PENDING))[:-30], "it is cut off, or no pickle"),
        (b"", "it is cut off, or no pickle"),
        (b"\x80\x04N.", "it has no entries"),
        (b"\x80\x04Pabc\n.", "it refers to something outside"),
        (b"\x80\x04\x8d" + (1 << 40).to_bytes(8, "little") + b"x.", "it is cut off, or no pickle"),
        (pickle.dumps({"entries": {}}), "it has no entries"),
    ],
)
def test_what_is_no_dump_is_refused_and_nothing_of_it_runs(data: bytes, said: str) -> None:
    with pytest.raises(BadTrace) as caught:
        dumps.load(data)
    assert said in str(caught.value)
    assert not Path("/tmp/rankbridge-was-run").exists()


@pytest.mark.parametrize(
    "content",
    [
        {"entries": [1]},
        {"entries": [{"record_id": 0}]},
        {"entries": [], "pg_config": [1]},
        {"entries": [], "pg_config": {"0": {"name": "0", "ranks": "0-3"}}},
        {"entries": [entry(1, input_sizes=[["x"]])]},
    ],
)
def test_a_dump_of_another_form_is_refused_with_its_file(tmp_path: Path, content: dict[str, Any]) -> None:
    (tmp_path / "trace0").write_bytes(pickle.dumps(content))
    with pytest.raises(NoJob, match="trace0"):
        dumps.collect(tmp_path)


def test_a_folder_without_dumps_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "notes0").write_text("nothing")
    with pytest.raises(NoJob, match="neither records"):
        dumps.collect(tmp_path)
