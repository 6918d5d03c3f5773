"""What ranks of a gang say of themselves, for tests of verdicts."""

from dataclasses import replace

from rankbridge_server.core.activity import Activity, Doing
from rankbridge_server.doctor import testimony
from rankbridge_server.doctor.evidence import Frame, Process, Thread
from rankbridge_server.doctor.gang_evidence import group_of
from rankbridge_server.doctor.gang_judge import diagnose
from rankbridge_server.doctor.testimony import Admission, Operation, Silence
from rankbridge_server.doctor.verdict import Verdict

NOW = 1000.0
SIZE = 4
SUM = "all_reduce dtype=float32 shape=[4] op=sum"
AWAKE = Process(state="S", wchan="futex_do_wait", syscall="futex", blocked_s=9.0)
ASLEEP = Process(state="S", wchan="hrtimer_nanosleep", syscall="clock_nanosleep", blocked_s=9.0, cpu_s=0.0)
IN_FUNCTION = Thread(
    name="functions",
    frames=(
        Frame(name="next_batch", file="/job/app.py", line=7),
        Frame(name="step", file="/job/app.py", line=9),
        Frame(name="Run._call", file="/venv/rankbridge_server/core/functions/run.py", line=80),
    ),
)


def operation(contract: str = SUM, ago: float = 10.0, **fields: object) -> Operation:
    """An operation that waits for the others."""
    made = Operation(
        kind=contract.split()[0],
        group="world",
        operation_id="a",
        contract=contract,
        site="train.py:88",
        called_at=NOW - ago,
        announced_at=NOW - ago,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def done(number: int, ago: float) -> Operation:
    """One that went well."""
    return operation(ago=ago, operation_id="", sequence=number, entered_at=NOW - ago, done_at=NOW - ago)


def failed(code: str, contract: str = SUM, ago: float = 1.0, message: str = "") -> Operation:
    """One that has failed before it was admitted."""
    return operation(contract, ago, done_at=NOW - ago, code=code, message=message)


def rank(number: int, *operations: Operation, **fields: object) -> testimony.Testimony:
    """A rank that has no call unless it is said."""
    made = testimony.Testimony(
        rank=number,
        pid=100 + number,
        host="host",
        process=AWAKE,
        groups=(group_of("world", range(SIZE)),),
        operations=operations,
        activity=None if operations else Activity(doing=Doing.IDLE, seconds=12.0),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def admission(missing: list[int], waited: float = 10.0, group: str = "world", size: int = SIZE) -> Admission:
    """What a leader waits for."""
    return Admission(
        group=group,
        kind="all_reduce",
        operation_id="a",
        arrived=tuple((it, 0.0) for it in range(size) if it not in missing),
        missing=tuple(missing),
        waited_s=waited,
    )


def judged(
    ranks: list[testimony.Testimony], silences: tuple[Silence, ...] = (), patience: float = 2.0
) -> Verdict:
    return diagnose(ranks, silences, world_size=SIZE, at=NOW, interval_s=0.2, patience_s=patience)


def waiting_for(
    late: testimony.Testimony, waited: float = 10.0, history: tuple[Operation, ...] = ()
) -> list[testimony.Testimony]:
    """A gang that waits for one rank."""
    others = [rank(it, *history, operation(ago=waited)) for it in range(SIZE) if it != late.rank]
    first = replace(others[0], admissions=(admission([late.rank], waited),))
    return sorted([first, *others[1:], late], key=lambda it: it.rank)
