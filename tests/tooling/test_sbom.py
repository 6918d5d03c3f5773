"""The bill of materials lists what is pinned, as CycloneDX demands."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

import lock

ROOT = Path(__file__).resolve().parents[2]
# It is written where it is asked for, and is in no commit.
pytestmark = pytest.mark.sampled


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `make sbom` writes; it fails if that does not follow the schema of CycloneDX."""
    file = tmp_path_factory.mktemp("sbom") / "rankbridge.cdx.json"
    command = ["scripts/tools", ".venv-tools/bin/python", "scripts/sbom.py", str(file)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=300)
    read: dict[str, Any] = json.loads(file.read_text())
    return read


def pin_of(component: dict[str, Any]) -> str:
    """Its pin, which has no local part of the version."""
    return f"{canonicalize_name(component['name'])}=={component['version'].partition('+')[0]}"


def scopes(bill: dict[str, Any], scope: str) -> list[str]:
    return sorted(pin_of(it) for it in bill["components"] if it["scope"] == scope)


def test_it_is_of_this_project(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    component = bill["metadata"]["component"]
    assert (component["name"], component["licenses"][0]["license"]["id"]) == ("rankbridge", "Apache-2.0")


def test_its_packages_are_those_that_are_pinned_and_pip(bill: dict[str, Any]) -> None:
    assert scopes(bill, "required") == sorted(lock.read_pins(ROOT / "constraints.txt"))
    (pip,) = set(scopes(bill, "excluded")) ^ set(lock.read_pins(ROOT / "constraints-dev.txt"))
    assert pip.startswith("pip==")


def test_each_package_has_an_address_and_the_hashes_that_are_locked(bill: dict[str, Any]) -> None:
    names = ("constraints.txt", "constraints-dev.txt", "torch-cpu.txt", "torch-cuda.txt")
    locks = [lock.read_lock(ROOT / "locks" / name) for name in names]
    for component in bill["components"]:
        if component["name"] == "pip":
            continue
        assert component["purl"].startswith("pkg:pypi/")
        (files,) = (it for it in component["externalReferences"] if "hashes" in it)
        assert {it["content"] for it in files["hashes"]} in [it.get(pin_of(component)) for it in locks]


def test_it_says_what_needs_what_and_under_which_licence(bill: dict[str, Any]) -> None:
    needs = {it["ref"].partition("==")[0]: it.get("dependsOn", []) for it in bill["dependencies"]}
    assert any(it.startswith("torch==") for it in needs["root-component"])
    assert any(it.startswith("sympy==") for it in needs["torch"])
    (torch,) = (it for it in bill["components"] if it["name"] == "torch")
    assert "BSD-3-Clause" in torch["licenses"][0]["expression"]
