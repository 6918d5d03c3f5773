"""`rankbridge drive`: lines of JSON in, answers by id and events out, and nothing left at the end."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RANKBRIDGE
from tests.support.waiting import until

from rankbridge.harness.lines import LONGEST_LINE

pytestmark = pytest.mark.usefixtures("quick_gangs")

SECONDS = 60


class Drive:
    """A driver, and what it has said."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [RANKBRIDGE, "drive"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answers: dict[Any, Any] = {}
        self.others: list[dict[str, Any]] = []
        self._count = 0

    def send(self, do: str, **fields: Any) -> int:
        assert self.process.stdin is not None
        self._count += 1
        print(json.dumps({**fields, "id": self._count, "do": do}), file=self.process.stdin, flush=True)
        return self._count

    def answer(self, identity: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        while identity not in self.answers:
            said = json.loads(self.process.stdout.readline())
            if "id" in said:
                self.answers[said["id"]] = said
            else:
                self.others.append(said)
        found: dict[str, Any] = self.answers.pop(identity)
        return found

    def ask(self, do: str, **fields: Any) -> Any:
        said = self.answer(self.send(do, **fields))
        assert "ok" in said, said
        return said["ok"]

    def fail(self, do: str, **fields: Any) -> Any:
        said = self.answer(self.send(do, **fields))
        assert "error" in said, said
        return said["error"]

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.others += [json.loads(line) for line in self.process.stdout]
        self.process.stdout.close()
        return self.process.wait(SECONDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def drive(folder: Path, quick_gangs: None) -> Iterator[Drive]:
    """A driver with a gang of three on Gloo."""
    it = Drive()
    opened = it.ask("open", protocol=1, size=3, backend="gloo", folder=str(folder), seed=7)
    assert [rank["rank"] for rank in opened["ranks"]] == [0, 1, 2]
    yield it
    assert it.end() == 0
    assert it.others[-1] == {"event": "ended", "reason": "standard input was closed"}


def test_tensors_come_by_generator_values_base64_and_file_and_go_the_same_ways(
    drive: Drive, folder: Path
) -> None:
    drive.ask("create", name="g", dtype="int64", shape=[2], fill={"arange": "rank"})
    assert drive.ask("get", name="g", rank=2)["ranks"] == {
        "2": {"dtype": "int64", "shape": [2], "values": [2, 3]}
    }
    drive.ask("put", name="v", rank=1, dtype="float32", shape=[3], values=["NaN", "-Infinity", 0.5])
    assert drive.ask("get", name="v")["ranks"]["1"]["values"] == ["NaN", "-Infinity", 0.5]
    drive.ask("put", name="u", dtype="uint64", shape=[1], values=["18446744073709551615"])
    assert drive.ask("get", name="u", rank=0)["ranks"]["0"]["values"] == ["18446744073709551615"]
    bits = base64.b64encode(bytes(range(4))).decode()
    drive.ask("put", name="b", dtype="bfloat16", shape=[2], base64=bits)
    assert drive.ask("get", name="b", rank=0, form="base64")["ranks"]["0"]["base64"] == bits
    array = np.arange(1000, dtype=np.int32).reshape(10, 100)
    np.save(folder / "in.npy", array[:, ::-1])
    drive.ask("put", name="f", file="in.npy")
    assert drive.ask("get", name="f", form="file", rank=2)["ranks"]["2"]["file"] == "f-2.npy"
    assert np.array_equal(np.load(folder / "f-2.npy"), array[:, ::-1])
    np.save(folder / "bits.npy", np.array([0x3F80], np.uint16))
    drive.ask("put", name="bits", file="bits.npy", dtype="bfloat16")
    assert drive.ask("get", name="bits", rank=0)["ranks"]["0"]["values"] == [1.0]


def test_several_tensors_come_in_a_safetensors_file_and_go_in_one_each(drive: Drive, folder: Path) -> None:
    half = {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}
    header = json.dumps({"layer.half": half, "one": {**half, "shape": [1], "data_offsets": [4, 6]}}).encode()
    data = bytes.fromhex("803f00400040")
    (folder / "two.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    drive.ask("put", name="half", file="two.safetensors", tensor="layer.half")
    assert drive.ask("get", name="half", rank=2)["ranks"]["2"]["values"] == [1.0, 2.0]
    said = drive.ask("get", name="half", rank=2, form="safetensors")["ranks"]["2"]
    assert said == {"dtype": "bfloat16", "shape": [2], "file": "half-2.safetensors"}
    drive.ask("put", name="again", file="half-2.safetensors", dtype="bfloat16")
    assert drive.ask("get", name="again", rank=0)["ranks"]["0"]["values"] == [1.0, 2.0]


WRONG_TENSORS = [
    ({"dtype": "float32", "shape": [2], "values": [1]}, "1 values do not fill a tensor float32[2]"),
    ({"dtype": "float32", "shape": [2], "base64": "AAAA"}, "the bytes do not fill"),
    ({"dtype": "float32", "shape": [1], "base64": "?"}, "base64"),
    ({"dtype": "float32", "shape": [1], "values": ["one"]}, "'one' is no number"),
    ({"file": "../in.npy"}, "a file is named without its folder"),
    ({"file": "none.npy"}, "No such file"),
    ({"file": "two.safetensors"}, "two.safetensors has 2 tensors: name one as `tensor`: layer.half, one"),
    ({"file": "half-2.safetensors", "dtype": "int8"}, "half-2.safetensors holds bfloat16, not int8"),
    ({"file": "in.npy", "tensor": "x"}, "in.npy has one tensor"),
    ({"values": [1]}, "a tensor that is in no file has `dtype` and `shape`"),
]


@pytest.mark.parametrize(("fields", "said"), WRONG_TENSORS, ids=[it[1] for it in WRONG_TENSORS])
def test_tensors_that_cannot_be_made_are_refused(drive: Drive, fields: dict[str, Any], said: str) -> None:
    error = drive.fail("put", name="wrong", **fields)
    assert error["code"] == "INVALID_ARGUMENT"
    assert said in error["message"]
    assert "there is no tensor 'wrong'" in drive.fail("get", name="wrong")["message"]


def test_a_large_tensor_goes_by_file_alone(drive: Drive) -> None:
    drive.ask("create", name="large", dtype="float32", shape=[1 << 19])
    assert "take a file" in drive.fail("get", name="large", rank=0)["message"]
    assert "are no values" in drive.fail("get", name="large", rank=0, form="values")["message"]
    assert drive.ask("get", name="large", rank=0, form="file")["ranks"]["0"]["file"] == "large-0.npy"


def test_an_error_has_the_fields_of_the_protos(drive: Drive) -> None:
    drive.ask("create", name="x", dtype="float32", shape=[2], fill="rank")
    error = drive.fail("call", call="all_reduce", of="x", but={"1": {"op": "max"}})
    assert (error["code"], sorted(error["ranks"])) == ("MISMATCH", ["0", "1", "2"])
    at_0 = error["ranks"]["0"]
    assert (at_0["phase"], at_0["indefinite"], at_0["operation"]) == ("admission", False, "all_reduce")
    assert [it["rank"] for it in at_0["ranks"] if it["state"] == "disagrees"] == [1]


def test_answers_come_as_calls_end_and_await_holds_what_follows(drive: Drive) -> None:
    drive.ask("create", name="y", dtype="float32", shape=[2], fill="rank")
    slow = drive.send("call", call="barrier", absent=[2])
    status = drive.ask("status")["ranks"]
    assert slow not in drive.answers
    assert [it["state"] for it in status] == ["formed"] * 3
    until(lambda: drive.ask("status")["ranks"][0].get("missing") == [2])
    drive.send("each", each=[{"rank": 2, "call": "barrier"}])
    drive.ask("await", of=slow)
    assert slow in drive.answers
    assert drive.answer(slow)["ok"]["ranks"] == {"0": None, "1": None}


def test_a_call_is_withdrawn_by_the_id_of_its_request(drive: Drive) -> None:
    going = drive.send("call", call="barrier", absent=[2])
    until(lambda: bool(drive.ask("status")["ranks"][1]["pending"]))
    until(lambda: drive.ask("cancel", of=going, ranks=[1])["withdrawn"] == {"1": True})
    drive.send("cancel", of=going)
    error = drive.answer(going)["error"]
    assert error["ranks"]["1"]["code"] == "CANCELLED"


def test_expectations_are_judged_as_of_a_step(drive: Drive) -> None:
    drive.ask("create", name="z", dtype="float32", shape=[2], fill="rank")
    assert drive.ask("call", call="all_reduce", of="z", expect={"ok": {"all": 3}})["ranks"].keys() == {*"012"}
    error = drive.fail("call", call="all_reduce", of="z", expect={"ok": {"all": 4}})
    assert error["code"] == "UNEXPECTED"
    (failure,) = error["failures"]
    assert (failure["word"], failure["ranks"]) == ("ok", [0, 1, 2])
    expect = {"error": "PEER_MISSING", "names": {"missing": [1]}}
    # On a busy machine the others may take a while to come.
    drive.ask("call", call="barrier", absent=[1], timeout_ms=2000, expect=expect)


def test_groups_are_made_and_listed(drive: Drive) -> None:
    groups = drive.ask("groups", groups={"pair": [2, 0]})["groups"]
    assert groups == {"world": [0, 1, 2], "pair": [2, 0]}
    drive.ask("call", call="all_gather_object", group="pair", value="$rank", expect={"ok": {"all": [2, 0]}})


def test_a_rank_that_is_killed_is_replaced_and_events_tell(drive: Drive) -> None:
    going = drive.send("call", call="barrier", absent=[2], timeout_ms=60000)
    drive.ask("fault", kill=[2], at="waiting")
    error = drive.answer(going)["error"]
    assert {it["code"] for it in error["ranks"].values()} == {"PEER_LOST"}
    assert drive.ask("form", expect={"replaced": [2]})["replaced"] == [2]
    drive.ask("call", call="barrier", expect={"ok": True})
    until(lambda: bool(drive.ask("status")) and "replaced" in [it.get("event") for it in drive.others])


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"do": "opne"}, "expected something to do, got 'opne'; did you mean `open`?"),
        ({"do": "get", "nmae": "x"}, "unknown word `nmae` in request of get; did you mean `name`?"),
        ({"do": "call", "call": "barrier", "of": "x"}, "unknown word `of` in request of call"),
        ({"do": "call", "call": "barrier", "absent": [7]}, "rank 7 is no member of the group"),
        ({"do": "open", "protocol": 1, "size": 2}, "there is a gang already: `close` it"),
        ({"do": "open", "protocol": 2, "size": 2}, "expected 1, got 2"),
        ({"do": "fault", "slow": [1]}, "`slow` is done to a call: give it to `call` as `fault`"),
        ({"do": "fault", "hold": [1], "at": "first barrier"}, "`hold` is done to a call"),
        (
            {"do": "put", "name": "x", "rank": 9, "dtype": "int8", "shape": []},
            "there is no rank 9 in a gang of 3",
        ),
        ({"do": "await", "of": []}, "expected 0 or more; or text, got a list"),
    ],
)
def test_a_request_that_cannot_be_done_is_answered_and_nothing_else_happens(
    drive: Drive, request_: dict[str, Any], said: str
) -> None:
    error = drive.fail(**request_)
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["message"].startswith(said)


def run(text: str | bytes) -> tuple[int, list[Any]]:
    given = text if isinstance(text, bytes) else text.encode()
    done = subprocess.run([RANKBRIDGE, "drive"], input=given, capture_output=True, timeout=SECONDS)
    assert done.stderr == b""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_without_a_gang_everything_but_open_is_refused_and_the_session_goes_on() -> None:
    status, said = run('{"id": 1, "do": "status"}\n\n{"id": "a", "do": "close"}\n{"do": "status"}')
    assert status == 0
    assert [it["id"] for it in said] == [1, "a", None]
    assert said[0]["error"]["message"] == "there is no gang: `open` one"
    assert said[2]["error"]["message"] == "request needs `id`"


@pytest.mark.parametrize(
    ("text", "number", "quoted", "reason"),
    [
        (
            '{"id": 1, "do": "status"}\nhello\n{"id": 2, "do": "status"}\n',
            2,
            "hello",
            "no JSON: Expecting value",
        ),
        ("[1]\n", 1, "[1]", "no JSON object"),
        ("x" * 1000, 1, "x" * 100 + "...", "no JSON: Expecting value"),
        ('{"id": NaN}', 1, '{"id": NaN}', 'no JSON: NaN is written as a text: "NaN"'),
        ("[" * 100_000, 1, "[" * 100 + "...", "nested too deep"),
        (b"\xff\xfe\n", 1, "\ufffd\ufffd", "no JSON: "),
    ],
)
def test_a_line_that_is_no_request_is_answered_with_its_number_and_ends_the_session(
    text: str | bytes, number: int, quoted: str, reason: str
) -> None:
    status, said = run(text)
    error = said[-1]["error"]
    assert (status, error["code"], error["line"], error["text"]) == (2, "PROTOCOL", number, quoted)
    assert error["message"].startswith(reason)
    assert len(said) == number


def piped() -> subprocess.Popen[bytes]:
    return subprocess.Popen([RANKBRIDGE, "drive"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def test_a_line_without_an_end_is_refused_in_bounded_memory() -> None:
    with piped() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        sent = 0
        with contextlib.suppress(BrokenPipeError):
            while sent < 1 << 30:
                sent += process.stdin.write(b"x" * (1 << 16)) or 0
        assert sent < 2 * LONGEST_LINE
        said = json.loads(process.stdout.readline())
        assert said["error"]["message"].startswith("longer than 4,194,304 bytes")
        assert process.wait(SECONDS) == 2


def test_a_reader_that_stops_stops_the_driver_which_takes_no_more() -> None:
    line = b'{"id": 1, "do": "status"}\n' * 1000
    with piped() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = process.stdin
        sent = 0

        def send() -> None:
            nonlocal sent
            with contextlib.suppress(BrokenPipeError):
                while sent < 1 << 28:
                    sent += stdin.write(line) or 0

        sender = threading.Thread(target=send)
        sender.start()
        before = -1
        # What fits into both pipes, and no more.
        while before != sent:
            before = sent
            sender.join(1)
        assert 0 < sent < 1 << 20
        kilobytes = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4
        assert kilobytes < 200_000
        # Without a reader it ends, and its input breaks.
        process.stdout.close()
        process.wait(SECONDS)
        sender.join()


@pytest.mark.sampled
def test_a_gang_ends_with_a_driver_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBRIDGE_COMMAND", RANKBRIDGE)
    with piped() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"id": 1, "do": "open", "protocol": 1, "size": 2, "backend": "fake"}\n')
        (pid,) = {it["pid"] for it in json.loads(process.stdout.readline())["ok"]["ranks"]}
        process.kill()
        until(lambda: not Path(f"/proc/{pid}").exists())
