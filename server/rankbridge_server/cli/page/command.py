"""`rankbridge page`."""

from __future__ import annotations

import ipaddress
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...core.printable import lines
from ..beside import ready, wait
from ..gangs import NoGang, arguments, gang_options, target
from ..options import FILE, Command, Option, Options, address

if TYPE_CHECKING:
    from rankbridge import AsyncGang

    from .model import Model
    from .server import Server
    from .source import Source

TIMEOUT_S = 3.0
BAD = 2


def _run(options: Options) -> int:
    try:
        model, source = _of_gang(options) if options.folder is None else _of_folder(options.folder)
        server = _server(options, model, source)
    except NoGang as error:
        print(f"rankbridge page: {lines(str(error))}", file=sys.stderr)
        return BAD
    if not _is_near(options.listen.host):
        print(
            "rankbridge page: this is not encrypted: who hears the network reads the key and the page; better listen "
            "on 127.0.0.1, and forward the port by ssh -L",
            file=sys.stderr,
        )
    server.start()
    try:
        ready("page", server.url)
        wait(options.exit_on_stdin_close)
    finally:
        server.stop()
    return 0


def _server(options: Options, model: Model, source: Source) -> Server:
    from .browsers import Browsers
    from .server import Server

    try:
        return Server(options.listen, Browsers(model, source), source)
    except OSError as error:
        raise NoGang(f"the page cannot be served at {options.listen}: {error.strerror or error}") from None


def _of_gang(options: Options) -> tuple[Model, Source]:
    """The state of the gang that the options name. Raises NoGang."""
    from .gang_source import GangSource
    from .model import Model

    where, given = target(options), arguments(options)

    async def connect() -> AsyncGang:
        import rankbridge

        # Anew: another gang may have written its endpoints there.
        return await rankbridge.aconnect(where, session=False, **given)

    model = Model(_name(where), "gang", admits=True)
    return model, GangSource(model, connect)


def _of_folder(folder: Path) -> tuple[Model, Source]:
    """The state of a job, from the folder of `rankbridge watch`. Raises NoGang."""
    from .folder_source import FolderSource
    from .model import Model

    if not folder.is_dir():
        raise NoGang(f"{folder} is no folder: name the one that `rankbridge watch --record` writes")
    model = Model(str(folder), "job", admits=False)
    return model, FolderSource(model, folder)


def _name(where: str | list[str]) -> str:
    if isinstance(where, str):
        with suppress(OSError, ValueError, KeyError, TypeError):
            return str(json.loads(Path(where).read_text())["gang"])
    return "gang"


def _is_near(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


COMMAND = Command(
    "page",
    _run,
    [
        click.Argument(["folder"], required=False, type=FILE, metavar="[FOLDER]"),
        Option(
            "--listen",
            type=address,
            default="127.0.0.1:9418",
            metavar="HOST:PORT",
            help="where the page is served, to who has the key; port 0 for any",
        ),
        Option("--exit-on-stdin-close", is_flag=True, help="end when standard input is closed: for programs"),
        *gang_options(TIMEOUT_S),
    ],
    help="Serve a live page of a gang, until interrupted, at the URL that is printed: what its ranks do as lanes over "
    "time, what is pending and for whom it waits, who waits for whom, the verdict, rates, and what ranks hold. The URL "
    "has a key; without it nothing is shown. The page needs no internet, asks ranks only while a browser shows it, and "
    "changes nothing in the gang. FOLDER: of `rankbridge watch`, whose job may run or be dead. `rankbridge up --page` "
    "runs this beside its gang.",
)
