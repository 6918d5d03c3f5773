"""Writes what the clients have for each operation and error code, from the proto, into marked regions of their files.

python scripts/methods.py           writes the regions
python scripts/methods.py --check   changes nothing; fails if a region is not what this writes

A region begins with a comment that names a service, for example
`# --- of CollectiveService: written by scripts/methods.py`, and ends with `# --- end of CollectiveService`. A method
that its file has elsewhere is written by hand. `_sync` follows by scripts/unasync.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

import methods_begins
import methods_cli
import methods_elixir
import methods_errors
from described import ROOT, Documented, Operation, argument, files, flowing, refused, service
from rankbridge.v1 import options_pb2 as pb

CLIENT = ROOT / "pyclient" / "rankbridge"
CLI = ROOT / "server" / "rankbridge_server" / "cli" / "operations.py"
ELIXIR = ROOT / "elixir_client" / "lib" / "rank_bridge"

WIDTH = 108
"""Of a docstring's lines, without indentation."""

GIVEN = {
    pb.GIVES_NONE: "None",
    pb.GIVES_REF: "Ref",
    pb.GIVES_REF_OR_NONE: "Ref | None",
    pb.GIVES_REFS: "Any",
    pb.GIVES_REFS_OR_NONE: "Any",
    pb.GIVES_VALUE: "Any",
    pb.GIVES_VALUES: "list[Any]",
    pb.GIVES_VALUES_OR_NONE: "list[Any] | None",
    pb.GIVES_DICT: "dict[Any, Any]",
    pb.GIVES_REF_AND_SOURCE: "tuple[Ref, int]",
    pb.GIVES_VALUE_AND_SOURCE: "tuple[Any, int]",
    pb.GIVES_DICT_AND_SOURCE: "tuple[dict[Any, Any], int]",
}
"""What one rank is given, in Python's types."""

BY_LAYOUT = {
    pb.GIVES_REFS: ("Ref", "list[Ref]"),
    pb.GIVES_REFS_OR_NONE: ("Ref | None", "list[Ref] | None"),
}
"""What one rank is given as one tensor, and as a list."""
LAYOUTS = ('layout: Literal["concatenated", "stacked"] = "concatenated"', 'layout: Literal["list"]')
"""The parameter that says which."""

OF_GANG = {
    pb.BRINGS_REF: "refs: Sequence[Ref]",
    pb.BRINGS_VALUE: "values: Sequence[object]",
    pb.BRINGS_NUMBER: "values: Sequence[float]",
    pb.BRINGS_SOURCE_VALUE: "value: object",
    pb.BRINGS_SOURCE_VALUES: "values: Sequence[object]",
}
OF_RANK = {
    pb.BRINGS_REF: "ref: Ref",
    pb.BRINGS_VALUE: "value: object",
    pb.BRINGS_NUMBER: "value: float",
    pb.BRINGS_SOURCE_VALUE: "value: object = None",
    pb.BRINGS_SOURCE_VALUES: "values: Sequence[object] | None = None",
    pb.BRINGS_SOURCE_DICT: "tensors: Mapping[Any, Any] | None = None",
    pb.BRINGS_DICT: "tensors: Mapping[Any, Any]",
}
"""First parameters, by what is brought."""

EXPECTED = "expected: Expected | None = None"

TAKEN = {
    pb.BRINGS_VALUE: " Whatever `to_value` takes.",
    pb.BRINGS_SOURCE_VALUE: " Whatever `to_value` takes.",
}
"""What the client takes, by what is brought."""

NO_SOURCE = ("RankOutOfRangeError", "There is no such source. No rank was asked.")
CHECKED = {
    pb.BRINGS_NUMBER: [("InvalidArgumentError", "Something is no number. No rank was asked.")],
    pb.BRINGS_SOURCE_VALUE: [NO_SOURCE],
    pb.BRINGS_SOURCE_VALUES: [
        ("InvalidArgumentError", "It is no list of one for each member. No rank was asked."),
        NO_SOURCE,
    ],
}
"""What the client itself raises, by what is brought."""


def parameter(field: FieldDescriptorProto) -> str:
    """A field as a parameter, with type and default."""
    says, kind = argument(field), field.type_name.rpartition(".")[2]
    if field.type == FieldDescriptorProto.TYPE_ENUM:
        return f'{field.name}: {kind} = "{says.default}"'
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"{field.name}: Sequence[int] | None = None"
    if field.type == FieldDescriptorProto.TYPE_BOOL:
        return f"{field.name}: bool = False"
    if says.required:
        return f"{field.name}: int"
    if field.proto3_optional and not says.default:
        return f"{field.name}: int | None = None"
    return f"{field.name}: int = {says.default or 0}"


def tables(it: Operation) -> list[str]:
    """Arguments of a gang's method of which each member gets a row or a column."""
    own = [argument(field) for field in it.fields]
    return list(dict.fromkeys(says.row_of or says.column_of for says in own if says.row_of or says.column_of))


def named(it: Operation, *, of_gang: bool) -> list[str]:
    """Parameters that are given by name."""
    found = [
        parameter(field)
        for field in it.fields
        if not it.is_brought(field)
        and not (of_gang and (argument(field).row_of or argument(field).column_of))
    ]
    if of_gang:
        found += [f"{name}: Sequence[Sequence[int]] | None = None" for name in tables(it)]
    return [*found, EXPECTED] if it.options.brings == pb.BRINGS_EXPECTED else found


def name_of(parameter: str) -> str:
    """A parameter's name."""
    return parameter.partition(":")[0]


def passed(parameters: list[str]) -> str:
    """Parameters as they are passed on by name."""
    return "".join(f", {name}={name}" for name in map(name_of, parameters))


def method(
    name: str, first: str, by_name: list[str], last: str, gives: str, doc: list[str], body: list[str]
) -> str:
    """A method. `last`: a parameter after those by name. Without `await` in its body it is no coroutine."""
    is_coroutine = any("await" in line for line in body)
    head = signature(name, first, by_name, last, gives, is_coroutine=is_coroutine)
    return "\n".join([head, *(f"    {line}".rstrip() for line in [*doc, *body])])


def signature(name: str, first: str, by_name: list[str], last: str, gives: str, *, is_coroutine: bool) -> str:
    """A method's first line."""
    parameters = ["self", *([first] if first else []), *(["*", *by_name] if by_name else []), last]
    return f"{'async def' if is_coroutine else 'def'} {name}({', '.join(parameters)}) -> {gives}:"


def overloads(it: Operation, first: str, by_name: list[str], last: str, *, of_gang: bool) -> str:
    """Signatures of a coroutine whose layout decides what it gives; empty for any other."""
    written = []
    for gives, layout in zip(BY_LAYOUT.get(it.options.gives, ()), LAYOUTS, strict=False):
        own = [layout if name_of(each) == "layout" else each for each in by_name]
        gives = f"list[{gives}]" if of_gang else gives
        written.append(f"@overload\n{signature(it.kind, first, own, last, gives, is_coroutine=True)} ...\n")
    return "".join(written)


def python(text: str, names: list[str]) -> str:
    """A comment of the proto as Python says it: None, and code in two backticks, parameters in one."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", lambda it: it[0] if it[1] in names else f"`{it[0]}`", text)
    return re.sub(r"\bnone\b", "None", text)


def sentences(comment: str) -> list[str]:
    """The sentences of a comment."""
    return re.split(r"(?<=[.]) (?=[A-Z0-9`])", flowing(comment))


def meaning(it: Operation, field: FieldDescriptorProto) -> str:
    """What an argument is: the comment without what its default says."""
    comment, names = it.request.comments[field.name], [other.name for other in it.fields]
    drops = ("Unspecified: ", *(["Absent: "] if argument(field).default else []))
    kept = [it for it in sentences(comment) if not it.startswith(drops)]
    comment = re.sub(r"\b(Absent|Empty)(: | if )", r"None\2", " ".join(kept))
    if field.type != field.TYPE_ENUM:
        return comment
    # Its own names are texts in Python.
    return re.sub(r"`(\w+)`", lambda name: name[0] if name[1] in names else f'"{name[1]}"', comment)


def of_member(comment: str) -> str:
    """A sentence on the rank that is called, as the end of one on each member."""
    return re.sub(r"\b[Tt]his (rank|member)", "the member", f"{comment[0].lower()}{comment[1:]}")


def docstring(
    summary: str,
    more: list[str],
    arguments: list[tuple[str, str]],
    gives: str,
    raises: list[tuple[str, str]],
) -> list[str]:
    """A docstring's lines."""
    lines = [summary]
    for paragraph in more:
        lines += ["", *textwrap.wrap(paragraph, WIDTH, break_long_words=False)]
    for title, entries in (
        ("Args", arguments),
        ("Returns", [("", gives)] if gives else []),
        ("Raises", raises),
    ):
        if entries:
            lines += ["", f"{title}:"]
        for name, text in entries:
            whole = f"{name}: {text}" if name else text
            deeper = "    " if name else ""
            lines += textwrap.wrap(
                whole, WIDTH, initial_indent="    ", subsequent_indent="    " + deeper, break_long_words=False
            )
    if len(lines) == 1:
        return [f'"""{lines[0]}"""']
    return [f'"""{lines[0]}', *lines[1:], '"""']


def arguments(it: Operation, first: str, *, of_gang: bool) -> list[tuple[str, str]]:
    """Arguments and their meanings."""
    found = []
    if first:
        field = next(field for field in it.fields if it.is_brought(field))
        brought = it.brought_by_gang if of_gang else flowing(it.request.comments[field.name])
        brought = brought.replace("Id of this rank's tensor", "A ref of this rank")
        found.append((name_of(first), brought + TAKEN.get(it.options.brings, "")))
    for field in it.fields:
        if it.is_brought(field):
            continue
        says, comment = argument(field), meaning(it, field)
        if of_gang and says.row_of:
            found.append((says.row_of, f"A row for each member, in group order: {of_member(comment)}"))
        elif not (of_gang and says.column_of):
            found.append((field.name, comment))
    if it.options.brings == pb.BRINGS_EXPECTED:
        found.append(
            (
                name_of(EXPECTED),
                "A ref of this rank, of the dtype and shape that must come: it takes what comes. Or a pair of "
                "dtype and shape. None: whatever comes.",
            )
        )
    return [*found, ("**options", "See the class.")]


def raised(it: Operation) -> list[tuple[str, str]]:
    """Exceptions of the operation's own, and when they are raised."""
    return [
        ("".join(part.capitalize() for part in code.split("_")) + "Error", when) for code, when in refused(it)
    ]


def full(it: Operation, first: str, by_name: list[str], *, of_gang: bool) -> list[str]:
    """A docstring that says all."""
    names = [name_of(parameter) for parameter in [*([first] if first else []), *by_name]]
    summary, *rest = sentences(it.comment.split("\n\n")[0])
    paragraphs = [" ".join(rest)] if rest else []
    paragraphs += [flowing(part) for part in it.comment.split("\n\n")[1:]]
    gives = flowing(it.response.comments["value"])
    if of_gang:
        gives = f"For each member, in group order: {of_member(gives)}"
    errors = raised(it)
    if of_gang:
        together = "; ".join(f"``{name}``: {when}" for name, when in errors)
        errors = [("GangError", f"{together}.")] if together else []
        errors += CHECKED.get(it.options.brings, [])
        errors += [
            ("InvalidArgumentError", f"`{name}` are not a row for each member. No rank was asked.")
            for name in tables(it)
        ]
    else:
        errors = [(name, f"{when[0].upper()}{when[1:]}.") for name, when in errors]
    said = arguments(it, first, of_gang=of_gang)
    return docstring(
        python(summary, names),
        [python(paragraph, names) for paragraph in paragraphs],
        [(name, python(text, names)) for name, text in said] if len(said) > 1 else [],
        python(gives, names) if it.options.gives != pb.GIVES_NONE else "",
        [(name, python(text, names)) for name, text in errors],
    )


def short(summary: str, more: str) -> list[str]:
    """A docstring of one line, or of two where that is too long."""
    one = f"{summary} {more}"
    return docstring(one, [], [], "", []) if len(one) <= WIDTH - 3 else docstring(summary, [more], [], "", [])


def gang(it: Operation) -> str:
    """The method of ``AsyncGang``."""
    first, by_name = OF_GANG.get(it.options.brings, ""), named(it, of_gang=True)
    gives = GIVEN[it.options.gives]
    called = f'ops.OPERATIONS["{it.kind}"]{passed(by_name)}, **options'
    if it.options.gives == pb.GIVES_NONE:
        body = [
            'members = await self._members(options.get("group", "world"))',
            f"await self._channels.run_all(self._on_members(members, {called}))",
        ]
    elif it.options.brings == pb.BRINGS_REF:
        body = [f"return await self._channels.run_all(self._on_refs(refs, {called}))"]
    else:
        body = [f'return await self._called("{it.kind}", {name_of(first)}{passed(by_name)}, **options)']
    doc = full(it, first, by_name, of_gang=True)
    listed = "None" if it.options.gives == pb.GIVES_NONE else f"list[{gives}]"
    last = "**options: Unpack[CallOptions]"
    whole = method(it.kind, first, by_name, last, listed, doc, body)
    return overloads(it, first, by_name, last, of_gang=True) + whole


def rank(it: Operation) -> str:
    """The method of ``AsyncRank``; of what one rank does alone, also the one that begins it."""
    first, by_name = OF_RANK.get(it.options.brings, ""), named(it, of_gang=False)
    gives, last = GIVEN[it.options.gives], "**options: Unpack[CallOptions]"
    given = f"self._scope{', ' + name_of(first) if first else ''}{passed(by_name)}, **options"
    call = f'await self._run(ops.OPERATIONS["{it.kind}"]({given}))'
    match gives:
        case "None":
            body = [call]
        case "Any":
            body = [f"return {call}"]
        case _:
            body = [f"result: {gives} = {call}", "return result"]
    if not it.options.gang_call or tables(it):
        doc = full(it, first, by_name, of_gang=False)
    else:
        name = name_of(first)
        counts = f"`{name}` count{'' if name.endswith('s') else 's'} at the source alone. "
        counts = counts if first.endswith("= None") else ""
        doc = short(flowing(it.request.comment), f"{counts}See ``AsyncGang.{it.kind}``.")
    whole = method(it.kind, first, by_name, last, gives, doc, body)
    if it.options.gang_call:
        return overloads(it, first, by_name, last, of_gang=False) + whole
    begun = f'"{it.kind}"{", " + name_of(first) if first else ""}{passed(by_name)}, **options'
    doc = docstring(f"Begins `{it.kind}`, and returns as soon as the rank has it.", [], [], "", [])
    body = [f"return await self._begin({begun})"]
    return f"{whole}\n\n{method(f'i{it.kind}', first, by_name, last, f'AsyncWork[{gives}]', doc, body)}"


def program(it: Operation) -> str:
    """The method of ``Program``."""
    by_name = named(it, of_gang=False)
    see = f"See ``Gang.{it.kind}``."
    if it.options.gives in (pb.GIVES_REFS, pb.GIVES_REFS_OR_NONE):
        see += " What it gives as a list no step takes; it can be kept."
    doc = short(python(sentences(it.comment.split("\n\n")[0])[0], []), see)
    body = [f'return self._does("{it.kind}", refs, into{passed(by_name)})']
    return method(it.kind, "refs: Taken", by_name, "into: Named | None = None", "Named", doc, body)


REGION = re.compile(
    r"(?P<begin>^ *# --- of (?P<service>\w+): written by scripts/methods\.py.*?\n)"
    r"(?P<written>.*?)"
    r"(?P<end>^ *# --- end of (?P=service)\n)",
    re.DOTALL | re.MULTILINE,
)


def filled(path: Path, documented: list[Documented], write: Callable[[Operation], str]) -> str:
    """A Python file with its regions written anew, not formatted."""
    text = path.read_text()
    by_hand = set(re.findall(r"^    (?:async )?def (\w+)\(", REGION.sub("", text), re.MULTILINE))

    def region(found: re.Match[str]) -> str:
        _, operations = service(documented, found["service"])
        methods = (write(it) for it in operations if it.kind not in by_hand)
        written = "\n\n".join(textwrap.indent(it, "    ") for it in methods)
        return f"{found['begin']}\n{written}\n\n{found['end']}"

    return REGION.sub(region, text)


def formatted(path: Path, text: str) -> str:
    """Python source as ruff formats it."""
    command = ["ruff", "format", "--quiet", "--stdin-filename", str(path), "-"]
    return subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout


def written(documented: list[Documented]) -> Iterator[tuple[Path, str]]:
    """Every file with regions, as it must be."""
    for path, write in (
        (CLIENT / "_async" / "gang.py", gang),
        (CLIENT / "_async" / "rank.py", rank),
        (CLIENT / "_plan" / "program.py", program),
    ):
        yield path, formatted(path, filled(path, documented, write))
    coordinator = CLIENT / "_async" / "compat" / "vllm.py"
    yield coordinator, formatted(coordinator, methods_begins.written(coordinator, documented, GIVEN))
    exceptions = CLIENT / "errors.py"
    yield exceptions, formatted(exceptions, methods_errors.written(exceptions, documented))
    yield CLI, formatted(CLI, methods_cli.written(CLI, documented))
    yield from methods_elixir.written(ELIXIR, documented)


def main() -> int:
    """Writes or checks; gives the exit status."""
    check, stale = "--check" in sys.argv[1:], 0
    for path, text in written(files()):
        if path.read_text() != text:
            stale += 1
            print(f"{'not fresh' if check else 'written'}: {path.relative_to(ROOT)}")
            if not check:
                path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
