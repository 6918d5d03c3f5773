"""docs/scenario.schema.json is what another validator of JSON Schema takes, and takes what scenarios are."""

import copy
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "pyclient" / "rankbridge" / "harness" / "examples"

# Reads a schema and documents from a file; prints of each document whether it is valid.
VALIDATE = """
import json, sys, jsonschema
schema, documents = json.load(open(sys.argv[1]))
kind = jsonschema.validators.validator_for(schema)
kind.check_schema(schema)
print(json.dumps([kind(schema).is_valid(it) for it in documents]))
"""


def scenarios() -> list[dict[str, Any]]:
    pages = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "harness.md").read_text(), re.DOTALL)
    found = [tomllib.loads(it) for it in [*pages, *(path.read_text() for path in EXAMPLES.glob("*.toml"))]]
    return [it for it in found if "step" in it]


def spoiled(scenario: dict[str, Any], *path: str | int, value: object) -> dict[str, Any]:
    made = copy.deepcopy(scenario)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


@pytest.mark.sampled
def test_it_takes_scenarios_and_refuses_what_is_none(tmp_path: Path) -> None:
    good = scenarios()
    assert len(good) >= 8
    called = next(it for it in good if "call" in it["step"][0])
    bad = [
        spoiled(called, "stpe", value=[]),
        spoiled(called, "step", 0, "call", value="barier"),
        spoiled(called, "gang", "size", value="four"),
        spoiled(called, "step", 0, "expect", value={"within_sm": 3}),
    ]
    schema = json.loads((ROOT / "docs" / "scenario.schema.json").read_text())
    file = tmp_path / "documents.json"
    file.write_text(json.dumps([schema, [*good, *bad]]))
    command = ["scripts/tools", ".venv-tools/bin/python", "-c", VALIDATE, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(done.stdout.splitlines()[-1]) == [True] * len(good) + [False] * len(bad)
