"""Whether what came of a step is what was expected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankbridge import RankBridgeError, Tensor
from rankbridge.errors import intervals
from rankbridge.harness import reference
from rankbridge.harness.calls import Called
from rankbridge.harness.floats import decode, encode
from rankbridge.harness.operations import DECLARED
from rankbridge.harness.tensors import Tensors


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that was not met.

    Attributes:
        word: Which.
        text: How, for people.
        ranks: On which ranks. Empty: on none in particular.
        error: With what a call failed. None: none did.
    """

    word: str
    text: str
    ranks: tuple[int, ...] = ()
    error: RankBridgeError | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Gives for example ``error: rank 2: expected MISMATCH, got PEER_MISSING``."""
        where = f"{intervals(self.ranks)}: " if self.ranks else ""
        return f"{self.word}: {where}{self.text}"


@dataclass
class Happened:
    """What came of a step.

    Attributes:
        calls: The calls, ended.
        took: Seconds.
        groups: Members of each group, in group order.
        tensors: What the ranks have.
        replaced: Ranks that have another process than in the generation before.
        error: How the forming failed. None: there was none, or it did not fail.
        results: What each call gave, with tensors in the place of refs; made once.
    """

    calls: Sequence[Called]
    took: float
    groups: Mapping[str, Sequence[int]]
    tensors: Tensors
    replaced: Sequence[int] = ()
    error: RankBridgeError | None = None
    results: dict[int, Any] = field(default_factory=dict)

    def result(self, call: Called) -> Any:
        """Gives what a call gave."""
        if id(call) not in self.results:
            assert call.outcome is not None
            self.results[id(call)] = self.tensors.fetched(call.outcome.value)
        return self.results[id(call)]

    def errors(self) -> list[tuple[int | None, RankBridgeError | None]]:
        """Gives rank and error of everything that was done."""
        if not self.calls:
            return [(None, self.error)]
        return [(it.rank, it.outcome.error if it.outcome else None) for it in self.calls]


def judge(happened: Happened, expect: Mapping[str, Any]) -> list[Failure]:
    """Gives what was not as expected. Of errors that were not expected, nothing else is said."""
    expected = {word: it for word, it in expect.items() if word != "sometimes"}
    if "error" not in expected and expected.get("ok") is not False:
        unexpected = _failed(happened)
        if unexpected:
            return unexpected
    return judged(happened, expected)


def judged(happened: Happened, expected: Mapping[str, Any]) -> list[Failure]:
    """Gives what was not as expected, word by word."""
    return _merged([failure for word, it in expected.items() for failure in _WORDS[word](happened, it)])


def _merged(failures: Sequence[Failure]) -> list[Failure]:
    """Puts ranks that say the same together."""
    alike: dict[tuple[str, str], list[Failure]] = defaultdict(list)
    for it in failures:
        alike[it.word, it.text].append(it)
    return [
        Failure(word, text, tuple(sorted({rank for it in them for rank in it.ranks})), them[0].error)
        for (word, text), them in alike.items()
    ]


def _failed(happened: Happened) -> list[Failure]:
    return _merged(
        [
            Failure("ok", f"expected success, got {error}", () if rank is None else (rank,), error)
            for rank, error in happened.errors()
            if error is not None
        ]
    )


def _of_rank(expected: Any, rank: int | None) -> Any:
    """Gives what is expected of one rank; None: nothing."""
    if isinstance(expected, dict) and any(it.isdecimal() for it in expected):
        return expected.get(str(rank))
    return expected


def _ok(happened: Happened, expected: Any) -> list[Failure]:
    if expected is True:
        return _failed(happened) or (_as_the_model_says(happened) if happened.calls else [])
    if expected is False:
        fine = [rank for rank, error in happened.errors() if error is None and rank is not None]
        return [Failure("ok", "expected a failure", tuple(fine))] if fine else []
    if failures := _failed(happened):
        return failures
    failures = []
    for call in happened.calls:
        wanted = expected["all"] if "all" in expected else expected.get(str(call.rank), _NOTHING)
        if wanted is not _NOTHING and (text := _unlike(happened.result(call), wanted)):
            failures.append(Failure("ok", text, (call.rank,)))
    return failures


_NOTHING = object()


def _unlike(got: Any, wanted: Any) -> str:
    """Says how a result differs from a literal of a scenario."""
    match got, wanted:
        # JSON has lists alone.
        case (list() | tuple(), list()) if len(got) == len(wanted):
            return next(filter(None, map(_unlike, got, wanted)), "")
        case (dict(), dict()) if got.keys() == wanted.keys():
            differs = ((key, _unlike(it, wanted[key])) for key, it in got.items())
            return next((f"{key}: {text}" for key, text in differs if text), "")
    if not isinstance(got, Tensor):
        return "" if got == wanted else f"expected {wanted!r}, got {got!r}"
    try:
        literal = np.asarray(wanted)
        whole = np.broadcast_to(literal, got.shape) if literal.ndim == 0 else literal
        expected = encode(whole, got.dtype)
    except (TypeError, ValueError):
        return f"expected {wanted!r}, got {got.dtype}{list(got.shape)}"
    if expected.shape == got.shape and np.array_equal(decode(expected), decode(got)):
        return ""
    return reference.difference(got, expected) or f"expected {wanted!r}"


def _as_the_model_says(happened: Happened) -> list[Failure]:
    failures = []
    try:
        expected = _predicted(happened)
    except reference.Unpredictable as error:
        return [Failure("ok", f"{error}; give the values, as `expect.ok = {{ all = 6 }}`")]
    for call in happened.calls:
        if text := reference.difference(happened.result(call), expected[id(call)]):
            failures.append(Failure("ok", text, (call.rank,)))
    return failures


def _predicted(happened: Happened) -> dict[int, Any]:
    """Gives what each call should give, by the model. Raises `reference.Unpredictable`."""
    queues: dict[str, dict[int, list[Called]]] = defaultdict(lambda: defaultdict(list))
    between: dict[tuple[Any, ...], list[Called]] = defaultdict(list)
    for call in happened.calls:
        if DECLARED[call.operation].of_group:
            queues[call.group][call.rank].append(call)
        else:
            between[_pair(call, happened.groups[call.group])].append(call)
    found: dict[int, Any] = {}
    for group, by_rank in queues.items():
        members = happened.groups[group]
        counts = {len(by_rank[rank]) for rank in members}
        if len(counts) != 1:
            raise reference.Unpredictable(f"not all members of {group} were called")
        for together in zip(*(by_rank[rank] for rank in members), strict=True):
            if len({it.operation for it in together}) != 1:
                raise reference.Unpredictable(f"members of {group} were called for several operations")
            given = reference.results(
                together[0].operation, [it.brought for it in together], [it.options for it in together]
            )
            found |= {id(call): it for call, it in zip(together, given, strict=True)}
    for (group, source, *_), calls in between.items():
        sends = [it for it in calls if it.operation.startswith("send")]
        receives = [it for it in calls if it.operation.startswith("recv")]
        if len(sends) != len(receives):
            raise reference.Unpredictable(f"{len(sends)} sends and {len(receives)} receives in {group}")
        for send, receive in zip(sends, receives, strict=True):
            found |= {id(send): None, id(receive): (send.brought, source)}
    return found


def _pair(call: Called, members: Sequence[int]) -> tuple[Any, ...]:
    """Gives what a send and its receive have in common."""
    own = list(members).index(call.rank)
    kind = call.operation.removeprefix("send").removeprefix("recv")
    tag = call.options.get("tag", 0)
    if call.operation.startswith("send"):
        return call.group, own, call.options["dst_rank_in_group"], kind, tag
    source = call.options.get("src_rank_in_group")
    if source is None:
        raise reference.Unpredictable("who sends to a receive from anyone is not known")
    return call.group, source, own, kind, tag


def _error(happened: Happened, expected: Any) -> list[Failure]:
    failures = []
    for rank, error in happened.errors():
        wanted = _of_rank(expected, rank)
        if wanted is None:
            continue
        codes = wanted if isinstance(wanted, list) else [wanted]
        got = "OK" if error is None else str(error.code)
        if got not in codes:
            said = "" if error is None else f": {error}"
            text = f"expected {' or '.join(codes)}, got {got}{said}"
            failures.append(Failure("error", text, () if rank is None else (rank,), error))
    return failures


def _of_errors(
    word: str, happened: Happened, expected: Any, check: Callable[[RankBridgeError, Any], str]
) -> list[Failure]:
    failures = []
    for rank, error in happened.errors():
        wanted = _of_rank(expected, rank)
        if wanted is not None and error is not None and (text := check(error, wanted)):
            failures.append(Failure(word, text, () if rank is None else (rank,)))
    return failures


def _indefinite(happened: Happened, expected: Any) -> list[Failure]:
    def check(error: RankBridgeError, wanted: Any) -> str:
        if error.indefinite is wanted:
            return ""
        return f"expected {str(wanted).lower()}, got {str(error.indefinite).lower()}: {error}"

    return _of_errors("indefinite", happened, expected, check)


def _sides(happened: Happened, expected: Any) -> list[Failure]:
    wanted = sorted(sorted(side) for side in expected)

    def check(error: RankBridgeError, _: Any) -> str:
        asked: dict[str, list[int]] = defaultdict(list)
        for detail in error.ranks:
            asked[detail.detail].append(detail.rank)
        got = sorted(sorted(side) for side in asked.values())
        return "" if got == wanted else f"expected {wanted}, got {got}: {error}"

    return _of_errors("sides", happened, expected, check)


def _names(happened: Happened, expected: Any) -> list[Failure]:
    def check(error: RankBridgeError, wanted: Mapping[str, Sequence[int]]) -> str:
        for state, ranks in wanted.items():
            named = sorted(it.rank for it in error.ranks if it.state == state)
            if named != sorted(ranks):
                return f"expected {state} {sorted(ranks)}, got {named}: {error}"
        return ""

    return _of_errors("names", happened, expected, check)


def _unchanged(happened: Happened, expected: Sequence[str], word: str = "unchanged") -> list[Failure]:
    failures = []
    for name in expected:
        for rank in happened.tensors.ranks(name):
            if word == "kept" and rank in happened.replaced:
                continue
            try:
                now = happened.tensors.now(name, rank)
            except RankBridgeError as error:
                failures.append(Failure(word, f"{name} cannot be read: {error}", (rank,)))
                continue
            if text := reference.difference(now, happened.tensors.seen(name, rank)):
                failures.append(Failure(word, f"{name} has changed: {text}", (rank,)))
    return failures


def _kept(happened: Happened, expected: Sequence[str]) -> list[Failure]:
    return _unchanged(happened, expected, "kept")


def _replaced(happened: Happened, expected: Sequence[int]) -> list[Failure]:
    got = sorted(happened.replaced)
    return [] if got == sorted(expected) else [Failure("replaced", f"expected {sorted(expected)}, got {got}")]


def _within_ms(happened: Happened, expected: int) -> list[Failure]:
    took = happened.took * 1000
    return (
        []
        if took <= expected
        else [Failure("within_ms", f"expected {expected} ms at most, took {took:.0f} ms")]
    )


def _raised(happened: Happened, expected: Mapping[str, Any]) -> list[Failure]:
    def check(error: RankBridgeError, wanted: Mapping[str, Any]) -> str:
        raised = error.raised
        if raised is None:
            return f"expected an exception of a function, got {error}"
        fits = {
            "type": raised.type == wanted.get("type"),
            "text": str(wanted.get("text")) in raised.text,
            "where": raised.where.startswith(str(wanted.get("where"))),
            "rank": raised.rank == wanted.get("rank"),
        }
        for word, value in wanted.items():
            if not fits[word]:
                got = f"{raised.type}: {raised.text} (rank {raised.rank}, {raised.where})"
                return f"expected {word} {value!r}, got {got}"
        return ""

    return _of_errors("raised", happened, expected, check)


_WORDS: dict[str, Callable[[Happened, Any], list[Failure]]] = {
    "ok": _ok,
    "error": _error,
    "indefinite": _indefinite,
    "sides": _sides,
    "names": _names,
    "unchanged": _unchanged,
    "kept": _kept,
    "replaced": _replaced,
    "within_ms": _within_ms,
    "raised": _raised,
}
