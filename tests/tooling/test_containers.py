"""The Dockerfile and docker-compose.yml, as far as they can be checked without a container engine.

Checked: their syntax (the Compose specification's schema, a Dockerfile parser), that what they name exists,
and that they agree with each other. Not checked: that the images build and run.
"""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import node_project

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
RANKS = ["rank0", "rank1", "rank2", "rank3"]

Json = Any


@pytest.fixture(scope="module")
def inspector() -> Path:
    """The Node program that reads both files."""
    return node_project.install(ROOT / "tests" / "tooling" / "containers")


@pytest.fixture(scope="module")
def said(inspector: Path) -> Json:
    """What both files say."""
    return json.loads(node_project.run(inspector, "inspect.mjs", str(ROOT)))


def inspect_changed(inspector: Path, folder: Path, file: str, old: str, new: str) -> Json:
    for name in ("Dockerfile", "docker-compose.yml"):
        shutil.copy(ROOT / name, folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    return json.loads(node_project.run(inspector, "inspect.mjs", str(folder)))


def options_of(command: list[str]) -> dict[str, str]:
    """Options of a rank's command, but for the last, which has no value."""
    first, *pairs, last = command
    assert (first, last) == ("rank", "--insecure-token")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def test_compose_file_follows_the_compose_specification(said: Json) -> None:
    assert said["compose"]["faults"] == []


def test_dockerfile_has_no_fault(said: Json) -> None:
    assert said["dockerfile"]["faults"] == []


def test_an_unknown_key_of_a_service_is_a_fault(inspector: Path, tmp_path: Path) -> None:
    found = inspect_changed(inspector, tmp_path, "docker-compose.yml", "init: true", "inti: true")
    assert any("must NOT have additional properties" in fault for fault in found["compose"]["faults"])


def test_an_unknown_instruction_is_a_fault(inspector: Path, tmp_path: Path) -> None:
    found = inspect_changed(
        inspector, tmp_path, "Dockerfile", "WORKDIR /opt/rankbridge\n", "WROKDIR /opt/rankbridge\n"
    )
    assert any("WROKDIR" in fault for fault in found["dockerfile"]["faults"])


def test_every_service_builds_a_stage_that_the_dockerfile_has(said: Json) -> None:
    stages = [
        step["arguments"][2] for step in said["dockerfile"]["instructions"] if step["keyword"] == "FROM"
    ]
    services = said["compose"]["value"]["services"]
    assert {service["build"]["target"] for service in services.values()} == set(stages)


def test_no_service_has_or_gets_a_right_beyond_its_user(said: Json) -> None:
    services = said["compose"]["value"]["services"]
    for name, service in services.items():
        assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"]), name
        assert "privileged" not in service
        assert "ports" not in service
    # Whoever makes the tokens writes them, and nobody else.
    writers = [name for name, it in services.items() if "tokens:/run/rankbridge" in it["volumes"]]
    assert writers == ["tokens"]
    # Each stage runs as another user than root.
    keywords = [it["keyword"] for it in said["dockerfile"]["instructions"]]
    users = [it["arguments"] for it in said["dockerfile"]["instructions"] if it["keyword"] == "USER"]
    assert users == [["rankbridge"]] * keywords.count("FROM")


def test_every_copied_path_exists_and_is_sent_to_the_engine(said: Json) -> None:
    sent = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line[:1] == "!"
    }
    copies = [step for step in said["dockerfile"]["instructions"] if step["keyword"] == "COPY"]
    copied = {path for step in copies for path in step["arguments"][:-1]}
    assert copied == sent
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_each_rank_advertises_its_own_name_and_the_controller_knows_all(said: Json) -> None:
    services = said["compose"]["value"]["services"]
    assert sorted(services) == ["controller", *RANKS, "tokens"]
    for rank, name in enumerate(RANKS):
        assert options_of(services[name]["command"]) == {
            "--rank": str(rank),
            "--size": str(len(RANKS)),
            "--listen": "0.0.0.0:50051",
            "--advertise": f"{name}:50051",
        }
    (config,) = services["controller"]["configs"]
    assert services["controller"]["command"] == ["demo/demo.exs", config["target"]]
    known = json.loads((ROOT / said["compose"]["value"]["configs"][config["source"]]["file"]).read_text())
    assert known == {
        "ranks": [{"rank": rank, "endpoints": [f"{name}:50051"]} for rank, name in enumerate(RANKS)]
    }


def test_the_controller_waits_until_every_rank_is_healthy(said: Json) -> None:
    services = said["compose"]["value"]["services"]
    waits = {name: needed["condition"] for name, needed in services["controller"]["depends_on"].items()}
    assert waits == dict.fromkeys(RANKS, "service_healthy")
    assert all("test" in services[name]["healthcheck"] for name in RANKS)


@pytest.mark.slow
@pytest.mark.elixir
def test_the_same_commands_form_a_gang_without_containers(said: Json, tmp_path: Path) -> None:
    services = said["compose"]["value"]["services"]
    make, *_, file = services["tokens"]["command"]
    assert all(
        services[name]["environment"] == {"RANKBRIDGE_TOKEN_FILE": file} for name in [*RANKS, "controller"]
    )
    tokens = tmp_path / "tokens"
    subprocess.run([BIN / "rankbridge", make, tokens], check=True, timeout=60)
    environ = {**os.environ, "RANKBRIDGE_TOKEN_FILE": str(tokens)}
    with contextlib.ExitStack() as stack:
        targets = []
        for name in RANKS:
            options = options_of(services[name]["command"]) | {
                "--listen": "127.0.0.1:0",
                "--advertise": "127.0.0.1",
            }
            command = [str(BIN / "rankbridge"), "rank", *itertools.chain.from_iterable(options.items())]
            rank = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
            )
            stack.callback(rank.terminate)
            assert rank.stdout is not None
            targets.append(rank.stdout.readline().split()[-1])
            check = [
                part.replace("127.0.0.1:50051", targets[-1]) for part in services[name]["healthcheck"]["test"]
            ]
            assert check[0] == "CMD"
            subprocess.run(
                [BIN / check[1], *check[2:]], check=True, capture_output=True, timeout=60, env=environ
            )
        endpoints = tmp_path / "endpoints.json"
        ranks = [{"rank": rank, "endpoints": [target]} for rank, target in enumerate(targets)]
        endpoints.write_text(json.dumps({"ranks": ranks}))
        program = services["controller"]["command"][0]
        done = subprocess.run(
            ["mix", "run", program, endpoints],
            cwd=ROOT / "elixir_client",
            env={**environ, "MIX_ENV": "prod"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "all values are right"
