"""The Elixir client as a controller."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.chaos.controllers.controller import Controller
from tests.chaos.controllers.forms import one_ref, ref_form, ref_of
from tests.chaos.controllers.process import Asked, ElixirProcess
from tests.chaos.operations import Values

from rankbridge import Outcome, RankBridgeError, Ref

LEASE_S = 30.0
# Names of gangs and files, for all controllers of a process.
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class ElixirFlight:
    """A call that a process of the Elixir controller makes."""

    rank: int
    asked: Asked

    def outcome(self, timeout: float | None = None) -> Outcome[Ref]:
        """Waits for the end. Raises NoAnswerError, a TimeoutError."""
        assert timeout is not None
        try:
            return Outcome(rank=self.rank, value=ref_of(self.asked.value(timeout)))
        except RankBridgeError as error:
            return Outcome(rank=self.rank, error=error)

    def cancel(self) -> None:
        """Kills the caller, which takes its call back."""
        self.asked.kill()


class ElixirController(Controller):
    """One gang of the Elixir program. Tensors travel as files. Every method raises NoAnswerError as well.

    Attributes:
        session_id: Id of the gang's session.
    """

    name = "elixir"

    def __init__(
        self, process: ElixirProcess, directory: Path, targets: Sequence[str], lease: float = LEASE_S
    ) -> None:
        """Connects to a gang.

        Args:
            process: The program.
            directory: For tensors on their way.
            targets: gRPC target of each rank.
            lease: Of its sessions, in seconds.
        """
        self.process = process
        self._directory = directory
        self._targets = list(targets)
        self._lease = lease
        self._gang, self.session_id = self._connect()

    def other(self, process: ElixirProcess, lease: float) -> ElixirController:
        """Another controller of the same gang, in another program, with a lease in seconds."""
        return ElixirController(process, self._directory, self._targets, lease)

    def close(self) -> None:
        """Ends the gang, and its session with it."""
        if not self.process.lost:
            self.process.ask("close", gang=self._gang)

    def put(self, values: Mapping[int, Values]) -> dict[int, Ref]:
        """See the base class."""
        files = {rank: self._file() for rank in values}
        try:
            asked = {rank: self._put(rank, it, files[rank]) for rank, it in values.items()}
            outcomes = [ElixirFlight(rank, it).outcome(self.process.patience) for rank, it in asked.items()]
        finally:
            for file in files.values():
                file.unlink(missing_ok=True)
        refs = {}
        for it in outcomes:
            if it.error is not None:
                raise it.error
            assert it.value is not None
            refs[it.rank] = it.value
        return refs

    def fetch(self, ref: Ref) -> Values:
        """See the base class."""
        file = self._file()
        try:
            tensor = self._ask("get", ref=ref_form(ref), file=str(file))
            return np.fromfile(file, dtype=tensor["dtype"]).reshape(tensor["shape"])
        finally:
            file.unlink(missing_ok=True)

    def create(self, rank: int, number: int) -> list[Ref]:
        """See the base class."""
        return [one_ref(it) for it in self._ask("create", rank=rank, number=number)]

    def release(self, refs: Sequence[Ref]) -> None:
        """See the base class."""
        self._ask("release", refs=[ref_form(ref) for ref in refs])

    def start(
        self,
        rank: int,
        kind: str,
        ref: Ref | None,
        options: Mapping[str, Any],
        *,
        group: str,
        operation_id: str,
        timeout: float,
    ) -> ElixirFlight:
        """See the base class."""
        all_options = {**options, **_options(group, timeout), "operation_id": operation_id}
        form = None if ref is None else ref_form(ref)
        return ElixirFlight(
            rank, self._begin("call", rank=rank, operation=kind, ref=form, options=all_options)
        )

    def call_all(
        self, kind: str, refs: Sequence[Ref] | None, *, group: str, ranks: Sequence[int], timeout: float
    ) -> list[Ref]:
        """See the base class."""
        forms = None if refs is None else [ref_form(ref) for ref in refs]
        given = self._ask("call_all", operation=kind, refs=forms, options=_options(group, timeout))
        return [one_ref(it) for it in given or []]

    def await_operation(self, rank: int, operation_id: str, *, timeout: float) -> Ref | None:
        """See the base class."""
        milliseconds = round(timeout * 1000)
        return ref_of(self._ask("await", rank=rank, operation_id=operation_id, timeout=milliseconds))

    def form(self, survivor: int) -> None:
        """See the base class. This client asks rank 0, and waits for it when it is being replaced."""
        self._ask("form")

    def rejoin(self) -> None:
        """See the base class."""
        self._ask("rejoin")

    @contextmanager
    def session(self) -> Iterator[str]:
        """See the base class. In Elixir each gang has one session, so this is another gang of the same ranks."""
        usual = self._gang, self.session_id
        self._gang, self.session_id = self._connect()
        try:
            yield self.session_id
        finally:
            self.close()
            self._gang, self.session_id = usual

    def _connect(self) -> tuple[str, str]:
        gang = f"chaos_{next(_NUMBERS)}"
        lease = round(self._lease * 1000)
        session_id: str = self.process.ask("connect", gang=gang, targets=self._targets, lease=lease)
        return gang, session_id

    def _put(self, rank: int, values: Values, file: Path) -> Asked:
        values.tofile(file)
        return self._begin(
            "put", rank=rank, dtype=str(values.dtype), shape=list(values.shape), file=str(file)
        )

    def _file(self) -> Path:
        return self._directory / f"tensor-{next(_NUMBERS)}"

    def _begin(self, what: str, **fields: Any) -> Asked:
        return self.process.begin(what, gang=self._gang, **fields)

    def _ask(self, what: str, **fields: Any) -> Any:
        return self.process.ask(what, gang=self._gang, **fields)


def _options(group: str, timeout: float) -> dict[str, Any]:
    return {"group": group, "timeout": round(timeout * 1000)}
