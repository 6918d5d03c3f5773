"""Both tables, of deviations and of translations, as cases are judged by them."""

from __future__ import annotations

from tests.conformance import deviations, translations
from tests.conformance.explanations import Explanation


def read() -> tuple[Explanation, ...]:
    """Reads both. Deviations come first: a translation explains nothing that one of them is about."""
    return (*deviations.read(), *translations.read())
