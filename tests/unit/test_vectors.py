"""The shared vectors are up to date, and Python's protobuf agrees with them."""

import base64
import json
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from tests.vectors.generate import FILES, FOLDER, text_of
from tests.vectors.messages import CLASSES
from tests.vectors.plain import from_plain, to_plain


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="ascii").splitlines()]


@pytest.mark.parametrize("name", sorted(FILES))
def test_generating_the_vectors_again_changes_nothing(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="ascii") == text_of(name)


def test_every_message_has_vectors() -> None:
    assert {line["message"] for line in lines_of("messages.jsonl")} == set(CLASSES)


def test_bytes_decode_to_the_fields_and_back() -> None:
    for line in lines_of("messages.jsonl"):
        encoded = base64.b64decode(line["bytes"])
        decoded = CLASSES[line["message"]].FromString(encoded)
        assert to_plain(decoded) == line["fields"]
        assert decoded.SerializeToString(deterministic=True) == encoded


def test_fields_encode_to_the_bytes() -> None:
    for line in lines_of("messages.jsonl"):
        message = CLASSES[line["message"]]()
        from_plain(message, line["fields"])
        assert message.SerializeToString(deterministic=True) == base64.b64decode(line["bytes"]), line


def test_noncanonical_bytes_decode_to_the_fields_and_encode_canonically() -> None:
    for line in lines_of("noncanonical.jsonl"):
        decoded = CLASSES[line["message"]].FromString(base64.b64decode(line["bytes"]))
        assert to_plain(decoded) == line["fields"], line["why"]
        canonical = base64.b64decode(line["canonical"])
        assert decoded.SerializeToString(deterministic=True) == canonical, line["why"]


@pytest.mark.parametrize("line", lines_of("malformed.jsonl"), ids=lambda line: str(line["why"]))
def test_malformed_bytes_are_refused(line: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        CLASSES[line["message"]].FromString(base64.b64decode(line["bytes"]))
