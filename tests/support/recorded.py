"""Records as ranks give them."""

from __future__ import annotations

from rankbridge import RecordedOperation


def recorded(called: float, **fields: object) -> RecordedOperation:
    """An operation in a record: a barrier of the world, half a second long, but for `fields`."""
    given: dict[str, object] = {
        "operation": "barrier",
        "group": "world",
        "operation_id": "",
        "session_id": "",
        "generation": 1,
        "contract": "barrier",
        "site": "a.py:1",
        "function": "",
        "announced": None,
        "entered": None,
        "done": 0.5,
        "phase": "data",
        "code": "",
        "message": "",
        "indefinite": False,
    }
    return RecordedOperation(called=called, **{**given, **fields})  # type: ignore[arg-type]
