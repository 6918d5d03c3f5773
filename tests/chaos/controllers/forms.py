"""Refs, errors and outcomes in the form of the lines of the Elixir controller."""

from __future__ import annotations

from typing import Any, TypeAlias

from rankbridge import CallCancelledError, ErrorCode, RankBridgeError, RankDetail, Ref

Json: TypeAlias = dict[str, Any]


class ElixirError(RankBridgeError):
    """An error tuple of the Elixir client, in the form in which Python's errors are judged."""

    def __init__(self, code: ErrorCode, message: str, **fields: Any) -> None:
        """Has a code of its own; see the base class for the fields."""
        super().__init__(message, **fields)
        self.code = code


def value_of(answer: Json) -> Any:
    """What an answer gives.

    Raises:
        ElixirError: The client gave an error, or raised something, which has the code UNSPECIFIED.
        CallCancelledError: The caller was killed, as was asked for: what became of the call, the rank knows.
    """
    match answer:
        case {"ok": value}:
            return value
        case {"error": {"code": str(), "message": str()} as error}:
            raise _error(error)
        case {"gone": True}:
            raise CallCancelledError("its caller was killed", indefinite=True)
        case {"crash": str(crash)}:
            raise ElixirError(ErrorCode.UNSPECIFIED, f"the Elixir client crashed: {crash}", indefinite=True)
        case _:
            raise ElixirError(ErrorCode.UNSPECIFIED, f"no answer: {answer}", indefinite=True)


def ref_of(form: Json | None) -> Ref | None:
    """A ref, or the nil that stands for none."""
    if form is None:
        return None
    return Ref(
        form["id"], form["rank"], form["session_id"], form["dtype"], tuple(form["shape"]), form["device"]
    )


def one_ref(form: Json | None) -> Ref:
    """A ref where there must be one."""
    ref = ref_of(form)
    assert ref is not None, "nil instead of a ref"
    return ref


def ref_form(ref: Ref) -> Json:
    """A ref as the controller reads it."""
    return {
        "id": ref.id,
        "rank": ref.rank,
        "session_id": ref.session_id,
        "dtype": ref.dtype,
        "shape": list(ref.shape),
        "device": ref.device,
    }


def _error(form: Json) -> ElixirError:
    fields = dict(form)
    name, message, ranks = fields.pop("code"), fields.pop("message"), fields.pop("ranks")
    known = name in ErrorCode.__members__
    code = ErrorCode[name] if known else ErrorCode.UNSPECIFIED
    details = [RankDetail(**detail) for detail in ranks]
    return ElixirError(code, message if known else f"{name}: {message}", ranks=details, **fields)
