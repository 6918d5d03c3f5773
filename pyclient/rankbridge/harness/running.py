"""Runs cases: each on a gang of the pool, step after step, until one fails."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rankbridge import RankBridgeError, RankStatus
from rankbridge.harness.cases import Case
from rankbridge.harness.concrete import seed_of
from rankbridge.harness.gangs import NoGang, Pool, RunningGang, Wanted
from rankbridge.harness.judging import Failure, Happened, judge, judged
from rankbridge.harness.session import FORM_TIMEOUT_S, Going, Session, opened

Status = Literal["ok", "failed", "skipped"]


@dataclass
class Result:
    """What came of a case, or of one repetition of it.

    Attributes:
        name: Its name.
        file: The scenario's file.
        status: Whether it is as expected.
        line: Line of the step that failed. 0: none did.
        step: The step that failed, in words.
        failures: What was not as expected.
        reason: Why it was skipped.
        took: Seconds.
        case: Name of the case, without the repetition.
        events: What `up` reported meanwhile, of a case that failed.
        known: Why it is known to fail. Empty: it is not.
        repetition: Which one it is of, from 0. None: of all of them.
        labels: What else a report says of it, by name.
    """

    name: str
    file: str
    status: Status = "ok"
    line: int = 0
    step: str = ""
    failures: list[Failure] = field(default_factory=list)
    reason: str = ""
    took: float = 0.0
    case: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    known: str = ""
    repetition: int | None = None
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def counts_as_failed(self) -> bool:
        """Whether the run fails by it: it failed and was not known to, or was known to and did not."""
        return (self.status == "failed") != bool(self.known) and self.status != "skipped"


def results_of(cases: Sequence[Case]) -> int:
    """Gives how many results `run` gives."""
    return sum(it.repeat + len(_sometimes(it)) for it in cases)


def run(cases: Sequence[Case], pool: Pool) -> Iterator[Result]:
    """Runs cases, in their order, and gives every result as it comes.

    Raises:
        NoGang: A gang did not start.
    """
    for case in cases:
        seen: set[int] = set()
        result = Result(case.name, case.file)
        for repetition in range(case.repeat):
            result = run_once(case, repetition, pool, seen)
            yield result
        for place in _sometimes(case):
            yield _of_sometimes(case, place, place in seen, result.status == "skipped")


def _sometimes(case: Case) -> list[int]:
    """Gives the steps that expect something of one repetition or more."""
    steps = case.data["step"]
    return [place for place, it in enumerate(steps) if "sometimes" in it.get("expect", {})]


def _of_sometimes(case: Case, place: int, seen: bool, skipped: bool) -> Result:
    step = case.data["step"][place]
    result = Result(f"{case.name}: sometimes, in {_described(step, place)}", case.file, case=case.name)
    if skipped:
        result.status = "skipped"
    elif not seen:
        words = ", ".join(step["expect"]["sometimes"])
        result.status, result.line = "failed", case.lines[place]
        result.failures = [Failure("sometimes", f"{words}: in none of {case.repeat} repetitions")]
    return result


def run_once(
    case: Case, repetition: int, pool: Pool, seen: set[int], options: Mapping[str, int] | None = None
) -> Result:
    """Runs a case once. `seen`: takes the steps whose `sometimes` held. `options`: of its gang, beside its limits.

    Raises:
        NoGang: A gang did not start.
    """
    limits = tuple({**(options or {}), **case.limits}.items())
    gang = pool.gang(Wanted(case.size, case.backend, limits, case.load, case.points))
    name = f"{case.name} ({repetition + 1} of {case.repeat})" if case.repeat > 1 else case.name
    result = Result(name, case.file, case=case.name, repetition=repetition)
    started = time.monotonic()
    before = len(gang.reports.events)
    try:
        if lacking := _lacking(case, gang):
            result.status, result.reason = "skipped", lacking
            return result
        with opened(gang, case.timeout_ms / 1000, seed_of(case, repetition)) as session:
            _Run(case, session, result, seen).run()
    except NoGang as error:
        # What was found out before says more.
        if result.status == "ok":
            _failed(result, Failure("gang", str(error)))
        pool.drop(gang)
    except RankBridgeError as error:
        _failed(result, Failure("gang", str(error)))
        pool.drop(gang)
    finally:
        result.took = time.monotonic() - started
    if result.status == "failed":
        result.events = list(gang.reports.events)[before:]
    if gang.wanted.load:
        # What its modules keep is no other case's.
        pool.drop(gang)
    return result


def _failed(result: Result, *failures: Failure) -> None:
    result.status = "failed"
    result.failures += failures


def _lacking(case: Case, gang: RunningGang) -> str:
    """Says what the backend has not that the case needs; empty: nothing."""
    needs = case.data.get("needs")
    if not needs:
        return ""
    status: RankStatus = gang.client[0].status()
    if status.abilities is None:
        return ""
    lacking = [it for it in needs.get("operations", ()) if it not in status.abilities.collectives]
    lacking += [it for it in needs.get("dtypes", ()) if it not in status.abilities.dtypes]
    for op, dtypes in needs.get("reductions", {}).items():
        having = status.abilities.reductions.get(op, ())
        lacking += [f"{op} of {it}" for it in dtypes if it not in having]
    return f"the backend {status.backend} has no {', '.join(lacking)}" if lacking else ""


class _Run:
    """The steps of one case."""

    def __init__(self, case: Case, session: Session, result: Result, seen: set[int]) -> None:
        self.case = case
        self.session = session
        self.result = result
        self.seen = seen
        self.going: dict[str, tuple[int, Going]] = {}

    def run(self) -> None:
        """Prepares, and runs step after step until one fails. What still goes on at the end is judged then."""
        data = self.case.data
        try:
            self.session.new_groups(data.get("groups", {}))
            self.session.make(data.get("tensors", {}))
        except (RankBridgeError, ValueError, LookupError) as error:
            _failed(self.result, Failure("tensors", str(error)))
            return
        try:
            for place, step in enumerate(data["step"]):
                if not self._step(place, step):
                    return
        finally:
            for place, going in self.going.values():
                self._ended(place, going)

    def _step(self, place: int, step: Mapping[str, Any]) -> bool:
        """Runs a step; tells whether it was as expected."""
        if "form" in step:
            timeout = step["timeout_ms"] / 1000 if "timeout_ms" in step else FORM_TIMEOUT_S
            return self._judged(place, step, self.session.form(timeout), [])
        if "await" in step:
            begun, going = self.going.pop(step["await"])
            return self._ended(begun, going, step.get("expect", {}))
        try:
            going = self.session.begin(step)
        except LookupError as error:
            return self._note(place, [Failure("of", str(error.args[0]))])
        if step.get("wait") is False:
            self.going[step.get("name", f"step {place}")] = place, going
            return True
        return self._ended(place, going)

    def _ended(self, place: int, going: Going, more: Mapping[str, Any] | None = None) -> bool:
        happened, missed = self.session.end(going)
        step = {**going.step, "expect": {**going.step.get("expect", {}), **(more or {})}}
        return self._judged(place, step, happened, missed)

    def _judged(self, place: int, step: Mapping[str, Any], happened: Happened, missed: Sequence[str]) -> bool:
        expect = step.get("expect", {})
        failures = judge(happened, expect)
        if "sometimes" in expect:
            if not judged(happened, expect["sometimes"]):
                self.seen.add(place)
        else:
            failures += [Failure("fault", it) for it in missed]
        self.session.settle(happened)
        return self._note(place, failures)

    def _note(self, place: int, failures: list[Failure]) -> bool:
        if failures and self.result.status != "failed":
            self.result.line = self.case.lines[place]
            self.result.step = _described(self.case.data["step"][place], place)
            _failed(self.result, *failures)
        return not failures


def _described(step: Mapping[str, Any], place: int) -> str:
    what = step.get("call") or ("form" if "form" in step else "await" if "await" in step else "each")
    named = f" ({step['name']})" if "name" in step else ""
    return f"step {place + 1}, {what}{named}"
