"""Elixir's declarations of operations, and its functions of collectives, for scripts/methods.py."""

from __future__ import annotations

import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from described import (
    Documented,
    Operation,
    argument,
    flowing,
    message,
    refused,
    service,
    services,
    snake,
)
from rankbridge.v1 import options_pb2 as pb

WIDTH = 112

TAKES = {
    pb.BRINGS_NOTHING: "nothing",
    pb.BRINGS_REF: "refs",
    pb.BRINGS_VALUE: "values",
    pb.BRINGS_NUMBER: "numbers",
    pb.BRINGS_SOURCE_VALUE: "source_value",
    pb.BRINGS_SOURCE_VALUES: "source_values",
    pb.BRINGS_SOURCE_DICT: "source_dict",
    pb.BRINGS_DICT: "dict",
    pb.BRINGS_EXPECTED: "expected",
    pb.BRINGS_CALLS: "calls",
    pb.BRINGS_PROGRAM: "program",
    pb.BRINGS_GRAPH: "graph",
    pb.BRINGS_ARGUMENTS: "arguments",
}
GIVES = {pb.BRINGS_CALLS: "calls", pb.BRINGS_PROGRAM: "kept", pb.BRINGS_GRAPH: "recorded"}
"""What is given, by what is brought; of all others `:each`, or `:nothing`."""

TYPES = {
    pb.GIVES_NONE: ":ok",
    pb.GIVES_REF: "[Ref.t()]",
    pb.GIVES_REF_OR_NONE: "[Ref.t() | nil]",
    pb.GIVES_REFS: "[Ref.t()] | [[Ref.t()]]",
    pb.GIVES_REFS_OR_NONE: "[Ref.t() | [Ref.t()] | nil]",
}
"""What the members of a group are given."""

ENUMS = {"GatherLayout": "layout"}
"""Kinds of enums that have another name."""


def option(field: Field) -> tuple[str, str]:
    """Kind and default of an option, as Elixir."""
    says = argument(field)
    if field.type == Field.TYPE_ENUM:
        name = field.type_name.rpartition(".")[2]
        return ENUMS.get(name, snake(name)), f":{says.default}"
    if field.label == Field.LABEL_REPEATED:
        return "sizes", "nil"
    if field.type == Field.TYPE_BOOL:
        return "boolean", "false"
    if field.type == Field.TYPE_STRING:
        return field.name, "nil"
    own = field.proto3_optional and not says.default
    default = "nil" if own or says.required else says.default or "0"
    if field.name.endswith("rank_in_group"):
        return ("any_" if own else "") + "rank_in_group", default
    return ("own_" if own else "") + field.name, default


def options(it: Operation) -> dict[str, dict[str, tuple[str, str]]]:
    """Kinds and defaults by the key of a declaration, and by name."""
    if it.options.brings == pb.BRINGS_PROGRAM:
        return {"options": {"keep": ("keep", "[]")}}
    if it.options.brings == pb.BRINGS_ARGUMENTS:
        # The rest is what is brought, but that one rank is called alone.
        alone = next(field for field in it.fields if field.type == Field.TYPE_BOOL)
        function = next(field for field in it.fields if field.type == Field.TYPE_STRING)
        return {
            "options": {function.name: option(function)},
            "of_rank": {alone.name: option(alone)},
        }
    found: dict[str, dict[str, tuple[str, str]]] = {"options": {}, "of_gang": {}, "of_rank": {}}
    if it.options.brings not in GIVES:
        for field in it.fields:
            says = argument(field)
            if says.row_of:
                found["of_gang"][says.row_of] = ("rows_of_sizes", "nil")
            if not it.is_brought(field):
                found["of_rank" if says.row_of or says.column_of else "options"][field.name] = option(field)
    return found


def clause(it: Operation) -> str:
    """The clause of `of/1` for an operation."""
    entries = [f"rpc: V1.{it.service}.{it.kind}()", f"takes: :{TAKES[it.options.brings]}"]
    if not it.options.gang_call:
        entries.append("called_on: :rank")
    elif it.options.brings in GIVES:
        entries.append(f"gives: :{GIVES[it.options.brings]}")
    elif it.options.gives == pb.GIVES_NONE:
        entries.append("gives: :nothing")
    for key, those in options(it).items():
        if those:
            listed = ", ".join(f"{name}: {{:{kind}, {default}}}" for name, (kind, default) in those.items())
            entries.append(f"{key}: [{listed}]")
    return f"def of(:{it.kind}), do: %__MODULE__{{{', '.join(entries)}}}"


def declarations(documented: list[Documented]) -> str:
    """The names of all operations that have an RPC, and their clauses."""
    by_request = {
        it.request.proto.name: it for name in services(documented) for it in service(documented, name)[1]
    }
    fields = message(documented, "Operation").proto.field
    operations = [by_request.get(field.type_name.rpartition(".")[2]) for field in fields]
    known = [it for it in operations if it is not None]
    names = f"@names [{', '.join(f':{it.kind}' for it in known)}]"
    said = '@doc "Everything about the operation of a name."\n@spec of(atom()) :: t()'
    return "\n\n".join([names, said, *map(clause, known)])


def elixir(text: str, names: list[str]) -> str:
    """A comment of the proto as Elixir says it: atoms, and nil."""
    text = re.sub(r"`(\w+)`", lambda it: f"`:{it[1]}`" if it[1] in names else it[0], text)
    text = re.sub(r"\b(Absent|Empty|none|None)\b", "nil", text)
    return re.sub(r"\b(True|False):", lambda it: f"{it[1].lower()}:", text)


def function(it: Operation, of_gang: str) -> str:
    """A function on a gang. `of_gang`: what the members bring, as the doc says it."""
    brings, own = it.options.brings == pb.BRINGS_REF, options(it)
    both = {**own["options"], **own["of_gang"]}
    names = [*both, *re.findall(r"`(\w+)`", " ".join(it.request.comments[name] for name in it.enums))]
    paragraphs = [flowing(part) for part in it.comment.split("\n\n")]
    gives = flowing(it.response.comments["value"])
    paragraphs += [f"`refs`: {of_gang[0].lower()}{of_gang[1:]}"] if brings else []
    paragraphs.append(f"Gives each member: {gives[0].lower()}{gives[1:]}" if brings else "Gives `:ok`.")
    lines = [line for part in paragraphs for line in ("", *textwrap.wrap(elixir(part, names), WIDTH))][1:]
    if both:
        lines += ["", "Options:", ""]
    for name, (_, default) in both.items():
        field = next(field for field in it.fields if name in (field.name, argument(field).row_of))
        comment = flowing(it.request.comments[field.name])
        comment = re.sub(r" Unspecified: [^.]*\.", "", comment)
        rows = "a row for each member, in group order: " if name != field.name else ""
        text = elixir(f"`{name}` - {rows}{comment[0].lower()}{comment[1:]}", names)
        said = text if default == "nil" else f"{text.rstrip('.')} (default `{default}`)."
        lines += textwrap.wrap(said, WIDTH, initial_indent="  * ", subsequent_indent="    ")
    errors = "; ".join(f"`:{code.lower()}`: {elixir(when, names)}" for code, when in refused(it))
    if errors:
        lines += ["", *textwrap.wrap(f"Errors of its own: {errors}.", WIDTH)]
    doc = "\n".join(['@doc """', *lines, '"""'])
    value = TYPES[it.options.gives]
    types, refs, given = ("[Ref.t()], ", "refs, ", "refs") if brings else ("", "", "nil")
    entry = "call_without_value" if value == ":ok" else "call"
    return f"""{doc}
spec_with_bang {it.kind}(Gang.gang(), {types}keyword()) :: {value}

def {it.kind}(gang, {refs}opts \\\\ []) do
  Entry.{entry}(gang, :{it.kind}, opts, fn view -> run(view, :{it.kind}, {given}, opts) end)
end"""


REGION = re.compile(
    r"(?P<begin>^ *# --- of (?P<name>\w+): written by scripts/methods\.py.*?\n)"
    r".*?"
    r"(?P<end>^ *# --- end of (?P=name)\n)",
    re.DOTALL | re.MULTILINE,
)


def written(folder: Path, documented: list[Documented]) -> Iterator[tuple[Path, str]]:
    """The two files, as they must be."""
    collectives = service(documented, "CollectiveService")[1]
    functions = "\n\n".join(function(it, it.brought_by_gang) for it in collectives)
    for path, inside in (
        (folder / "operations" / "declaration.ex", declarations(documented)),
        (folder / "collectives.ex", functions),
    ):
        indented = textwrap.indent(inside, "  ").replace("\\", "\\\\")
        text = REGION.sub(rf"\g<begin>\n{indented}\n\n\g<end>", path.read_text())
        yield path, formatted(folder, text)


def formatted(folder: Path, text: str) -> str:
    """Elixir source as its formatter writes it."""
    command = ["mix", "format", "-"]
    return subprocess.run(
        command, cwd=folder.parents[1], input=text, text=True, check=True, stdout=subprocess.PIPE
    ).stdout
