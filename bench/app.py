"""The module that is loaded into the ranks that are measured."""

from __future__ import annotations

import rankbridge_server


@rankbridge_server.function
def empty() -> None:
    """Does nothing."""
