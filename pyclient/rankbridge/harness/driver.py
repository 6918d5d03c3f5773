"""What `rankbridge drive` does: requests from standard input, answers and events to standard output."""

from __future__ import annotations

import contextlib
import contextvars
import random
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rankbridge import RankBridgeError, at_site
from rankbridge.harness.answers import Answer, answer_of, failed, status_of, text_of, unexpected
from rankbridge.harness.consistency import check_load, check_step
from rankbridge.harness.faults import Injector, send
from rankbridge.harness.gangs import NoGang, RunningGang, Wanted, load_paths, start
from rankbridge.harness.judging import Failure, judge
from rankbridge.harness.lines import Malformed, Output, objects_of, when_hung_up
from rankbridge.harness.problems import Findings
from rankbridge.harness.recording import Recording
from rankbridge.harness.requests import PROTOCOL, record_of
from rankbridge.harness.session import FORM_TIMEOUT_S, Going, Session
from rankbridge.harness.wire import error_as_json, tensor_as_json, tensor_of
from rankbridge.harness.writing import NoWord

DEFAULT_TIMEOUT_MS = 10_000
MOST_AT_ONCE = 64
"""Requests that go on at once; more wait until one has ended."""

OK, MALFORMED = 0, 2


class Refused(Exception):
    """A request that cannot be done; nothing was."""


def drive(stdin: int = 0, stdout: int = 1, record: Path | None = None) -> int:
    """Answers requests until the input ends; then ends the gang.

    Args:
        stdin: File descriptor that requests come from.
        stdout: File descriptor that answers go to.
        record: Where the session is written as a scenario; a second gang's beside it.

    Returns:
        0, or 2 after a line that is no request.
    """
    output = Output(stdout)
    when_hung_up(stdin, output)
    driver = Driver(output, record)
    status = OK
    try:
        # The program's own lines are not known here.
        with at_site(""):
            for request in objects_of(stdin):
                driver.take(request)
    except Malformed as error:
        said = {"line": error.line, "text": error.text}
        output.write({"error": {"code": "PROTOCOL", "message": error.reason, **said}})
        status = MALFORMED
    finally:
        driver.close()
        output.close()
    return status


class Driver:
    """One gang, and the requests that go on.

    Requests begin in the order of their lines. Those that take time - calls, and what waits for something - are
    answered when they end, while others begin.
    """

    def __init__(self, output: Output, record: Path | None = None) -> None:
        """Has no gang yet."""
        self._output = output
        self._record = record
        self._recording: Recording | None = None
        self._opened = 0
        self._gang: RunningGang | None = None
        self._session: Session | None = None
        self._entered = contextlib.ExitStack()
        self._folder: Path | None = None
        self._room = threading.Semaphore(MOST_AT_ONCE)
        self._going: dict[Any, tuple[threading.Thread, Going | None]] = {}
        self._draws = random.Random(0)

    def take(self, request: Mapping[str, Any]) -> None:
        """Begins a request, and answers it, now or later."""
        found = Findings()
        record = record_of(dict(request))
        record.check(dict(request), (), found, False)
        identity = request.get("id")
        if not found.problems and identity in self._going:
            found.add(("id",), f"a request {identity!r} goes on already")
        if found.problems:
            self._refuse(identity, found)
            return
        try:
            answer = self._do(request)
        except Refused as error:
            answer = failed("INVALID_ARGUMENT", str(error))
        except (OSError, ValueError, LookupError) as error:
            answer = failed("INVALID_ARGUMENT", text_of(error))
        except NoGang as error:
            answer = failed("UNAVAILABLE", str(error))
        except RankBridgeError as error:
            answer = {"error": error_as_json(error)}
        if answer is not None:
            self._output.write({"id": identity, **answer})

    def close(self) -> None:
        """Waits for what goes on, which has deadlines, and ends the gang."""
        for thread, _ in list(self._going.values()):
            thread.join()
        self._close_gang()

    def _refuse(self, identity: Any, found: Findings) -> None:
        problems = [{"path": list(it.path), "text": it.text} for it in found.problems.values()]
        answer = failed("INVALID_ARGUMENT", str(problems[0]["text"]))
        answer["error"]["problems"] = problems
        known = isinstance(identity, (int, str)) and not isinstance(identity, bool)
        self._output.write({"id": identity if known else None, **answer})

    def _do(self, request: Mapping[str, Any]) -> Answer | None:
        do = request["do"]
        if do == "open":
            return self._open(request)
        if self._session is None or self._gang is None:
            raise Refused("there is no gang: `open` one")
        return _DO[do](self, self._session, request)

    def _later(self, identity: Any, answer: Callable[[], Answer], going: Going | None = None) -> None:
        """Answers a request in a thread, when `answer` gives something."""

        def run() -> None:
            try:
                made = answer()
            except RankBridgeError as error:
                made = {"error": error_as_json(error)}
            except (OSError, ValueError, LookupError) as error:
                made = failed("INVALID_ARGUMENT", text_of(error))
            self._going.pop(identity, None)
            self._output.write({"id": identity, **made})
            self._room.release()

        self._room.acquire()
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(run,), daemon=True)
        self._going[identity] = thread, going
        thread.start()

    def _open(self, request: Mapping[str, Any]) -> Answer:
        if self._gang is not None:
            raise Refused("there is a gang already: `close` it")
        folder = Path(request["folder"]) if "folder" in request else None
        if folder is not None and not folder.is_dir():
            raise Refused(f"there is no folder {request['folder']!r}")
        found = Findings()
        check_load(request.get("load", ()), Path.cwd(), ("load",), found)
        if found.problems:
            raise Refused(next(iter(found.problems.values())).text)
        limits = tuple(request.get("limits", {}).items())
        load = load_paths(request.get("load", ()), Path.cwd())
        gang = start(
            Wanted(
                request["size"], request.get("backend", "gloo"), limits, load, request.get("points", False)
            )
        )
        gang.reports.listener = self._output.event
        self._gang, self._folder = gang, folder
        self._entered.enter_context(gang.client.session())
        seed = request.get("seed", 0)
        self._session = Session(gang, request.get("timeout_ms", DEFAULT_TIMEOUT_MS) / 1000, seed)
        self._draws = random.Random(seed)
        self._opened += 1
        if self._record is not None:
            number = f"-{self._opened}" if self._opened > 1 else ""
            path = self._record.with_stem(f"{self._record.stem}{number}")
            self._recording = Recording(request, path)
        ranks = [{"rank": rank, "pid": pid} for rank, pid in sorted(gang.pids.items())]
        return {"ok": {"protocol": PROTOCOL, "ranks": ranks}}

    def _create(self, session: Session, request: Mapping[str, Any]) -> Answer:
        session.tensors.make(request["name"], request, session.groups["world"], session.seed)
        if self._recording is not None:
            self._recording.created(request)
        return {"ok": {}}

    def _put(self, session: Session, request: Mapping[str, Any]) -> Answer:
        for rank in self._ranks(session, request):
            tensor = tensor_of(request, rank, session.seed, self._folder)
            session.tensors.put(request["name"], rank, tensor)
            if self._recording is not None:
                self._recording.put(request, tensor)
        return {"ok": {}}

    def _get(self, session: Session, request: Mapping[str, Any]) -> Answer:
        name = request["name"]
        ranks = [request["rank"]] if "rank" in request else session.tensors.ranks(name)
        if not ranks:
            raise Refused(f"there is no tensor {name!r}")
        for rank in ranks:
            session.tensors.ref(name, rank)
        form = request.get("form", "")
        given = {
            str(rank): tensor_as_json(
                session.tensors.now(name, rank), form, self._folder, f"{name}-{rank}", name
            )
            for rank in ranks
        }
        return {"ok": {"ranks": given}}

    def _ranks(self, session: Session, request: Mapping[str, Any]) -> list[int]:
        size = len(session.groups["world"])
        if request.get("rank", 0) >= size:
            raise Refused(f"there is no rank {request['rank']} in a gang of {size}")
        return [request["rank"]] if "rank" in request else list(session.groups["world"])

    def _groups(self, session: Session, request: Mapping[str, Any]) -> Answer:
        session.new_groups(request.get("groups", {}))
        if self._recording is not None:
            self._recording.groups(request.get("groups", {}))
        return {"ok": {"groups": {name: list(ranks) for name, ranks in session.groups.items()}}}

    def _call(self, session: Session, request: Mapping[str, Any]) -> None:
        step = {name: it for name, it in request.items() if name not in ("id", "do")}
        found = Findings()
        check_step(step, session.groups, len(session.groups["world"]), found)
        if found.problems:
            self._refuse(request["id"], found)
            return
        going = session.begin(step)
        if self._recording is not None:
            self._recording.begun(request)

        def answer() -> Answer:
            happened, missed = session.end(going)
            if self._recording is not None:
                self._recording.ended(request["id"], happened)
            failures = judge(happened, step["expect"]) if "expect" in step else []
            failures += [Failure("fault", it) for it in missed]
            session.settle(happened)
            return answer_of(happened, failures, "expect" in step)

        self._later(request["id"], answer, going)

    def _await(self, session: Session, request: Mapping[str, Any]) -> Answer:
        """Begins nothing else until another request, or every one, has been answered."""
        going = [it for identity, it in list(self._going.items()) if request.get("of", identity) == identity]
        for thread, _ in going:
            thread.join()
        return {"ok": {}}

    def _cancel(self, session: Session, request: Mapping[str, Any]) -> Answer:
        _, going = self._going.get(request["of"], (None, None))
        withdrawn: dict[str, bool] = {}
        for call in going.begun.calls if going else ():
            if call.rank in request.get("ranks", [call.rank]) and call.operation_id:
                try:
                    withdrawn[str(call.rank)] = session.gang.client[call.rank].cancel(call.operation_id)
                except RankBridgeError:
                    # The rank has not got it yet, or is gone.
                    withdrawn[str(call.rank)] = False
        if self._recording is not None:
            self._recording.cancelled(request, [int(rank) for rank, it in withdrawn.items() if it])
        return {"ok": {"withdrawn": withdrawn}}

    def _fault(self, session: Session, request: Mapping[str, Any]) -> None:
        fault = {name: it for name, it in request.items() if name not in ("id", "do")}
        found = Findings()
        step = {"call": "barrier", "fault": fault}
        check_step(step, session.groups, len(session.groups["world"]), found, session.gang.wanted.backend)
        for word in ("cancel", "delay_ms", "slow", "quota", "hold"):
            if word in fault:
                found.add((word,), f"`{word}` is done to a call: give it to `call` as `fault`")
        if found.problems:
            self._refuse(request["id"], found)
            return
        injector = Injector(session.gang, [fault], self._draws)
        injector.arm()
        if self._recording is not None:
            self._recording.fault(fault)
        session.disturbed = True
        injector.begin()

        def answer() -> Answer:
            failures = injector.done(session.timeout)
            return failed("INVALID_ARGUMENT", failures[0]) if failures else {"ok": {}}

        self._later(request["id"], answer)

    def _form(self, session: Session, request: Mapping[str, Any]) -> Answer:
        timeout = request["timeout_ms"] / 1000 if "timeout_ms" in request else FORM_TIMEOUT_S
        happened = session.form(timeout)
        if self._recording is not None:
            self._recording.formed(request, happened)
        failures = judge(happened, request["expect"]) if "expect" in request else []
        if failures:
            return unexpected(failures)
        if happened.error is not None:
            return {"error": error_as_json(happened.error)}
        return {"ok": {"replaced": list(happened.replaced), "took_ms": round(happened.took * 1000, 1)}}

    def _status(self, session: Session, request: Mapping[str, Any]) -> Answer:
        return {"ok": {"ranks": status_of(session.gang)}}

    def _close(self, session: Session, request: Mapping[str, Any]) -> Answer:
        for thread, _ in list(self._going.values()):
            thread.join()
        self._close_gang()
        return {"ok": {}}

    def _close_gang(self) -> None:
        if self._gang is not None:
            send(list(self._gang.pids.values()), signal.SIGCONT)
            self._entered.close()
            self._gang.end()
        self._gang = self._session = None
        if self._recording is not None:
            try:
                self._recording.write()
            except (OSError, NoWord) as error:
                self._output.event({"event": "not recorded", "reason": str(error)})
        self._recording = None


_DO: dict[str, Callable[[Driver, Session, Mapping[str, Any]], Answer | None]] = {
    "create": Driver._create,
    "put": Driver._put,
    "get": Driver._get,
    "groups": Driver._groups,
    "call": Driver._call,
    "each": Driver._call,
    "await": Driver._await,
    "cancel": Driver._cancel,
    "fault": Driver._fault,
    "form": Driver._form,
    "status": Driver._status,
    "close": Driver._close,
}
