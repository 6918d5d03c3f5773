"""The JSON Schema and the page have every word, and operations are those of the proto."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rankbridge.harness.kinds import records_in
from rankbridge.harness.operations import DECLARED
from rankbridge.harness.schema import page, schema
from rankbridge.harness.vocabulary import SCENARIO
from rankbridge.v1.operation_service_pb2 import Operation

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_what_is_committed_is_what_the_vocabulary_says() -> None:
    assert json.loads((DOCS / "scenario.schema.json").read_text()) == schema()
    assert (DOCS / "scenarios.md").read_text().splitlines() == list(page())


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    made = schema()

    def references(it: Any) -> list[str]:
        if isinstance(it, dict):
            own = [it["$ref"]] if isinstance(it.get("$ref"), str) else []
            return own + [ref for value in it.values() for ref in references(value)]
        return [ref for value in it for ref in references(value)] if isinstance(it, list) else []

    assert {it.removeprefix("#/$defs/") for it in references(made)} == set(made["$defs"])
    assert set(made["$defs"]) == set(records_in(SCENARIO))


def test_operations_and_arguments_are_the_protos() -> None:
    assert set(Operation.DESCRIPTOR.fields_by_name) - set(DECLARED) == {
        *("coalesce", "replay", "enqueue", "dequeue", "ping", "run_program")
    }
    for name, it in DECLARED.items():
        request = Operation.DESCRIPTOR.fields_by_name[name].message_type
        assert request is not None
        fields = {field.name for field in request.fields} - {"call", "ref_id", "value", "tensor"}
        brought = {"of", "value", "values", "tensors", "into", "dtype", "shape", "args", "named"}
        assert set(it.of_one) - brought == fields - {"dict", "arguments"} - brought


def test_the_page_has_every_word() -> None:
    text = "\n".join(page())
    words = {
        word for record in records_in(SCENARIO).values() for word in record.words if record.name != "other"
    }
    assert [word for word in words if f"| `{word}` |" not in text] == []
    assert [name for name in DECLARED if f"| `{name}` |" not in text] == []
