"""Tokens in files that their owner alone can read."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import click
from click.core import ParameterSource

from ..core.reread import Reread
from ..core.tokens import GUEST_ROLES, Role, Tokens, new_token
from ..sidecar.token_files import TokenError, private_directory, read, write_new
from .options import FILE, Command, Option, Options

VARIABLE = "RANKBRIDGE_TOKEN_FILE"


@dataclass(frozen=True, slots=True)
class JobTokens:
    """The tokens of a job's ranks, and the file that has them. None: whoever reaches them may call them."""

    tokens: Reread[Tokens] | None
    file: Path | None

    def now(self) -> Tokens | None:
        """The tokens that the file has now."""
        return None if self.tokens is None else self.tokens()


WHO = "Who may call over TCP"


def tokens_options() -> list[Option]:
    """The options that `up` and `rank` share."""
    return [
        Option(
            "--token-file",
            section=WHO,
            type=FILE,
            metavar="FILE",
            envvar=VARIABLE,
            # Before --no-tokens, which looks whether it was given.
            is_eager=True,
            help=f"the gang's tokens, as `rankbridge tokens` writes them (default: ${VARIABLE}, else new ones)",
        ),
        Option(
            "--no-tokens",
            section=WHO,
            is_flag=True,
            callback=_no_tokens,
            help="whoever reaches a rank over TCP may do everything with it, and with the user that it runs as",
        ),
    ]


def _no_tokens(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> bool:
    if wanted and ctx.get_parameter_source("token_file") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--no-tokens is not allowed with --token-file", ctx)
    return wanted


def run(options: Options) -> int:
    """Run the command; returns the exit status."""
    try:
        if options.guest:
            return _add_guest(options.file, *options.guest)
        write_new(options.file, Tokens.new().to_json() + "\n")
    except TokenError as error:
        print(f"rankbridge tokens: {error}", file=sys.stderr)
        return 1
    except FileExistsError:
        if options.keep:
            return 0
        print(f"rankbridge tokens: {options.file} is there already", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"rankbridge tokens: {options.file}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _guest(text: str) -> tuple[str, Role]:
    name, _, role = text.rpartition("=")
    if not re.fullmatch(r"[\w.@-]+", name) or name.upper() in Role.__members__ or role not in GUEST_ROLES:
        raise click.BadParameter(f"must be NAME=observe or NAME=drive: not {text!r}")
    return name, GUEST_ROLES[role]


def _add_guest(path: Path, name: str, role: Role) -> int:
    tokens, token = read(path), new_token()
    guests = path.with_name(f"{path.name}.{name}")
    guests.unlink(missing_ok=True)
    write_new(guests, token + "\n")
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    write_new(scratch, tokens.with_guest(name, role, token).to_json() + "\n")
    scratch.replace(path)
    print(guests)
    return 0


def given(options: Options) -> Reread[Tokens] | None:
    """The tokens of the file that was asked for. None: none was. Raises TokenError."""
    if options.no_tokens or options.token_file is None:
        return None
    return _reread(options.token_file)


def _reread(path: Path) -> Reread[Tokens]:
    return Reread([path], lambda: read(path))


def of_ranks(options: Options, master: tuple[str, int] | None, listen: str, *, secure: bool) -> JobTokens:
    """The tokens of ranks that something else starts, and the file that has them. Raises TokenError.

    Ranks of one user and one job that only their own host reaches find each other's in a file; others are given one.
    `master`: where the job's ranks meet. `listen`: the address on which this rank serves; `secure`: with TLS.
    """
    if options.no_tokens:
        return JobTokens(None, None)
    beyond = not _is_loopback(listen)
    if beyond and not secure and not options.insecure_token:
        raise TokenError(
            f"tokens would go to and from {listen} in plain text. Give --tls-cert and --tls-key, or --insecure-token "
            "if you trust everybody on that network"
        )
    if options.token_file is not None:
        return JobTokens(_reread(options.token_file), options.token_file)
    if beyond:
        raise TokenError(
            f"who may call a rank on {listen}? Give --token-file FILE, the same to all ranks (`rankbridge tokens FILE` "
            "makes one), or --no-tokens"
        )
    job = blake2b(repr(master).encode(), digest_size=8).hexdigest()
    path = private_directory() / f"tokens-{job}"
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    write_new(scratch, Tokens.new().to_json() + "\n")
    try:
        # Whichever rank is first; the others read it.
        with suppress(FileExistsError):
            os.link(scratch, path)
    finally:
        scratch.unlink()
    return JobTokens(_reread(path), path)


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address[0])).is_loopback for *_, address in found)


COMMAND = Command(
    "tokens",
    run,
    [
        click.Argument(["file"], type=FILE),
        Option(
            "--guest",
            type=_guest,
            metavar="NAME=ROLE",
            help="instead: give somebody who may observe or drive, but not own the gang, a token of their own, in FILE "
            "and in FILE.NAME, which you pass on; a guest's names and tensors are its own, and it may use a part of "
            "the limits",
        ),
        Option("--keep", is_flag=True, help="leave a file that is there as it is"),
    ],
    help="Write new tokens into FILE, which must not be there yet and which you alone can read: one for each role "
    "(observe, drive, own), and one that ranks show each other. Ranks on several hosts take the same file.",
)
