"""The words of the driver's requests: those of scenarios, and a few more."""

from __future__ import annotations

from rankbridge.harness.kinds import Choice, Either, Flag, Many, Named, Record, Text, Whole, Word
from rankbridge.harness.vocabulary import EXPECT, FAULT, GANG, MOST_MS, MOST_RANKS, ONE_CALL, STEP, TENSOR

PROTOCOL = 1

_ID = Either((Whole(0, 2**53), Text(100)))
_NAME = Text(100)
_RANK = Whole(0, MOST_RANKS - 1)
_MS = Whole(1, MOST_MS)

_STEP = {
    name: it
    for name, it in STEP.words.items()
    if name not in ("name", "form", "await", "wait", "each", "call")
}


def _plain(words: dict[str, Word]) -> dict[str, Word]:
    return {name: Word(it.kind, it.help, by_rank=it.by_rank) for name, it in words.items()}


def _tensor_words() -> dict[str, Word]:
    given = _plain(dict(TENSOR.words))
    return {
        **given,
        "base64": Word(Text(2 << 20), "Its bytes, little-endian, row-major: at most 1 MiB."),
        "file": Word(Text(255), "A .npy or .safetensors file in the folder that `open` named."),
        "tensor": Word(Text(1000), "Name of the tensor in a .safetensors file. Not given: it has one."),
    }


_DO: dict[str, tuple[str, dict[str, Word]]] = {
    "open": (
        "Starts a gang, and forms it.",
        {
            "protocol": Word(Whole(PROTOCOL, PROTOCOL), "Version of this protocol: 1.", required=True),
            **GANG.words,
            "backend": Word(GANG.words["backend"].kind, "What moves the data. Not given: gloo."),
            "load": Word(GANG.words["load"].kind, "As of a gang; files are from the driver's folder."),
            "points": Word(
                Flag(), "Faults can come at collectives of functions, which cost a little more then."
            ),
            "folder": Word(Text(4000), "Folder of files."),
            "timeout_ms": Word(_MS, "Of each call that has none of its own. Not given: 10,000."),
            "seed": Word(Whole(0, 2**63 - 1), "Of whatever is drawn."),
        },
    ),
    "create": (
        "Makes a tensor on every rank, by a generator.",
        {"name": Word(_NAME, "Its name.", required=True), **TENSOR.words},
    ),
    "put": (
        "Brings a tensor to a rank, or to every rank.",
        {
            "name": Word(_NAME, "Its name.", required=True),
            "rank": Word(_RANK, "The rank. Not given: every rank."),
            **_tensor_words(),
        },
    ),
    "get": (
        "Gives the elements of a tensor.",
        {
            "name": Word(_NAME, "Its name.", required=True),
            "rank": Word(_RANK, "The rank. Not given: every rank."),
            "form": Word(
                Choice(("values", "base64", "file", "safetensors")),
                "How; file: a .npy file. Not given: values up to 64 elements, else base64.",
            ),
        },
    ),
    "groups": (
        "Makes groups, if it names some; gives all.",
        {"groups": Word(Named(Many(_RANK, 1, MOST_RANKS)), "Ranks in group order.")},
    ),
    "call": (
        "Calls an operation on all members of a group, as a step.",
        {"call": Word(STEP.words["call"].kind, "Operation.", required=True), **_STEP},
    ),
    "each": (
        "Calls single ranks, of each rank in this order, as a step.",
        {
            "each": Word(Many(ONE_CALL, 1, 1000), "The calls.", required=True),
            "wait": Word(STEP.words["wait"].kind, "false: each call at once."),
            **{name: _STEP[name] for name in ("timeout_ms", "fault", "expect")},
        },
    ),
    "await": (
        "Holds the requests that follow until another one is answered.",
        {"of": Word(_ID, "Its id. Not given: until all are.")},
    ),
    "cancel": (
        "Withdraws the calls of another request.",
        {
            "of": Word(_ID, "Its id.", required=True),
            "ranks": Word(Many(_RANK), "Of these ranks. Not given: of all."),
        },
    ),
    "fault": ("Does something to the ranks, as `fault` of a step.", dict(FAULT.words)),
    "form": (
        "Forms the next generation.",
        {"timeout_ms": Word(_MS, "Longest time."), "expect": Word(EXPECT, "As of a step.")},
    ),
    "status": ("Says how every rank is.", {}),
    "close": ("Ends the gang. Another can be opened.", {}),
}

DO: dict[str, str] = {name: text for name, (text, _) in _DO.items()}
"""What can be asked for, in a sentence."""

_MORE: dict[str, dict[str, Word]] = {name: words for name, (_, words) in _DO.items()}

REQUEST = Record(
    "request",
    {
        "id": Word(_ID, "Of the answer; not that of a request that goes on.", required=True),
        "do": Word(Choice(tuple(_DO), "something to do"), "What.", required=True),
    },
    by="do",
    more=_MORE,
)


def record_of(request: dict[str, object]) -> Record:
    """Gives the words that go with a request: of calls, the arguments of their operation, too."""
    call = request.get("call")
    if request.get("do") != "call" or not isinstance(call, str) or call not in STEP.more:
        return REQUEST
    words = {**_MORE["call"], **STEP.more[call]}
    return Record(REQUEST.name, REQUEST.words, by="do", more={**_MORE, "call": words})
