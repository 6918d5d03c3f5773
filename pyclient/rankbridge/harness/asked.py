"""What a test asked its gang for, as a scenario, as far as scenarios have words for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankbridge import RankBridgeError, Ref
from rankbridge._plan.operations import FirstArgument, given
from rankbridge._plan.tensor import as_tensor
from rankbridge.errors import GangError
from rankbridge.harness.gangs import Wanted
from rankbridge.harness.operations import DECLARED
from rankbridge.harness.wire import as_json, described_tensor
from rankbridge.harness.writing import NoWord, as_toml
from rankbridge.v1 import options_pb2 as pb

_READS = frozenset(
    {
        *("close", "describe", "describe_group", "destroy_groups", "events", "functions", "get", "group"),
        *(
            "groups",
            "hosts",
            "list_refs",
            "metrics",
            "pending",
            "ping",
            "poll",
            "record",
            "release",
            "session",
            "stacks",
            "status",
        ),
    }
)
"""What changes nothing, and needs no step."""

_SOURCE_WORDS: dict[int, str] = {
    pb.BRINGS_SOURCE_VALUE: "value",
    pb.BRINGS_SOURCE_VALUES: "values",
    pb.BRINGS_SOURCE_DICT: "tensors",
    pb.BRINGS_DICT: "tensors",
}


class _Wordless(Exception):
    """Something for which there is no word."""


class Asked:
    """Steps, one for each call of a test.

    Args:
        wanted: The gang.
        group: Name of the test's own group, which is the scenario's world.
    """

    def __init__(self, wanted: Wanted, group: str) -> None:
        """Has no step yet."""
        self._wanted = wanted
        self._group = group
        self._tensors: dict[str, Any] = {}
        self._groups: dict[str, list[int]] = {}
        self._steps: list[dict[str, Any]] = []
        self._names: dict[tuple[int, str], str] = {}
        self._pending: list[tuple[dict[str, Any], Any]] = []
        self._comments: list[str] = []

    def noting(self, name: str, rank: int | None, function: Callable[..., Any]) -> Callable[..., Any]:
        """Gives a method of the gang, or of one rank, that notes each call of it."""

        def call(*args: Any, **options: Any) -> Any:
            step: dict[str, Any] = {}
            # What is noted wrong fails no test.
            try:
                step = self._begun(name, rank, args, options)
            except Exception as error:
                self._say(f"gang.{name} was not noted: {error!r}")
            try:
                value = function(*args, **options)
            except RankBridgeError as error:
                step["expect"] = {"error": _codes(error)}
                raise
            try:
                self._ended(step, name, rank, args, value)
            except Exception as error:
                self._say(f"what gang.{name} gave was not noted: {error!r}")
            return value

        return function if name in _READS else call

    def fault(self, word: str, ranks: Sequence[int]) -> None:
        """Notes a fault."""
        self._steps.append({"each": [], "fault": {word: list(ranks)}})

    def form(self) -> None:
        """Notes a forming."""
        self._steps.append({"form": True})

    def as_scenario(self) -> str:
        """Gives all of it as a file. What the test expected stands in the test alone."""
        for step, pending in self._pending:
            if pending.done() and (error := pending.exception()) is not None:
                step["expect"] = {"error": _codes(error)}
        if not self._steps:
            return "# The test has called nothing for which scenarios have a word."
        gang: dict[str, Any] = {"size": self._wanted.size, "backend": self._wanted.backend}
        gang |= {"load": list(self._wanted.load)} if self._wanted.load else {}
        tables = {"groups": self._groups, "tensors": self._tensors}
        data = {
            "format": 1,
            "name": "what the test has asked for",
            "gang": gang,
            **{word: it for word, it in tables.items() if it},
            "step": self._steps,
        }
        try:
            return as_toml(data, self._comments).rstrip()
        except NoWord:
            return "# The test has called something with None, for which TOML has no word."

    def _begun(
        self, name: str, rank: int | None, args: Sequence[Any], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        if name in ("put", "new_group"):
            return {}
        begun = name == "start"
        operation = str(args[0]) if begun and args else name
        brought = args[1:] if begun else args
        step: dict[str, Any] = {}
        try:
            if operation not in DECLARED and operation != "call":
                raise _Wordless(f"{'gang' if rank is None else 'rank'}.{name}")
            words = {"call": "call_function" if operation == "call" else operation}
            words |= self._options(options)
            if rank is None:
                step = {**words, **self._of_all(words["call"], brought)}
            else:
                own = {} if "timeout_ms" not in words else {"timeout_ms": words.pop("timeout_ms")}
                step = {
                    "each": [{"rank": rank, **words, **self._of_one(words["call"], rank, brought)}],
                    **own,
                }
            if begun:
                step["wait"] = False
        except _Wordless as lacking:
            self._say(f"There is no word for {lacking}.")
            return {}
        self._steps.append(step)
        return step

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        words: dict[str, Any] = {}
        for name, value in options.items():
            match name, value:
                case "timeout", int() | float():
                    words["timeout_ms"] = max(1, round(value * 1000))
                case "group", _:
                    group = str(getattr(value, "name", value))
                    words |= {} if group == self._group else {"group": group}
                case "operation_id" | "timeout", _:
                    continue
                case _, bool() | int() | str():
                    words[name] = value
                case _, list() | tuple() if all(isinstance(it, int) for it in value):
                    words[name] = list(value)
                case _, _ if value is not None:
                    raise _Wordless(f"{name}={value!r}"[:100])
        return words

    def _of_all(self, operation: str, args: Sequence[Any]) -> dict[str, Any]:
        """Words for what a call of all members is given; of ranks that bring something else, in `but`."""
        if operation == "call_function":
            return self._arguments(args)
        if given(operation) not in (FirstArgument.REFS, FirstArgument.EACH) or not args:
            return self._of_one(operation, 0, args)
        if len(args[0]) != self._wanted.size:
            raise _Wordless(f"{operation} of a part of the gang")
        each = [self._of_one(operation, rank, [it, *args[1:]]) for rank, it in enumerate(args[0])]
        others = {str(rank): it for rank, it in enumerate(each) if it != each[0]}
        return {**each[0], **({"but": others} if others else {})}

    def _of_one(self, operation: str, rank: int, args: Sequence[Any]) -> dict[str, Any]:
        if not args:
            return {}
        if operation == "call_function":
            return {**self._arguments(args), "alone": True}
        if len(args) > 1:
            raise _Wordless(f"{operation} with {len(args)} arguments by place")
        brings = DECLARED[operation].brings
        if brings == pb.BRINGS_REF:
            return {"of": self._name(args[0])}
        if brings in (pb.BRINGS_VALUE, pb.BRINGS_NUMBER):
            return {"value": _value(args[0])}
        word = _SOURCE_WORDS.get(brings)
        if word is None:
            raise _Wordless(f"what {operation} is given by place")
        if word != "tensors":
            return {word: _value(args[0])}
        if not isinstance(args[0], Mapping):
            raise _Wordless(f"what {operation} is given")
        return {word: {str(key): self._name(it) for key, it in args[0].items()}}

    def _arguments(self, args: Sequence[Any]) -> dict[str, Any]:
        values = [_value(it) for it in args[1:]]
        return {"function": str(args[0]), **({"args": values} if values else {})}

    def _name(self, ref: Any) -> str:
        name = self._names.get((ref.rank, ref.id)) if isinstance(ref, Ref) else None
        if name is None:
            raise _Wordless(f"a tensor that no step has made: {ref!r}"[:120])
        return name

    def _ended(
        self, step: dict[str, Any], name: str, rank: int | None, args: Sequence[Any], value: Any
    ) -> None:
        if name == "start" and step:
            self._pending.append((step, value))
            return
        if name == "new_group":
            self._groups[str(args[0])] = [int(it) for it in args[1]]
            return
        refs = value if isinstance(value, list) else [value]
        if not refs or not all(isinstance(it, Ref) for it in refs):
            return
        made = f"tensor{len(self._names)}"
        if name == "put":
            self._put(made, refs, args[0] if rank is None else [args[0]])
            return
        self._names |= {(it.rank, it.id): made for it in refs}
        (step["each"][0] if rank is not None and step else step)["as"] = made

    def _put(self, made: str, refs: Sequence[Ref], values: Sequence[Any]) -> None:
        """Notes a tensor for each content, which every rank has; a rank brings its own."""
        known: dict[str, str] = {}
        for ref, value in zip(refs, values, strict=False):
            described = described_tensor(as_tensor(value))
            if "values" not in described:
                self._say(f"There is no word for the elements of {made}: here they are pseudorandom.")
                described["fill"] = {"seed": len(known)}
            name = known.setdefault(repr(described), f"{made}{'abcdefghijklmnopqrstuvwxyz'[len(known) % 26]}")
            self._tensors[name] = described
            self._names[ref.rank, ref.id] = name

    def _say(self, text: str) -> None:
        if text not in self._comments:
            self._comments.append(text)


def _value(value: Any) -> Any:
    if isinstance(value, Ref):
        raise _Wordless("a ref by place")
    return as_json(value)


def _codes(error: RankBridgeError) -> Any:
    if isinstance(error, GangError):
        return {str(it.rank): "OK" if it.error is None else str(it.error.code) for it in error.outcomes}
    return str(error.code)
