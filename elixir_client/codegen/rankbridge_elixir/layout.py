"""Line breaks as `mix format` sets them."""

LINE_LENGTH = 98


def indented(lines: list[str], width: int) -> list[str]:
    """The lines moved to the right; empty ones stay empty."""
    return [" " * width + line if line else "" for line in lines]


def heredoc(attribute: str, lines: list[str]) -> list[str]:
    """`@moduledoc` or `@doc` with its text."""
    return [f'@{attribute} """', *lines, '"""']


def union(head: str, members: list[str], *, column: int, nest: int, tail: str = "") -> list[str]:
    """`head a | b | c` on as few lines as fit.

    `column` is the column at which `head` begins, `nest` the column of what is broken off, `tail` what
    follows the last member on its line (a comma). Lines come without the indentation of `column`.
    """
    one_line = f"{head} {' | '.join(members)}{tail}"
    if column + len(one_line) <= LINE_LENGTH:
        return [one_line]
    shift = " " * (nest - column)
    rest = f"{' | '.join(members)}{tail}"
    if nest + len(rest) <= LINE_LENGTH:
        return [head, shift + rest]
    broken = [members[0], *(f"| {member}" for member in members[1:])]
    return [head, *(shift + line for line in broken[:-1]), shift + broken[-1] + tail]


def updated(
    field: str, value: str, *, column: int, inside: tuple[str, list[str], str] | None = None
) -> list[str]:
    """`%{message | field: value}`, at that column.

    `inside`: the value as what it opens with, its parts, and what it closes with, if it can be broken there.
    """
    one_line = f"%{{message | {field}: {value}}}"
    if column + len(one_line) <= LINE_LENGTH:
        return [one_line]
    return ["%{", "  message", *_update(field, value, column + 2, inside), "}"]


def _update(field: str, value: str, column: int, inside: tuple[str, list[str], str] | None) -> list[str]:
    one_line = f"| {field}: {value}"
    if column + len(one_line) <= LINE_LENGTH:
        return [f"  {one_line}"]
    if inside is not None and inside[0] == "[":
        # A list is broken where it begins, and not before it.
        return [f"  | {field}: [", f"      {', '.join(inside[1])}", "    ]"]
    if inside is None or column + 4 + len(value) <= LINE_LENGTH:
        return [f"  | {field}:", f"      {value}"]
    opening, parts, closing = inside
    lines = [f"       {part}," for part in parts]
    lines[0] = f"      {opening}{parts[0]},"
    lines[-1] = f"       {parts[-1]}{closing}"
    return [f"  | {field}:", *lines]


def separated(blocks: list[list[str]]) -> list[str]:
    """Blocks with one empty line between any two."""
    lines: list[str] = []
    for block in blocks:
        if lines:
            lines.append("")
        lines.extend(block)
    return lines
