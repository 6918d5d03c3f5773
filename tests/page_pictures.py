"""Writes the pictures of docs/page.md: `python -m tests.page_pictures`, which needs Chromium (make setup).

A training step on four ranks, with tensor and data parallel groups; then rank 2 does not come to a collective.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.support.browser import Browser, browser
from tests.support.gangs import RunningGang, up
from tests.support.made_records import MadeRecords

import rankbridge
from rankbridge import Gang, Ref
from rankbridge_server.cli.page.browsers import Browsers
from rankbridge_server.cli.page.model import Model
from rankbridge_server.cli.page.server import Server
from rankbridge_server.core.address import Address

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SIZE = 4
WORKED_S, HUNG_S = 8.0, 5.0
GROUPS = {"tp_0": (0, 1), "tp_1": (2, 3), "dp_0": (0, 2), "dp_1": (1, 3)}


def main() -> int:
    """Writes them."""
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "chromium") as shown:
        with up(
            Path(folder), SIZE, options=["--page", "127.0.0.1:0", "--name", "train"], own=True
        ) as running:
            _hang(shown, running)
        _many(shown)
    for path in sorted(IMAGES.glob("page*.png")):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
    return 0


def _hang(shown: Browser, running: RunningGang) -> None:
    """A hang, in the light, in the dark and on a phone."""
    url = json.loads(running.endpoints_file.read_text())["page"]
    light = shown.open(url, height=1010)
    dark = shown.open(url, height=1010, dark=True)
    phone = shown.open(url, width=390, height=844)
    with rankbridge.connect(running.description, timeout=60.0) as gang:
        for name, ranks in GROUPS.items():
            gang.new_group(name, ranks)
        refs = gang.put([np.ones(500_000, np.float32)] * SIZE)
        end = time.monotonic() + WORKED_S
        while time.monotonic() < end:
            _step(gang, refs)
        with rankbridge.at_site("train.py:88"):
            late = [gang[rank].start("all_reduce", refs[rank], operation_id="late") for rank in (0, 1, 3)]
        light.until("document.querySelector('#verdict').classList.contains('bad')")
        # As long as it is to have hung.
        time.sleep(HUNG_S)
        light.screenshot(IMAGES / "page.png")
        dark.screenshot(IMAGES / "page-dark.png")
        phone.screenshot(IMAGES / "page-phone.png")
        late.append(gang[2].start("all_reduce", refs[2], operation_id="late"))
        for it in late:
            it.result()
    for tab in (light, dark, phone):
        tab.close()


def _step(gang: Gang, refs: Sequence[Ref]) -> None:
    for kind in ("tp", "dp"):
        for name, ranks in GROUPS.items():
            if name.startswith(kind):
                gang.all_reduce([refs[it] for it in ranks], group=name, in_place=True)
    gang.broadcast(refs, src_rank_in_group=0, in_place=True)
    gang.barrier()
    time.sleep(0.03)


def _many(shown: Browser) -> None:
    """256 ranks that do 10,000 operations a second."""
    model = Model("256 ranks", "gang", admits=True)
    source = MadeRecords(model, 256, 10_000)
    server = Server(Address("127.0.0.1", 0), Browsers(model, source), source)
    server.start()
    try:
        tab = shown.open(server.url)
        tab.evaluate("document.querySelector('#lanes-rows').value = '4'")
        tab.evaluate("document.querySelector('#lanes-rows').dispatchEvent(new Event('change'))")
        tab.evaluate("document.querySelector('#lanes').style.height = '620px'")
        for _ in range(2):
            tab.evaluate("document.querySelector('#zoom-in').click()")
        tab.until("rankbridge.slices.count > 100000")
        tab.screenshot(IMAGES / "page-256.png")
        print(json.dumps(tab.evaluate("rankbridge.frames")))
        tab.close()
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
