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


def updated(update: str, *, column: int) -> list[str]:
    """`%{message | field: value}`, at that column."""
    one_line = f"%{{message | {update}}}"
    if column + len(one_line) <= LINE_LENGTH:
        return [one_line]
    return ["%{", "  message", f"  | {update}", "}"]


def separated(blocks: list[list[str]]) -> list[str]:
    """Blocks with one empty line between any two."""
    lines: list[str] = []
    for block in blocks:
        if lines:
            lines.append("")
        lines.extend(block)
    return lines
