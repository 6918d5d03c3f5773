"""The Dockerfile and docker-compose.yml, as far as they can be checked without a container engine.

Checked: their syntax (the Compose specification's schema, a Dockerfile parser), that what they name exists, that
they agree with each other, and that their commands work in their confinement. Not checked: that the images build
and run.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import node_project
from tests.support.confined import confined, needs_namespaces

from rankbridge_server.core.limits import Limits

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
    """Options of a rank's command, but for the last, which have no value."""
    first, *pairs = command
    assert [first, *pairs[-2:]] == ["rank", "--insecure-token", "--trusted-network"]
    pairs = pairs[:-2]
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


def test_every_service_has_limits_and_writes_to_its_tmpfs_alone(said: Json) -> None:
    for name, service in said["compose"]["value"]["services"].items():
        assert service["read_only"], name
        assert service["tmpfs"] == ["/tmp:mode=1777,size=64m,noexec,nosuid,nodev"], name
        assert service["mem_limit"] == ("2g" if name in RANKS else "1g"), name
        # A rank may have a thread for each pending call.
        assert service["pids_limit"] > (Limits().max_pending if name in RANKS else 0), name


def test_images_are_of_digests_and_packages_of_hashes(said: Json) -> None:
    instructions = said["dockerfile"]["instructions"]
    images = dict(it["arguments"][0].split("=", 1) for it in instructions if it["keyword"] == "ARG")
    bases = [it["arguments"][0] for it in instructions if it["keyword"] == "FROM"]
    for base in bases:
        assert re.fullmatch(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}", images[base.strip("${}")]), base
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip install [^&\n]*", text)
    locked, own = (install.split() for install in installs)
    assert {"--no-deps", "--require-hashes", "--only-binary", ":all:"} <= set(locked)
    locks = {"locks/constraints.txt", '"locks/torch-${torch:-cuda}.txt"'}
    assert locks == {it for it in locked if "locks/" in it}
    # What is built here needs nothing from elsewhere.
    assert {"--no-index", "--no-deps", "--no-build-isolation"} <= set(own)


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


def test_a_confined_command_writes_to_its_tmpfs_alone_and_gets_no_right(said: Json, tmp_path: Path) -> None:
    needs_namespaces()
    services = said["compose"]["value"]["services"]
    tried = ["/tmp/made", "/run/rankbridge/made", "/made", "/run/made", f"{Path.home()}/made", f"{ROOT}/made"]
    script = 'for it; do if (: >"$it") 2>&-; then echo "$it"; fi; done; grep -E "Cap|NoNew" /proc/self/status'
    can_write = {"tokens": tried[:2], "rank0": tried[:1], "controller": tried[:1]}
    for name, written in can_write.items():
        command = confined(services[name], tmp_path, "sh", "-c", script, "sh", *tried)
        words = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()
        assert words[:-12] == written, name
        rights = dict(zip(words[-12::2], words[-11::2], strict=True))
        assert rights.pop("NoNewPrivs:") == "1"
        assert {int(value, 16) for value in rights.values()} == {0}


@pytest.mark.sampled
@pytest.mark.elixir
def test_the_same_commands_form_a_gang_in_the_same_confinement(said: Json, tmp_path: Path) -> None:
    needs_namespaces()
    services = said["compose"]["value"]["services"]
    rankbridge = BIN / "rankbridge"
    make = confined(services["tokens"], tmp_path, rankbridge, *services["tokens"]["command"])
    subprocess.run(make, check=True, timeout=60)
    with contextlib.ExitStack() as stack:
        ranks: list[Json] = []
        for name in RANKS:
            service = services[name]
            environ = {**os.environ, **service["environment"]}
            options = options_of(service["command"]) | {
                "--listen": "127.0.0.1:0",
                "--advertise": "127.0.0.1",
            }
            command = confined(service, tmp_path, rankbridge, "rank", *itertools.chain(*options.items()))
            rank = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
            )
            stack.callback(rank.terminate)
            assert rank.stdout is not None
            target = rank.stdout.readline().split()[-1]
            ranks.append({"rank": len(ranks), "endpoints": [target]})
            first, program, *rest = service["healthcheck"]["test"]
            assert (first, program) == ("CMD", "rankbridge")
            check = confined(
                service, tmp_path, rankbridge, *(it.replace("127.0.0.1:50051", target) for it in rest)
            )
            subprocess.run(check, check=True, capture_output=True, timeout=60, env=environ)
        (tmp_path / "endpoints.json").write_text(json.dumps({"ranks": ranks}))
        done = control(services["controller"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "all values are right"


def control(service: Json, volume: Path) -> "subprocess.CompletedProcess[str]":
    """Runs the controller's program, compiled before as in its image, with the endpoints file of the volume."""
    project = ROOT / "elixir_client"
    environ = {**os.environ, "MIX_ENV": "prod", **service["environment"]}
    subprocess.run(["mix", "compile"], cwd=project, env=environ, check=True, timeout=300)
    entry = ["mix", "run", "--no-compile"]
    assert f"ENTRYPOINT {json.dumps(entry)}" in (ROOT / "Dockerfile").read_text()
    command = confined(service, volume, *entry, service["command"][0], "/run/rankbridge/endpoints.json")
    return subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, timeout=300)
