"""What tests share. Tests of a shared gang leave it as they found it: formed, and without refs of theirs."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.support import sampling
from tests.support.gangs import RunningGang, up
from tests.support.interrupter import Interrupter
from tests.support.prepared_command import prepared_command

# Under nohup, or in the background of a script, everything below would ignore Ctrl-C, which tests are about.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--whole`, `--sampled`, `--rounds`, `--seed`."""
    parser.addoption("--whole", action="store_true", help="run all cases of matrices that are drawn from")
    parser.addoption("--sampled", action="store_true", help="run a sixteenth of the tests that are marked so")
    parser.addoption("--rounds", default=1, type=int, help="of the fuzzing: how many times as much as usual")
    parser.addoption("--seed", default=None, type=int, help="of the fuzzing: repeat a run")


def pytest_configure(config: pytest.Config) -> None:
    """Applies `--whole`."""
    sampling.whole = config.getoption("--whole")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Applies `--sampled`."""
    if not config.getoption("--sampled"):
        return
    marked = [it for it in items if it.get_closest_marker("sampled")]
    left_out = set(marked) - set(sampling.sample(marked, -(-len(marked) // 16)))
    config.hook.pytest_deselected(items=[it for it in items if it in left_out])
    items[:] = [it for it in items if it not in left_out]


def pytest_report_header() -> str:
    """Says how the cases are drawn."""
    return "cases: all" if sampling.whole else f"cases: drawn by the commit, {sampling.seed()}"


# No test stops a rank of these. On a busy machine one may be silent for longer than a gang allows otherwise.
PATIENT = ["--heartbeat-misses", "300"]


@pytest.fixture(scope="session")
def gloo4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Four ranks on Gloo."""
    with up(tmp_path_factory.mktemp("gloo4"), 4, "gloo", PATIENT) as gang:
        yield gang


@pytest.fixture(scope="session")
def gloo2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Two ranks on Gloo."""
    with up(tmp_path_factory.mktemp("gloo2"), 2, "gloo", PATIENT) as gang:
        yield gang


@pytest.fixture(scope="session")
def fake4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Four ranks on the fake backend."""
    with up(tmp_path_factory.mktemp("fake4"), 4, "fake", PATIENT) as gang:
        yield gang


@pytest.fixture(scope="session")
def mpi4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """Four ranks on MPI."""
    with up(tmp_path_factory.mktemp("mpi4"), 4, "mpi", PATIENT) as gang:
        yield gang


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A command for gangs that programs under test start, which has imported what it needs."""
    with prepared_command(tmp_path_factory.mktemp("quick")) as command:
        yield command


@pytest.fixture(scope="module")
def quick_gangs(quick: str) -> Iterator[None]:
    """Has all that this module's tests run start gangs by that command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKBRIDGE_COMMAND", quick)
        yield


@pytest.fixture
def interrupter() -> Iterator[Interrupter]:
    """Interrupts the main thread."""
    it = Interrupter()
    yield it
    it.close()
