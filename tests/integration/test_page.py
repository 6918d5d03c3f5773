"""The live page, in a browser: a gang that works, hangs, loses a rank; a job under `rankbridge watch`; 256 ranks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.conftest import PATIENT
from tests.support.browser import CHROMIUM, Browser, Tab, browser
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.made_records import MadeRecords
from tests.support.pages import served, url
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang
from rankbridge_server.cli.page.browsers import Browsers
from rankbridge_server.cli.page.model import Model
from rankbridge_server.cli.page.server import Server
from rankbridge_server.core.address import Address

SIZE = 4
TIMEOUT_S = 60.0
# A machine with other work paints late; what the page takes by itself is in docs/page.md.
MOST_FRAME_MS = 100.0
MARKUP = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">.py:7"

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium-headless-shell: make setup")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as it:
        yield it


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    with up(tmp_path_factory.mktemp("page"), SIZE, "gloo", [*PATIENT, "--page", "127.0.0.1:0"]) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, timeout=TIMEOUT_S) as it:
        yield it


@pytest.fixture
def tab(chromium: Browser, running: RunningGang) -> Iterator[Tab]:
    tab = chromium.open(url(running))
    tab.until("document.querySelectorAll('#ranks tbody tr').length == 4")
    yield tab
    assert tab.complaints() == []
    tab.close()


@contextmanager
def held_back(gang: Gang, rank: int, operation: str = "all_reduce") -> Iterator[None]:
    """All but one rank wait in a collective."""
    refs = gang.put([np.ones(1000, np.float32)] * SIZE)
    name = f"held-{gang.session_id}"
    others = [it for it in range(SIZE) if it != rank]
    waiting = [gang[it].start(operation, refs[it], timeout=TIMEOUT_S, operation_id=name) for it in others]
    yield
    waiting.append(gang[rank].start(operation, refs[rank], timeout=TIMEOUT_S, operation_id=name))
    for it in waiting:
        it.result()


@pytest.mark.sampled
@needs_browser
def test_a_rank_that_keeps_the_others_waiting_is_shown(tab: Tab, gang: Gang) -> None:
    gang.barrier()
    tab.until("document.querySelector('#verdict').classList.contains('good')")
    assert "healthy" in tab.text("#verdict-body")
    with held_back(gang, 2):
        tab.until("document.querySelector('#verdict').classList.contains('bad')")
        verdict = tab.text("#verdict-body")
        assert re.search(r"NEVER_CALLED: rank 2 has not called all_reduce world", verdict)
        assert re.search(r"cause\s+rank 2: .*\(pid \d+ on", verdict)
        (row,) = tab.evaluate(
            "[...document.querySelectorAll('#pending tbody tr')].map(it => [...it.cells].map(c => c.innerText))"
        )
        assert row[:2] == ["all_reduce", "world"]
        assert row[3:5] == ["rank 2", "ranks 0-1, 3 waiting"]
        assert re.search(r"test_page\.py:\d+$", row[5])
        assert row[6] == "all_reduce dtype=float32 shape=[1000] op=sum"
        before = float(row[2].removesuffix(" s"))
        tab.until(f"parseFloat(document.querySelector('#pending tbody td.number').innerText) > {before}")
        assert tab.text("#graph-words") == "ranks 0-1, 3 wait for rank 2"
        assert tab.text("#graph .culprit") == "rank 2"
        assert tab.evaluate("[...rankbridge.slices.pending.values()].flat().map(it => it.rank).sort()") == [
            0,
            1,
            3,
        ]
    tab.until("document.querySelector('#verdict').classList.contains('good')")
    tab.until("document.querySelectorAll('#pending tbody tr').length == 0")
    assert tab.text("#graph-words") == "nobody waits for long"


@needs_browser
def test_a_circle_is_shown(tab: Tab, gang: Gang) -> None:
    first, second = gang.new_group("first", [0, 1]), gang.new_group("second", [0, 1])
    waiting = [
        gang[0].start("barrier", group=first, timeout=TIMEOUT_S, operation_id="1"),
        gang[1].start("barrier", group=second, timeout=TIMEOUT_S, operation_id="2"),
    ]
    tab.until("document.querySelectorAll('#graph .circle').length == 2")
    assert "ORDER_INVERSION" in tab.text("#verdict-body")
    assert tab.text("#graph-words").splitlines() == ["rank 0 waits for rank 1", "rank 1 waits for rank 0"]
    waiting.append(gang[1].start("barrier", group=first, timeout=TIMEOUT_S, operation_id="1"))
    waiting.append(gang[0].start("barrier", group=second, timeout=TIMEOUT_S, operation_id="2"))
    for it in waiting:
        it.result()
    for group in (first, second):
        gang.destroy_group(group)


@needs_browser
def test_what_ranks_do_and_hold_is_shown(tab: Tab, gang: Gang) -> None:
    refs = gang.put([np.ones(250_000, np.float32)] * SIZE)
    strange = gang[0].put(np.array([1.5, np.nan, -2.0, np.inf], np.float64))
    for _ in range(20):
        gang.all_reduce(refs, in_place=True)
    with pytest.raises(rankbridge.GangError):
        gang.all_reduce([*refs[:3], gang[3].put(np.ones(3, np.float32))])
    tab.until(
        "[...document.querySelectorAll('#groups tbody tr')].some(it => parseFloat(it.cells[3].innerText) > 0)"
    )
    assert re.search(r"world\s+0-3\s.*rank \d \(\d+ of \d+\)", tab.text("#groups tbody"))
    # Each rank's part comes when that rank has said it.
    tab.until(
        "new Set([...rankbridge.slices.lanes.values()].flatMap(it => it.ended)"
        ".filter(it => it.outcome.startsWith('mismatch')).map(it => it.rank)).size == 4"
    )
    tab.until("document.querySelector('#ranks tbody tr').cells[5].innerText == '2'")
    tab.evaluate("document.querySelector('#ranks tbody tr button').click()")
    assert f"session {gang.session_id}: 2 refs, 1.0 MB" in tab.text("#rank")
    tab.until("!document.querySelector('#tensors').hidden")
    held = tab.text("#tensors tbody")
    # 4 to the power of 20, with five digits.
    assert re.search(r"float32\s+\[250000\]\s+cpu\s+1\.0 MB(\s+1099500000000){3}\s+0\b", held)
    assert re.search(rf"{strange.id}.*float64\s+\[4\]\s+cpu\s+32 B\s+-2\s+-0\.25\s+1\.5\s+1 NaN, 1 Inf", held)
    pid = int(tab.evaluate("document.querySelector('#ranks tbody tr').cells[2].innerText"))
    assert pid == gang[0].status().pid


@needs_browser
def test_nothing_is_asked_of_any_other_host(tab: Tab, running: RunningGang) -> None:
    asked = tab.requests()
    assert {"events", "page.css", "page.js", "lanes.js"} <= {it.rpartition("/")[2] for it in asked}
    own = urlsplit(url(running))
    assert {urlsplit(it)[:2] for it in asked if not it.startswith("about:")} == {own[:2]}
    assert (
        tab.evaluate("document.querySelectorAll('script:not([src]), [style*=url], link[href^=http]').length")
        == 0
    )


@needs_browser
def test_markup_in_the_words_of_others_is_text(tab: Tab, gang: Gang) -> None:
    with rankbridge.at_site(MARKUP), held_back(gang, 1):
        tab.until("document.querySelectorAll('#pending tbody tr').length == 1")
        assert tab.evaluate("document.querySelector('#pending tbody tr').cells[5].textContent") == MARKUP
        tab.until("document.querySelector('#verdict').classList.contains('bad')")
        tab.evaluate("document.querySelector('#lanes-canvas').focus()")
        tab.press("ArrowDown")
        tab.until("!document.querySelector('#lanes-tip').hidden")
    assert tab.evaluate("document.querySelectorAll('main script, img').length") == 0
    assert tab.evaluate("document.title") == "gang - rankbridge"


@needs_browser
def test_lanes_are_paused_zoomed_and_read_by_keys_and_by_the_mouse(tab: Tab, gang: Gang) -> None:
    for _ in range(3):
        gang.barrier()
    tab.until("[...rankbridge.slices.lanes.values()].some(it => it.ended.length >= 3)")
    tab.evaluate("document.querySelector('#lanes-canvas').focus()")
    tab.press(" ")
    tab.until("document.querySelector('#pause').getAttribute('aria-pressed') == 'true'")
    tab.until("document.querySelector('#span').innerText.includes('paused')")
    before = tab.text("#span")
    tab.press("+")
    tab.until(f"document.querySelector('#span').innerText != {json.dumps(before)}")
    tab.press("ArrowDown")
    tip = tab.until(
        "!document.querySelector('#lanes-tip').hidden && document.querySelector('#lanes-tip').innerText"
    )
    assert re.search(r"on \w+, rank 0\n", tip)
    assert re.search(r"called \d\d:\d\d:\d\d\.\d{3}, queued .*", tip)
    tab.press("Escape")
    tab.until("document.querySelector('#lanes-tip').hidden")
    with held_back(gang, 3):
        tab.press(" ")
        tab.until("rankbridge.slices.pending.size == 3")
        tab.evaluate("document.querySelector('#lanes-group').value = 'world'")
        tab.evaluate("document.querySelector('#lanes-group').dispatchEvent(new Event('change'))")
        until(lambda: re.match(r"all_reduce on world, rank 0\n.*, pending\n", _tip(tab)) is not None)


@pytest.mark.sampled
@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_and_its_text_can_be_read(
    chromium: Browser, running: RunningGang, gang: Gang, dark: bool
) -> None:
    with held_back(gang, 0):
        tab = chromium.open(url(running), width=390, height=844, dark=dark)
        tab.until("document.querySelector('#verdict').classList.contains('bad')")
        tab.until("document.querySelectorAll('#ranks tbody tr').length == 4")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        poor = tab.evaluate(_CONTRAST)
        assert poor == []
        buttons = tab.evaluate("[...document.querySelectorAll('button, select')].map(it => it.tabIndex)")
        assert buttons
        assert set(buttons) == {0}
        tab.close()


@pytest.mark.sampled
@needs_browser
def test_a_rank_that_is_lost_and_replaced_is_seen(chromium: Browser, tmp_path: Path) -> None:
    with (
        up(tmp_path, 3, "gloo", ["--page", "127.0.0.1:0"]) as running,
        rankbridge.connect(running.description, timeout=TIMEOUT_S) as gang,
    ):
        tab = chromium.open(url(running))
        tab.until("document.querySelector('#facts').innerText == '3 ranks, generation 1, whole'")
        before = running.pids[1]
        os.kill(before, signal.SIGKILL)
        tab.until("document.querySelector('#facts').innerText.includes('not whole')")
        tab.until("document.querySelector('#ranks tbody').rows[0].cells[3].innerText == 'over'")
        tab.until("document.querySelector('#verdict-body').innerText.includes('rank 1 was lost')")
        until(lambda: _formed(gang))
        tab.until("document.querySelector('#facts').innerText == '3 ranks, generation 2, whole'")
        assert (
            int(tab.evaluate("document.querySelector('#ranks tbody').rows[1].cells[2].innerText")) != before
        )
        count = (
            "[...rankbridge.slices.lanes.values()].filter(it => it.rank == 1).flatMap(it => it.ended).length"
        )
        seen = tab.evaluate(count)
        gang.barrier()
        tab.until(f"{count} > {seen}")
        tab.close()


@pytest.mark.sampled
@needs_browser
def test_a_job_under_watch_is_shown_while_it_runs_and_after_its_death(
    chromium: Browser, tmp_path: Path
) -> None:
    script = Path(__file__).with_name("hanging_script.py")
    torchrun = [
        str(Path(sys.executable).with_name("torchrun")),
        "--nproc-per-node",
        "2",
        "--rdzv-backend",
        "c10d",
    ]
    command = [RANKBRIDGE, "watch", "--record", str(tmp_path / "run"), "--", *torchrun]
    command += ["--rdzv-endpoint", "127.0.0.1:0", str(script)]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
        assert job.stdin
        until((tmp_path / "run").is_dir)
        with served(str(tmp_path / "run")) as at:
            tab = chromium.open(at)
            tab.until("document.querySelector('#pending tbody tr')?.cells[3].innerText == 'rank 1'")
            assert "hanging_script.py" in tab.text("#pending tbody")
            tab.until("document.querySelector('#verdict').classList.contains('bad')")
            assert "rank 1 has not called all_reduce world" in tab.text("#verdict-body")
            assert tab.evaluate("[...rankbridge.slices.lanes.values()].map(it => it.ended.length)") == [
                20,
                20,
            ]
            job.stdin.close()
            assert job.wait(TIMEOUT_S) == 0
            tab.until(
                "[...document.querySelectorAll('#ranks tbody tr')].every(it => it.cells[3].innerText == 'ended')"
            )
            tab.until("document.querySelectorAll('#pending tbody tr').length == 0")
            assert tab.complaints() == []
            tab.close()


@pytest.mark.sampled
@needs_browser
def test_the_page_of_256_ranks_is_smooth(chromium: Browser) -> None:
    model = Model("made", "gang", admits=True)
    source = MadeRecords(model, 256, 10_000)
    server = Server(Address("127.0.0.1", 0), Browsers(model, source), source)
    server.start()
    try:
        tab = chromium.open(server.url)
        tab.until("document.querySelectorAll('#ranks tbody tr').length == 256")
        count = tab.until("rankbridge.slices.count > 20000 && rankbridge.slices.count")
        tab.until(f"rankbridge.frames.frames > 100 && rankbridge.slices.count > {count} + 20000")
        frames = tab.evaluate("rankbridge.frames")
        assert frames["p50"] < MOST_FRAME_MS, frames
        assert frames["paint_p95"] < MOST_FRAME_MS, frames
        assert (
            tab.evaluate("[...rankbridge.slices.lanes.values()].filter(it => it.ended.length).length") == 512
        )
        assert tab.complaints() == []
        tab.close()
    finally:
        server.stop()


def _formed(gang: Gang) -> bool:
    try:
        gang.form()
    except rankbridge.RankBridgeError:
        return False
    return True


def _tip(tab: Tab) -> str:
    """The text of the tooltip at the right end of the first row, where what is pending ends at all times."""
    place = "it => [it.right - 30, it.top + 20 + 18 + 7]"
    # The verdict above it may come meanwhile.
    x, y = tab.evaluate(f"({place})(document.querySelector('#lanes-canvas').getBoundingClientRect())")
    tab.move(x, y)
    tab.move(x + 1, y)
    return tab.text("#lanes-tip")


# Of every text that is seen: the contrast of its colour with the ground that it is on, as WCAG 2 has it.
_CONTRAST = """
(() => {
  const light = (rgb) => {
    const linear = (it) => (it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((it) => linear(it / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (it) => {
    for (let at = it; at; at = at.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const it of document.querySelectorAll("body *")) {
    const own = [...it.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !it.getClientRects().length || it.closest("svg")) continue;
    const [a, b] = [light(numbers(getComputedStyle(it).color).slice(0, 3)), light(ground(it))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) poor.push([it.textContent, contrast]);
  }
  return poor;
})()
"""
