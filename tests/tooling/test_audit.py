"""`scripts/audit.py` asks a database of vulnerabilities, and never takes silence for safety."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.sampled


class Database(ThreadingHTTPServer):
    """A database of vulnerabilities that speaks as OSV does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.vulnerable: set[tuple[str, str]] = set()
        self.asked: set[tuple[str, str]] = set()
        self.address = f"http://127.0.0.1:{self.server_port}/v1/query"


class _Handler(BaseHTTPRequestHandler):
    server: Database

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        package = (query["package"]["name"], query["version"])
        self.server.asked.add(package)
        body = json.dumps(advisories(*package) if package in self.server.vulnerable else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def advisories(name: str, version: str) -> dict[str, Any]:
    events = [{"introduced": "0"}, {"fixed": "99"}]
    affected = {
        "package": {"ecosystem": "PyPI", "name": name},
        "versions": [version],
        "ranges": [{"type": "ECOSYSTEM", "events": events}],
    }
    advisory = {"id": "CVE-0000-1", "modified": "2025-01-01T00:00:00Z", "affected": [affected]}
    return {"vulns": [advisory]}


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def audit(address: str, cache: Path) -> "subprocess.CompletedProcess[str]":
    command = ["scripts/tools", sys.executable, "scripts/audit.py"]
    options = ["--vulnerability-service", "osv", "--osv-url", address, "--cache-dir", str(cache)]
    return subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_all_pins_are_asked_about(database: Database, tmp_path: Path) -> None:
    done = audit(database.address, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("packages, no known vulnerability\n")
    names = {name for name, _ in database.asked}
    assert {"torch", "grpcio", "pytest", "grpcio-tools", "uv", "nvidia-nccl-cu13"} <= names


def test_a_vulnerability_is_named(database: Database, tmp_path: Path) -> None:
    audit(database.address, tmp_path)
    (protobuf,) = (it for it in database.asked if it[0] == "protobuf" and not it[1].startswith("5."))
    database.vulnerable.add(protobuf)
    done = audit(database.address, tmp_path)
    assert done.returncode == 1
    assert f"audit: protobuf {protobuf[1]} has CVE-0000-1; mended in 99\n" in done.stdout


def test_a_database_that_cannot_be_reached_is_no_answer(database: Database, tmp_path: Path) -> None:
    address = database.address
    database.server_close()
    done = audit(address, tmp_path)
    assert done.returncode == 3
    assert "the database of vulnerabilities gives no answer: " in done.stdout


def test_ci_does_not_ask() -> None:
    ran = [
        ROOT / ".ci" / "run",
        ROOT / "scripts" / "lint",
        ROOT / "scripts" / "test",
        ROOT / "scripts" / "setup",
    ]
    assert [path for path in ran if "audit" in path.read_text()] == []
