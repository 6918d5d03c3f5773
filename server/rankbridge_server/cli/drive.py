"""`rankbridge drive`: a gang for programs in any language, by lines of JSON."""

from __future__ import annotations

from .options import FILE, Command, Option, Options

_HELP = """Drive a gang by lines of JSON: a request on each line of standard input, an answer with its id on a line of
standard output, in the words of scenarios.

\b
  {"id": 1, "do": "open", "protocol": 1, "size": 2}
  {"id": 2, "do": "create", "name": "x", "dtype": "float32", "shape": [4], "fill": "rank"}
  {"id": 3, "do": "call", "call": "all_reduce", "of": "x", "as": "y"}
  {"id": 4, "do": "get", "name": "y"}

The gang ends with the input. Ends with 0, or with 2 after a line that is no request. docs/harness_language.md has the
words.
"""


def _run(options: Options) -> int:
    from rankbridge.harness import driver

    return driver.drive(record=options.record)


COMMAND = Command(
    "drive",
    _run,
    [
        Option(
            "--record",
            type=FILE,
            metavar="FILE",
            help="write the session into FILE, as a scenario that does the same and expects what came of it",
        ),
    ],
    help=_HELP,
)
