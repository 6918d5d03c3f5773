"""Results for people and programs: TAP 14, JUnit, lines of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, Protocol
from xml.sax.saxutils import escape, quoteattr

from rankbridge.harness.running import Result

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Report(Protocol):
    """Takes results as they come."""

    def begin(self, count: int) -> None:
        """So many results are to come."""

    def result(self, result: Result) -> None:
        """One result."""

    def stop(self, reason: str) -> None:
        """No more results come, because of this."""


class Tap:
    """TAP 14, with a YAML block for each that failed."""

    def __init__(self, out: IO[str]) -> None:
        """Writes nothing yet."""
        self._out = out
        self._count = 0

    def begin(self, count: int) -> None:
        """Version and plan."""
        print(f"TAP version 14\n1..{count}", file=self._out, flush=True)

    def result(self, result: Result) -> None:
        """A test point."""
        self._count += 1
        ok = result.status != "failed"
        if result.known:
            ok = False
        point = f"{'ok' if ok else 'not ok'} {self._count} - {_tap(result.name)}"
        if result.status == "skipped":
            point += f" # SKIP {_tap(result.reason)}"
        elif result.known and not result.counts_as_failed:
            point += f" # TODO {_tap(result.known)}"
        lines = [point]
        if result.counts_as_failed:
            lines += ["  ---", *(f"  {it}" for it in _yaml(diagnostics(result))), "  ..."]
        print("\n".join(lines), file=self._out, flush=True)

    def stop(self, reason: str) -> None:
        """Bails out."""
        print(f"Bail out! {_tap(reason)}", file=self._out, flush=True)


class JsonLines:
    """A JSON object on a line for each result, and one at the begin."""

    def __init__(self, out: IO[str]) -> None:
        """Writes nothing yet."""
        self._out = out

    def begin(self, count: int) -> None:
        """How many come."""
        self._write({"event": "begin", "results": count})

    def result(self, result: Result) -> None:
        """One result."""
        self._write(
            {
                "event": "result",
                "name": result.name,
                "status": result.status,
                "ok": not result.counts_as_failed,
                "took_ms": round(result.took * 1000, 1),
                **({"known": result.known} if result.known else {}),
                **({"reason": result.reason} if result.reason else {}),
                **result.labels,
                **(diagnostics(result) if result.status == "failed" else {}),
            }
        )

    def stop(self, reason: str) -> None:
        """Why no more come."""
        self._write({"event": "stopped", "reason": reason})

    def _write(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), file=self._out, flush=True)


def diagnostics(result: Result) -> dict[str, Any]:
    """Gives all about a result that is not as it should be."""
    if result.known and result.status == "ok":
        return {"message": f"it is known to fail, and passes: {result.known}", "file": result.file}
    place = f"{result.file}:{result.line}" if result.line else result.file
    return {
        "message": str(result.failures[0]).partition("\n")[0] if result.failures else "",
        "at": place,
        "step": result.step,
        **result.labels,
        "failures": [{"word": it.word, "ranks": list(it.ranks), "text": it.text} for it in result.failures],
        "events": result.events,
    }


def junit(results: Sequence[Result]) -> str:
    """Gives results as JUnit's XML."""
    failed = sum(it.counts_as_failed for it in results)
    skipped = sum(it.status == "skipped" for it in results)
    took = sum(it.took for it in results)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="rankbridge" tests="{len(results)}" failures="{failed}" skipped="{skipped}" '
        f'time="{took:.3f}">',
    ]
    for it in results:
        head = f'<testcase classname={_attribute(it.file)} name={_attribute(it.name)} time="{it.took:.3f}"'
        if it.counts_as_failed:
            told = diagnostics(it)
            text = escape(_CONTROLS.sub("?", "\n".join(_yaml(told))))
            lines.append(
                f"  {head}><failure message={_attribute(told['message'])}>{text}</failure></testcase>"
            )
        elif it.status == "skipped" or it.known:
            lines.append(f"  {head}><skipped message={_attribute(it.reason or it.known)}/></testcase>")
        else:
            lines.append(f"  {head}/>")
    return "\n".join([*lines, "</testsuite>", ""])


def _attribute(text: str) -> str:
    return quoteattr(_CONTROLS.sub("?", text))


def _tap(text: str) -> str:
    """Gives a text on one line, with what means something to TAP escaped."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("#", "\\#")


def _yaml(value: Any, key: str = "") -> Iterator[str]:
    """Gives a value as lines of YAML. Texts of several lines are blocks; others as JSON writes them."""
    start = f"{key}:" if key else ""
    match value:
        case dict() if value and not key:
            for name, it in value.items():
                yield from _yaml(it, str(name))
        case dict() if value:
            yield start
            for name, it in value.items():
                yield from (f"  {line}" for line in _yaml(it, str(name)))
        case list() if value and any(isinstance(it, dict) for it in value):
            yield start
            for it in value:
                first, *rest = _yaml(it)
                yield f"  - {first}"
                yield from (f"    {line}" for line in rest)
        case str() if "\n" in value and not _CONTROLS.search(value):
            yield f"{start} |-"
            yield from (f"  {line}" for line in value.split("\n"))
        case _:
            yield f"{start} {json.dumps(value)}".strip()
