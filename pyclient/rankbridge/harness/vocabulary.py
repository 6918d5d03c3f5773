"""The words of scenarios, declared once: the check, the JSON Schema and the page of words are made from it."""

from __future__ import annotations

from rankbridge._plan.dtypes import DTYPES
from rankbridge.errors import ErrorCode
from rankbridge.harness.kinds import (
    Anything,
    ByRank,
    Choice,
    Either,
    Flag,
    Kind,
    Many,
    Named,
    Number,
    Record,
    Text,
    Whole,
    Word,
)
from rankbridge.harness.operations import DECLARED
from rankbridge.harness.points import PointText

MOST_RANKS = 256
MOST_CASES = 10_000
MOST_MS = 600_000
BACKENDS = ("gloo", "fake", "mpi", "nccl")

_REDUCE_OPS = ("sum", "product", "min", "max", "avg", "band", "bor", "bxor")

_RANK = Whole(0, MOST_RANKS - 1)
_RANKS = Many(_RANK)
_MS = Whole(1, MOST_MS)
_NAME = Text(100)
_CODE = Choice(("OK", *(it.value for it in ErrorCode)), "an error code, or OK")

_LIMITS = {
    it: Word(Whole(1, 2**62), f"As `rankbridge up --{it.replace('_', '-')}`.")
    for it in (
        "max_bytes",
        "max_refs",
        "max_pending",
        "max_session_bytes",
        "max_session_refs",
        "max_shared_bytes",
    )
}

GANG = Record(
    "gang",
    {
        "size": Word(Whole(1, MOST_RANKS), "Ranks.", required=True),
        "backend": Word(
            Choice(
                BACKENDS,
                f"{', '.join(BACKENDS)}, c10d:MODULE or program:COMMAND, as of `rankbridge up --backend`",
                ("c10d:", "program:"),
            ),
            "What moves the data. Not given: fake; with `load` or faults of processes, gloo.",
        ),
        "load": Word(
            Either((Text(4000), Many(Text(4000), 1, 100))),
            "Modules with functions, as `rankbridge up --load`: a file (from the scenario's folder) or a name.",
        ),
        "limits": Word(Record("limits", _LIMITS), "Quotas of each rank."),
    },
)

_ARANGE = Record(
    "arange",
    {
        "start": Word(Number(), "The first element. Not given: 0.", by_rank=True),
        "step": Word(Number(), "From one element to the next. Not given: 1.", by_rank=True),
    },
)
_FILL = Record(
    "generator",
    {
        "arange": Word(
            Either((Number(), Choice(("rank",)), _ARANGE)),
            "Element i is start + i; the start is a number, or the rank.",
            by_rank=True,
        ),
        "seed": Word(
            Whole(0, 2**63 - 1), "Pseudorandom elements, which differ from rank to rank.", by_rank=True
        ),
    },
    one_of=("arange", "seed"),
)
TENSOR = Record(
    "tensor",
    {
        "dtype": Word(
            Choice(tuple(DTYPES), "a dtype"), "torch's name of the element type.", required=True, by_rank=True
        ),
        "shape": Word(Many(Whole(0), most=8), "Sizes, outermost first.", required=True, by_rank=True),
        "fill": Word(
            Either((Number(), Choice(("rank", "random")), _FILL)),
            "Elements: all this number; `rank`: all the rank's number; `random`: pseudorandom by the scenario's seed "
            "and the repetition. Not given: 0.",
            by_rank=True,
        ),
        "values": Word(
            Many(Anything(), most=64), "The elements themselves, in lists as the shape says.", by_rank=True
        ),
    },
)

_CHANGE = Record(
    "change",
    {
        "op": Word(Choice(_REDUCE_OPS), "Reduce op."),
        "root_rank_in_group": Word(_RANK, "The source, or the destination."),
    },
    one_of=("op", "root_rank_in_group"),
)
FAULT = Record(
    "fault",
    {
        "kill": Word(_RANKS, "SIGKILL to the processes of these ranks."),
        "stop": Word(_RANKS, "SIGSTOP to them."),
        "cont": Word(_RANKS, "SIGCONT to them, unless they have ended by then."),
        "slow": Word(_RANKS, "They run for half of the time, until the step ends: stopped for 20 of 40 ms."),
        "drop_link": Word(_RANKS, "Closes the control links between these ranks and rank 0."),
        "partition": Word(
            Many(Many(_RANK, 1), 2, 2),
            "Two sets of ranks: closes every control link and every connection for data between one and the other. The "
            "next forming makes new ones.",
        ),
        "delay_ms": Word(
            ByRank(Whole(0, MOST_MS)),
            "These ranks are called so much later than the others; at a collective, enter it so much later.",
        ),
        "cancel": Word(_RANKS, "Withdraws the calls of these ranks."),
        "quota": Word(
            _RANKS,
            "Their session has no room for another ref while the step goes on: it is filled up to the gang's "
            "`limits.max_session_refs`.",
        ),
        "hold": Word(_RANKS, "They wait at a collective until the step ends."),
        "change": Word(
            ByRank(_CHANGE), "They ask at a collective for something else than the function says."
        ),
        "after_ms": Word(
            Either((Whole(0, MOST_MS), Many(Whole(0, MOST_MS), 2, 2))),
            "When, from the step's begin. A list: between the two, drawn by the scenario's seed and the repetition.",
        ),
        "at": Word(
            Either((Choice(("waiting", "entered")), PointText())),
            "When instead: as soon as all that the step calls without delay have come, and one waits for others; "
            "as soon as one has entered the backend. Or before a function enters a collective of "
            "torch.distributed: on each rank of the fault, or on the rank that it names; the rank goes on after "
            "the fault.",
        ),
    },
    one_of=(
        "kill",
        "stop",
        "cont",
        "slow",
        "drop_link",
        "partition",
        "delay_ms",
        "cancel",
        "quota",
        "hold",
        "change",
    ),
)

_NAMES = Named(_RANKS, "state")
_RAISED = Record(
    "raised",
    {
        "type": Word(Text(), 'Name of its class: "ValueError".'),
        "text": Word(Text(), "Its text has this in it."),
        "where": Word(Text(), 'Line of the module that raised it, or a begin of that: "app.py:88 in train".'),
        "rank": Word(_RANK, "Rank on which it was raised."),
    },
)
_EXPECTED: dict[str, Word] = {
    "ok": Word(
        Either(
            (
                Flag(),
                Record("values", {"all": Word(Anything(), "Of every rank.", required=True)}),
                ByRank(Anything()),
            )
        ),
        "true: every call succeeds and gives what the reference model gives. `all` or a rank: gives this; a number "
        "stands for every element.",
    ),
    "error": Word(
        Either((_CODE, Many(_CODE, 1), ByRank(Either((_CODE, Many(_CODE, 1)))))),
        "Every call fails with this code, or with one of these; or by rank.",
    ),
    "indefinite": Word(
        Either((Flag(), ByRank(Flag()))), "Whether errors say that some rank may have done it."
    ),
    "sides": Word(
        Many(_RANKS), "Ranks that every error shows as having asked for the same thing, side by side."
    ),
    "names": Word(
        Either((_NAMES, ByRank(_NAMES))),
        "Ranks that every error names, by state: missing, lost, disagrees; or by rank.",
    ),
    "unchanged": Word(Many(_NAME), "Tensors that are bit by bit as before, on every rank."),
    "kept": Word(Many(_NAME), "The same, but on ranks that were replaced."),
    "replaced": Word(_RANKS, "Ranks that have another process than before; no others have."),
    "within_ms": Word(_MS, "Longest time from the step's begin to its end."),
    "raised": Word(_RAISED, "Exception of a function that every FUNCTION_FAILED shows."),
}
SOMETIMES = Record("sometimes", _EXPECTED)
EXPECT = Record(
    "expect",
    {
        **_EXPECTED,
        "sometimes": Word(
            SOMETIMES, "Holds in one repetition or more: a fault that never hit tests nothing."
        ),
    },
)

_OF_CALL = {
    "group": Word(_NAME, "Group that is called. Not given: world."),
    "as": Word(_NAME, "Name of what it gives, a tensor for the steps that follow."),
}
ONE_CALL = Record(
    "one_call",
    {
        "rank": Word(_RANK, "Rank that is called.", required=True),
        "call": Word(Choice(tuple(DECLARED), "an operation"), "Operation.", required=True),
        **_OF_CALL,
    },
    by="call",
    more={name: it.of_one for name, it in DECLARED.items()},
)


def _optional(words: dict[str, Word]) -> dict[str, Word]:
    return {name: Word(it.kind, it.help, by_rank=it.by_rank) for name, it in words.items()}


def _all_words() -> dict[str, Word]:
    return {name: word for it in DECLARED.values() for name, word in _optional(it.of_one).items()}


_OF_GROUPS = tuple(name for name, it in DECLARED.items() if it.of_group)
_BUT: Kind = ByRank(Record("other", _all_words()))
STEP = Record(
    "step",
    {
        "name": Word(_NAME, "Its name, for results and `await`."),
        "call": Word(
            Choice(_OF_GROUPS, "an operation of all members (others stand in `each`)"),
            "Operation that all members of the group are called for.",
        ),
        "each": Word(
            Many(ONE_CALL, 0, 1000),
            "Calls of single ranks; of each rank in this order. An empty list: the faults alone.",
        ),
        "form": Word(Flag(), "Forms the next generation."),
        "await": Word(_NAME, "Waits for a step that was not waited for."),
        "but": Word(_BUT, "Other arguments of some ranks."),
        "absent": Word(_RANKS, "Members that are not called."),
        **_OF_CALL,
        "wait": Word(Flag(), "false: the next step begins at once; and of `each`, each call at once."),
        "timeout_ms": Word(_MS, "Of each call. Not given: the scenario's."),
        "fault": Word(Either((FAULT, Many(FAULT, 1, 100))), "What is done to the ranks meanwhile."),
        "expect": Word(EXPECT, "What must come of it. Not given: every call succeeds."),
    },
    one_of=("call", "each", "form", "await"),
    by="call",
    more={name: it.of_all for name, it in DECLARED.items() if it.of_group},
)

NEEDS = Record(
    "needs",
    {
        "operations": Word(
            Many(Choice(tuple(DECLARED), "an operation")), "Operations that the backend must have."
        ),
        "dtypes": Word(Many(Choice(tuple(DTYPES), "a dtype")), "Dtypes that it must have."),
        "reductions": Word(
            Named(Many(Choice(tuple(DTYPES), "a dtype")), "op"), "Dtypes that it must reduce, by op."
        ),
    },
)

SCENARIO = Record(
    "scenario",
    {
        "format": Word(Whole(1, 1), "Format of the file: 1.", required=True),
        "name": Word(Text(), "What it shows, as a sentence.", required=True),
        "gang": Word(GANG, "Ranks that it needs.", required=True),
        "groups": Word(
            Named(Many(_RANK, 1, MOST_RANKS), "name"), "Groups beside world: ranks in group order."
        ),
        "tensors": Word(Named(TENSOR), "Tensors that every rank has."),
        "step": Word(Many(STEP, 1, 1000), "What happens, in this order.", required=True),
        "matrix": Word(
            Named(Many(Either((Number(), Flag(), Text())), 1, 1000)),
            "Values by name: the scenario runs with every combination, with `$name` standing for the value.",
        ),
        "repeat": Word(Whole(1, MOST_CASES), "How often each combination runs."),
        "seed": Word(Whole(0, 2**63 - 1), "Of whatever is drawn."),
        "needs": Word(NEEDS, "What the backend must have; else the scenario is skipped."),
        "timeout_ms": Word(_MS, "Of each call, unless a step has its own. Not given: 10,000."),
    },
)
"""A whole scenario."""
