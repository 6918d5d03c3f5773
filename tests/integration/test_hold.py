"""Breakpoints on the ranks of a gang: by the Python client and by the command line."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.foreign_job import LATE_S
from tests.support.foreign_jobs import job, torchrun
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import (
    AbortedError,
    CallCancelledError,
    DeadlineExceededError,
    Gang,
    GangError,
    InvalidArgumentError,
    NotAllowedError,
    Rank,
    RankBridgeError,
    RankOutOfRangeError,
    UnknownOperationError,
)

PAGE = (Path(__file__).parents[2] / "docs" / "hold.md").read_text()
APP = str(Path(__file__).parents[1] / "support" / "apps" / "held.py")
SIZE = 3
WAIT_S = 30.0
BREAKPOINT = '"operation": "all_reduce"'


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    options = ["--load", APP, "--heartbeat-misses", "300"]
    with up(tmp_path_factory.mktemp("hold"), SIZE, "gloo", options) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, timeout=60.0) as gang:
        if any(it.generation_state != "formed" for it in gang.status()):
            gang.form()
        yield gang


def sums(gang: Gang, adding: Any) -> list[list[float]]:
    return [np.asarray(it).tolist() for it in gang.get(adding.result())]


def is_reached(rank: Rank) -> bool:
    try:
        return rank.status().pid != 0
    except RankBridgeError:
        return False


def numbers(gang: Gang) -> list[Any]:
    return gang.put([np.full(3, rank, np.float32) for rank in range(SIZE)])


def test_an_operation_is_held_looked_at_and_goes_on(gang: Gang) -> None:
    refs = numbers(gang)
    with gang.hold("kind=all_reduce") as hold:
        adding = gang.submit("all_reduce", refs, op="sum")
        held = hold.wait(timeout=WAIT_S)
        assert [it.rank for it in held] == [0, 1, 2]
        assert {(it.caller, it.operation, it.group, it.after) for it in held} == {
            ("controller", "all_reduce", "world", False)
        }
        assert all(it.site.split(":")[0].endswith("test_hold.py") for it in held)
        looks = hold.inspect(start=1, count=5)
        assert [it.inputs[0].spec for it in looks] == ["float32[3]"] * SIZE
        assert [(it.inputs[0].min, it.inputs[0].max) for it in looks] == [(0, 0), (1, 1), (2, 2)]
        elements = [it.inputs[0].slice for it in looks]
        assert [it.numpy().tolist() for it in elements if it is not None] == [[0, 0], [1, 1], [2, 2]]
        assert len({it.inputs[0].hash for it in looks}) == SIZE
        assert hold.differs_at(0, 1) == 0
        assert hold.resume() == SIZE
    assert sums(gang, adding) == [[3, 3, 3]] * SIZE


def test_a_call_of_the_users_code_is_held_where_nan_is_in_it_and_its_variables_show(gang: Gang) -> None:
    with gang.hold("caller=script has=nan") as hold:
        stepping = gang.function("step").start(3, spoiled=1)
        (held,) = hold.wait(1, timeout=WAIT_S)
        assert (held.rank, held.operation, held.why) == (1, "all_reduce", "NaN in input 0")
        assert held.site.split(":")[0] == APP
        (look,) = hold.inspect(count=2)
        assert (look.inputs[0].nans, look.call.held_id) == (1, held.held_id)
        frame = look.frames[0]
        assert frame.frame.function == "step"
        assert (frame.variables["number"], frame.variables["gradient"]) == ("2", "float32[4]")
        assert frame.variables["sums"] == "[3.0]"
        hold.resume()
        hold.wait(0, timeout=WAIT_S)
    assert [it[2] for it in stepping.result()] == [9.0] * SIZE


def test_skipped_by_all_a_collective_leaves_the_tensors_as_they_are(gang: Gang) -> None:
    with gang.hold("caller=script kind=all_reduce") as hold:
        stepping = gang.function("step").start(2)
        hold.wait(timeout=WAIT_S)
        hold.skip()
        hold.wait(timeout=WAIT_S)
        hold.resume()
        assert stepping.result() == [[1.0, 6.0]] * SIZE


def test_a_step_holds_the_next_call_of_each_rank(gang: Gang) -> None:
    with gang.hold("caller=script ranks=0-2") as hold:
        stepping = gang.function("step").start(2)
        first = hold.wait(timeout=WAIT_S)
        assert hold.step() == SIZE
        second = hold.wait(timeout=WAIT_S)
        assert [it.number - was.number for it, was in zip(second, first, strict=True)] == [1] * SIZE
        assert {it.why for it in second} == {"step"}
        hold.resume()
        assert stepping.result() == [[3.0, 6.0]] * SIZE


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_rank_is_held_after_a_call_of_the_users_code_that_took_long(gang: Gang, how: str) -> None:
    # The others may begin a second late, or take a second where they have nobody to wait for.
    with gang.hold("caller=script slower=1") as hold:
        waiting = gang.function("late").start(2.5, how)
        held = hold.wait([0, 2], timeout=WAIT_S)
        assert {(it.operation, it.group, it.after, it.caller) for it in held} == {
            ("all_reduce", "world", True, "script")
        }
        assert all(1 < float(it.why.split()[2]) < WAIT_S for it in held)
        assert {it.site.split(":")[0] for it in held} == {APP}
        assert len({it.number for it in held}) == 1
        (look, _) = hold.inspect()
        # It is over: the sum is there.
        assert (look.inputs[0].min, look.inputs[0].max) == (3, 3)
        assert look.frames[0].frame.function == "late"
        with pytest.raises(InvalidArgumentError, match="after the call"):
            hold.skip()
        assert hold.step() == 2
        assert waiting.result() == [3.0] * SIZE


def test_no_call_is_held_that_was_quicker(gang: Gang) -> None:
    with gang.hold("caller=script slower=100") as hold:
        assert gang.function("late").start(0.1, "sync").result() == [3.0] * SIZE
        assert hold.held() == []
        assert gang.function("hooked").start().result() == [[True, False]] * SIZE
    until(lambda: gang.function("hooked").start().result() == [[False, False]] * SIZE)


def test_a_rank_is_held_after_a_call_that_torch_has_found_to_differ(gang: Gang) -> None:
    with gang.hold("caller=script mismatch group=compared") as hold:
        comparing = gang.function("compared").start()
        held = hold.wait(timeout=WAIT_S)
        assert [(it.rank, it.operation, it.after, it.number) for it in held] == [
            (0, "all_reduce", True, 0),
            (1, "all_reduce", True, 0),
            (2, "broadcast", True, 0),
        ]
        assert {it.why for it in held} == {"its members did not agree"}
        hold.resume()
        assert all("Detected mismatch between collectives" in it for it in comparing.result())


def test_a_collective_that_is_to_fail_raises_in_the_users_code(gang: Gang) -> None:
    with gang.hold("kind=broadcast caller=script") as hold:
        catching = gang.function("caught").start()
        hold.wait(timeout=WAIT_S)
        hold.fail("the weights are wrong")
        assert (
            catching.result()
            == ["broadcast on world was held at a breakpoint, and failed there: the weights are wrong"] * SIZE
        )


@pytest.mark.parametrize(("how", "error"), [("skip", CallCancelledError), ("fail", AbortedError)])
def test_an_operation_can_be_skipped_or_fail(gang: Gang, how: str, error: type[GangError]) -> None:
    refs = numbers(gang)
    with gang.hold("kind=all_reduce") as hold:
        adding = gang.submit("all_reduce", refs, op="sum")
        hold.wait(timeout=WAIT_S)
        getattr(hold, how)("because I say so")
        with pytest.raises(error, match="because I say so") as caught:
            adding.result()
        assert not caught.value.indefinite
        assert hold.held() == []
    gang.barrier()


def test_a_function_is_held_before_it_begins(gang: Gang) -> None:
    with gang.hold("function=step") as hold:
        stepping = gang.function("step").start(1)
        held = hold.wait(timeout=WAIT_S)
        assert {(it.operation, it.function) for it in held} == {("call_function", "step")}
        hold.resume()
        assert stepping.result() == [[3.0]] * SIZE


def test_of_a_held_rank_the_doctor_and_the_error_say_so(gang: Gang) -> None:
    refs = numbers(gang)
    with gang.hold("kind=all_reduce ranks=2") as hold:
        waiting = [gang[rank].start("all_reduce", refs[rank], op="sum", timeout=60.0) for rank in range(SIZE)]
        hold.wait([2], timeout=WAIT_S)
        verdicts: list[rankbridge.Verdict] = []

        def is_late() -> bool:
            verdicts.append(gang.diagnose(patience=0.1))
            return verdicts[-1].kind == "never_called"

        # Not before it is later than it ever was.
        until(is_late)
        verdict = verdicts[-1]
        assert [(it.rank, it.condition) for it in verdict.culprits] == [(2, "held")]
        assert "held at a breakpoint" in str(verdict)
        hold.resume()
        for it in waiting:
            it.result()


def test_with_asyncio_it_is_the_same(running: RunningGang, gang: Gang) -> None:
    async def main() -> None:
        async with await rankbridge.aconnect(running.description, timeout=60.0) as same:
            refs = await same.put([np.full(3, rank, np.float32) for rank in range(SIZE)])
            async with await same.hold("kind=all_reduce") as hold:
                adding = asyncio.create_task(same.all_reduce(refs))
                held = await hold.wait(timeout=WAIT_S)
                assert [it.rank for it in held] == [0, 1, 2]
                await hold.resume()
                await adding

    asyncio.run(main())


def test_a_controller_that_dies_lets_go(running: RunningGang, gang: Gang) -> None:
    refs = numbers(gang)
    script = textwrap.dedent("""
        import sys
        import rankbridge

        with rankbridge.connect(sys.argv[1]) as gang, gang.hold("kind=all_reduce") as hold:
            print("set", flush=True)
            hold.wait(timeout=60)
            print("held", flush=True)
            sys.stdin.read()
    """)
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(running.endpoints_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "set\n"
        adding = gang.submit("all_reduce", refs, op="sum")
        assert holder.stdout.readline() == "held\n"
        os.kill(holder.pid, signal.SIGKILL)
        assert sums(gang, adding) == [[3, 3, 3]] * SIZE


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("kin=all_reduce", "did you mean `kind`"),
        ("kind", "`operation` of a breakpoint is wrong"),
        ("kind=a kind=b", "says `kind` twice"),
        ("number=0", "1 or more"),
        ("number=-1", "1 or more"),
        ("has=zero", "nan, inf, or nan,inf"),
        ("above=nan", "0 or more"),
        ("above=x", "a number"),
        ("slower=0", "more than 0"),
        ("slower=nan", "more than 0"),
        ("caller=me", "controller or script"),
        ("ranks=3-1", "as 0-2,5"),
        ("mismatch=1", "no value"),
        ("group='a", "cannot be read"),
        ("mismatch has=nan", "not both"),
    ],
)
def test_a_breakpoint_that_cannot_be_is_refused(gang: Gang, words: str, says: str) -> None:
    with pytest.raises((InvalidArgumentError, GangError)) as caught:
        gang.hold(words)
    assert says in str(caught.value) or says in caught.value.expected or "got both" in str(caught.value)
    gang.barrier()


def test_a_rank_that_the_gang_has_not_is_refused(gang: Gang) -> None:
    with pytest.raises(RankOutOfRangeError):
        gang.hold("ranks=1-7")


def test_who_may_only_drive_may_not_hold(running: RunningGang, gang: Gang) -> None:
    with rankbridge.connect(running.guest) as guest, pytest.raises((NotAllowedError, GangError)) as caught:
        guest.hold("kind=all_reduce")
    assert "NOT_ALLOWED" in str(caught.value)
    gang.barrier()


def test_what_is_asked_of_no_call_is_an_error(gang: Gang) -> None:
    with gang.hold("kind=scan") as hold:
        assert (hold.held(), hold.inspect(), hold.resume()) == ([], [], 0)
        with pytest.raises(DeadlineExceededError, match="not held in time"):
            hold.wait(timeout=0.1)
        with pytest.raises(UnknownOperationError):
            hold.differs_at(0, 1)
        with pytest.raises(InvalidArgumentError):
            hold.inspect(count=70_000)


def test_a_lost_rank_ends_its_breakpoint_and_the_others_go_on(gang: Gang) -> None:
    with gang.hold("kind=all_reduce") as hold:
        adding = gang.submit("all_reduce", numbers(gang), op="sum")
        hold.wait(timeout=WAIT_S)
        gang[1].kill()
        with pytest.raises(GangError):
            adding.result()
        until(lambda: hold.changed(timeout=0.1) == [] and 1 in hold.ended)
        until(lambda: is_reached(gang[1]))
        gang.form()
        assert sorted(hold.ended) == [1]


class Command:
    """`rankbridge break` as a process. `output`: what it prints, line by line."""

    def __init__(self, endpoints: Path, *words: str) -> None:
        command = [RANKBRIDGE, "break", *words, "--endpoints", str(endpoints)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def up_to(self, end: str) -> str:
        """What it prints, up to a line that has this."""
        found = ""
        for line in self.output:
            found += line
            if end in line:
                return found
        raise AssertionError(f"{end!r} has not come: {found}")


def test_the_command_holds_shows_and_lets_go(running: RunningGang, gang: Gang) -> None:
    it = Command(running.endpoints_file, "caller=script", "has=nan")
    with it.process:
        assert it.up_to("set") == "set on ranks 0-2\n"
        stepping = gang.function("step").start(3, spoiled=1)
        assert "rank 1 is held before all_reduce world#" in it.up_to("NaN in input 0")
        it.say("inspect")
        assert "rank 1\n  all_reduce dtype=float32 shape=[4] op=sum" in it.up_to("from 0: 2 nan 2 2")
        it.say("where")
        assert "step " in it.up_to("sums = [3.0]")
        it.say("jump")
        it.up_to("no command 'jump'; there are: held, inspect")
        it.say("continue")
        it.up_to("let go: 1")
        assert [each[2] for each in stepping.result()] == [9.0] * SIZE
        it.say("quit")
        assert it.process.wait(WAIT_S) == 0


def test_the_end_of_the_commands_input_lets_go(running: RunningGang, gang: Gang) -> None:
    it = Command(running.endpoints_file, "kind=barrier", "--json")
    with it.process:
        assert json.loads(it.output.readline()) == {"set": [0, 1, 2]}
        waiting = gang.submit("barrier")
        seen: set[int] = set()
        while len(seen) < SIZE:
            seen |= {each["rank"] for each in json.loads(it.output.readline())["held"]}
        assert it.process.stdin is not None
        it.process.stdin.close()
        assert it.process.wait(WAIT_S) == 0
        waiting.result()


def test_the_pages_example_prints_what_it_says(gloo4: RunningGang, tmp_path: Path) -> None:
    _, _, rest = PAGE.partition("<!-- hold: begin -->\n```python\n")
    example, end, _ = rest.partition("```\n<!-- hold: end -->")
    assert end
    (tmp_path / "endpoints.json").write_text(json.dumps(gloo4.description))
    (tmp_path / "program.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stderr
    *held, most, differs, result = done.stdout.splitlines()
    assert len(held) == 4
    assert held[0].startswith("rank 0 is held before all_reduce world#")
    assert held[0].endswith("program.py:7: breakpoint")
    assert (most, differs) == ("[2.0, 2.0, 2.0, 3.0]", "0")
    assert result == "[6. 8.]"


@contextmanager
def buf_curl(running: RunningGang, breakpoint: str) -> Iterator[subprocess.Popen[str]]:
    """The page's command on rank 0, with this breakpoint; on leaving, it has ended."""
    (command,) = re.findall(r"^```sh\n(buf curl .*?HoldService/Break)\n```", PAGE, re.MULTILINE | re.DOTALL)
    assert BREAKPOINT in command
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "socket": running.targets[0].removeprefix("unix:"),
    }
    curl = subprocess.Popen(
        ["bash", "-c", f"exec {command.replace(BREAKPOINT, breakpoint)}"],
        cwd=Path(__file__).parents[2],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    with curl:
        yield curl
        curl.send_signal(signal.SIGINT)
        curl.wait(WAIT_S)


@pytest.mark.parametrize("breakpoint", [BREAKPOINT, '"caller": "CALLER_SCRIPT", "slower_us": 300000'])
def test_buf_curl_is_a_debugger(running: RunningGang, gang: Gang, breakpoint: str) -> None:
    with buf_curl(running, breakpoint) as curl:
        assert curl.stdout is not None
        adding = stepping = None
        found = ""
        for line in curl.stdout:
            found += line
            if adding is None and '"set"' in found:
                adding = gang.submit("all_reduce", numbers(gang), op="sum")
                stepping = gang.function("late").start(2.0, "sync")
            if '"held"' in found and '"contract"' in found and '"sinceUs"' in found:
                break
        said = found.replace(" ", "")
        assert '"operation":"all_reduce"' in said
        assert ('"after":true' in said) == ("slower" in breakpoint)
    assert adding is not None
    assert stepping is not None
    assert sums(gang, adding) == [[3, 3, 3]] * SIZE
    assert stepping.result() == [3.0] * SIZE


def test_without_a_gang_the_command_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [RANKBRIDGE, "break", "--endpoints", str(tmp_path / "none.json")], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("rankbridge break: ")


@pytest.mark.sampled
def test_the_ranks_of_a_job_are_held_where_a_sidecar_is_attached(tmp_path: Path) -> None:
    with job(tmp_path, torchrun(2), ["--line", "after", "--pause", "0.01"]) as foreign:
        foreign.attached()
        foreign.goes_on()
        with rankbridge.connect(foreign.endpoints_file) as gang:
            with gang.hold("caller=script") as hold:
                held = hold.together(timeout=WAIT_S)
                assert len({it.number for it in held}) == 1
                assert {it.caller for it in held} == {"script"}
                assert all("foreign_job.py:" in it.site for it in held)
                (look, _) = hold.inspect()
                assert look.frames[-1].frame.file.endswith("foreign_job.py")
                (main,) = (it for it in look.frames if it.frame.function == "main")
                steps = int(main.variables["step"])
                # What it has said is read a moment later.
                until(lambda: foreign.count("step") == steps)
                # Controllers' own operations go on beside the job, which does not.
                gang.barrier()
                assert foreign.count("step") == steps
            foreign.goes_on()
        foreign.end()


@pytest.mark.sampled
def test_the_ranks_of_a_guarded_job_are_held_after_what_took_long_or_differed(tmp_path: Path) -> None:
    with job(tmp_path, torchrun(2), ["--line", "after", "--pause", "0.01", "--guard", "60"]) as foreign:
        foreign.attached()
        foreign.goes_on()
        with rankbridge.connect(foreign.endpoints_file) as gang:
            with gang.hold(f"caller=script kind=barrier slower={LATE_S / 2}") as hold:
                foreign.say("late")
                (held,) = hold.wait([0], timeout=WAIT_S)
                assert (held.operation, held.after) == ("barrier", True)
                assert "foreign_job.py:" in held.site
                assert float(held.why.split()[2]) > LATE_S / 2
                assert foreign.count("did", "late", "0") == 0
            until(lambda: foreign.count("did", "late") == 2)
            with gang.hold("caller=script mismatch") as hold:
                foreign.say("differ")
                both = hold.wait(timeout=WAIT_S)
                assert [(it.rank, it.operation, it.why) for it in both] == [
                    (rank, "all_reduce", "its members did not agree") for rank in (0, 1)
                ]
                assert {it.contract.split()[-1] for it in both} == {"op=sum", "op=max"}
            foreign.goes_on()
        foreign.end()
