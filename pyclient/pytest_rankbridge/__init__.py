"""A plugin for pytest: the fixture ``gang``, real ranks for a test.

A package beside `rankbridge`, and not in it: pytest imports it in every run where rankbridge is installed, and imports
neither gRPC nor numpy by it. They come with the first test that asks for a gang.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rankbridge.stacks import stacks_of

if TYPE_CHECKING:
    from rankbridge.harness.lending import Lender, LentGang

DEFAULTS: dict[str, Any] = {"size": 4, "backend": "fake", "timeout": 10.0, "load": ""}
"""What the marker says, where it says nothing."""

_MARKER = (
    "gang(size=4, backend='fake', timeout=10.0, load=''): what the fixture `gang` is. A list of sizes or backends: the "
    "test runs with each. timeout: seconds of each call. load: a module with functions, or several; a file is from the "
    "test's folder, and its gang is on gloo and this test's alone"
)
_LENDER: pytest.StashKey[Lender] = pytest.StashKey()
_LENT: pytest.StashKey[LentGang] = pytest.StashKey()
_FAILED: pytest.StashKey[bool] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", _MARKER)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the gangs."""
    lender = config.stash.get(_LENDER, None)
    if lender is not None:
        lender.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test of each combination of the marker's lists."""
    marker = metafunc.definition.get_closest_marker("gang")
    if marker is None or "gang" not in metafunc.fixturenames:
        return
    wanted = _wanted(metafunc.definition.nodeid, marker)
    if isinstance(wanted["load"], list):
        # Not one after another.
        wanted["load"] = tuple(wanted["load"])
    rows = list(itertools.product(*(it if isinstance(it, list) else [it] for it in wanted.values())))
    given = [dict(zip(wanted, row, strict=True)) for row in rows]
    names = [f"{it['size']}-{it['backend']}" for it in given]
    metafunc.parametrize("gang", given, indirect=True, ids=names)


def _wanted(node: str, marker: pytest.Mark) -> dict[str, Any]:
    if marker.args:
        raise pytest.UsageError(f"{node}: gang takes its arguments by name: {', '.join(DEFAULTS)}")
    for name, value in marker.kwargs.items():
        if name not in DEFAULTS:
            near = difflib.get_close_matches(name, DEFAULTS, 1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise pytest.UsageError(f"{node}: gang has no argument `{name}`{meant}")
        kinds = (int, float) if name == "timeout" else type(DEFAULTS[name])
        values = value if isinstance(value, list) and name != "timeout" else [value]
        if not values or not all(isinstance(it, kinds) and not isinstance(it, bool) for it in values):
            raise pytest.UsageError(f"{node}: gang's {name} is {value!r}, and not like {DEFAULTS[name]!r}")
    backend = {"backend": "gloo"} if "load" in marker.kwargs else {}
    return {**DEFAULTS, **backend, **marker.kwargs}


@pytest.fixture
def gang(request: pytest.FixtureRequest) -> Iterator[LentGang]:
    """A gang for this test: with a session and a group of its own, on ranks that other tests had before.

    The marker ``gang`` says what it is. What the test leaves behind is an error of the test: groups, refs in shared
    sessions, descriptors and threads of ranks. After a failure the gang is formed again.
    """
    from rankbridge.harness.gangs import load_paths
    from rankbridge.harness.lending import Lender

    config = request.config
    if _LENDER not in config.stash:
        config.stash[_LENDER] = Lender()
    wanted = getattr(request, "param", DEFAULTS)
    load = load_paths(wanted["load"] or (), request.path.parent)
    with config.stash[_LENDER].lent(wanted["size"], wanted["backend"], wanted["timeout"], load) as lent:
        request.node.stash[_LENT] = lent
        yield lent
        lent.failed = request.node.stash.get(_FAILED, False)
    if lent.left:
        pytest.fail(f"the test has left behind: {', '.join(lent.left)}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Says of a test that failed how its gang is."""
    report = yield
    if report.failed and call.when == "call":
        item.stash[_FAILED] = True
        if _LENT in item.stash:
            lent = item.stash[_LENT]
            report.sections.append(("verdict", lent.verdict()))
            report.sections.append(("gang", lent.described()))
            report.sections.append(("record of ranks", lent.recorded()))
            report.sections.append(("stacks of ranks", stacks_of(lent.pids)))
            report.sections.append(("scenario", lent.asked.as_scenario()))
    return report
