"""`rankbridge break`: holds the ranks of a gang at collectives, as a debugger does."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..core.printable import lines
from ..core.rank_intervals import rank_intervals
from .break_commands import COMMANDS, Answer, BadCommand, held_lines, run
from .gangs import NoGang, complain, connected, gang_options
from .options import JSON, Command, Options

if TYPE_CHECKING:
    from rankbridge import HeldCall, Hold

TIMEOUT_S = 10.0
_LOOK_S = 0.1
_TOGETHER_S = 0.02
_PROMPT = "(break) "
_MAX_LINE = 65_536


def _run(options: Options) -> int:
    from rankbridge import RankBridgeError

    try:
        with connected(options) as gang, gang.hold(" ".join(options.breakpoint)) as hold:
            _Session(hold, options.as_json).follow()
    except (NoGang, RankBridgeError) as error:
        return complain("break", error)
    return 0


class _Session:
    """A breakpoint, and the person who types commands for it."""

    def __init__(self, hold: Hold, as_json: bool) -> None:
        self._hold = hold
        self._as_json = as_json
        self._lines = _Lines(sys.stdin.fileno())
        self._is_terminal = sys.stdin.isatty() and not as_json
        self._known: dict[tuple[int, int], HeldCall] = {}
        self._ended: set[int] = set()

    def follow(self) -> None:
        """Prints what is held and runs what is typed, until the input ends, says quit, or no rank is left."""
        ranks = self._hold.ranks
        self._say([f"set on {rank_intervals(ranks)}"], {"set": list(ranks)})
        while len(self._ended) < len(ranks):
            self._tell_changes()
            for line in self._lines.read():
                if line is None or (line.strip() and not self._obey(line)):
                    return

    def _tell_changes(self) -> None:
        calls = self._hold.changed(timeout=_LOOK_S)
        if len(calls) < len(self._hold.ranks):
            # Those that come together are said together.
            calls = self._hold.changed(timeout=_TOGETHER_S)
        held = {(it.rank, it.held_id): it for it in calls}
        gone = sorted(self._known.keys() - held.keys())
        if gone:
            ranks = [rank for rank, _ in gone]
            text = f"{rank_intervals(ranks)} {'goes' if len(ranks) == 1 else 'go'} on"
            self._say([text], {"let_go": [{"rank": rank, "held_id": held_id} for rank, held_id in gone]})
        if new := [it for key, it in held.items() if key not in self._known]:
            self._say(held_lines(new), {"held": [asdict(it) for it in new]})
        self._known = held
        for rank, error in self._hold.ended.items():
            if rank not in self._ended:
                self._ended.add(rank)
                why = lines(str(error or "the rank has stopped"))
                self._say([f"rank {rank} has the breakpoint no more: {why}"], {"ended": rank, "error": why})

    def _obey(self, line: str) -> bool:
        """Runs the command of a line. Returns whether to go on."""
        from rankbridge import RankBridgeError

        try:
            answer = run(self._hold, line)
        except (BadCommand, RankBridgeError) as error:
            answer = Answer([str(error)], {"error": str(error)})
        if answer is None:
            return False
        self._say(answer.lines, answer.content)
        return True

    def _say(self, text: list[str] | Any, content: Any) -> None:
        if self._as_json:
            print(json.dumps(content), flush=True)
            return
        for line in text:
            print(lines(line))
        print(_PROMPT if self._is_terminal else "", end="", flush=True)


class _Lines:
    """Lines of standard input, as they come, without waiting for them."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno
        self._rest = b""

    def read(self) -> Iterator[str | None]:
        """The lines that are there; None: the input has ended, or has no line in 64 KiB."""
        while select.select([self._fileno], [], [], 0)[0]:
            found = os.read(self._fileno, _MAX_LINE)
            *whole, self._rest = (self._rest + found).split(b"\n")
            yield from (it.decode(errors="replace") for it in whole)
            if not found or len(self._rest) > _MAX_LINE:
                yield None
                return


COMMAND = Command(
    "break",
    _run,
    [
        click.Argument(["breakpoint"], nargs=-1, metavar="[WORDS]..."),
        JSON,
        *gang_options(TIMEOUT_S),
    ],
    help="Hold the ranks of a gang before the calls that WORDS mean, operations of controllers and collectives of the "
    "user's own code, as long as this command runs: group=dp kind=all_reduce number=1200 at=train.py:88 function=step "
    "caller=controller|script ranks=0-3; has=nan,inf and above=1e6: of these, one is in an input; mismatch and "
    "slower=SECONDS: the ranks are held after a call that has ended so. All must be true. No words: each call. "
    f"Lines of standard input then say what to do: {', '.join(COMMANDS)}, quit. Its end lets all go on. With --json, "
    "what happens and each answer is a JSON object on a line.",
)
