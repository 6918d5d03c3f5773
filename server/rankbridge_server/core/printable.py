"""Text that others have written, for terminals, logs and pages."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with an escape, as in Python, for each character that moves the cursor, colours, or does not show."""
    return "".join(it if it.isprintable() else it.encode("unicode_escape").decode() for it in text)


def lines(text: str) -> str:
    """The same of a text that may have lines, as the errors of ranks do."""
    return "\n".join(map(printable, text.split("\n")))
