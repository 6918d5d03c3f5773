"""What operations read, while there are breakpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..task import Task

if TYPE_CHECKING:
    from ..refs.refs import Cell


class Inputs:
    """What the operations that are not answered yet read. Thread-safe."""

    def __init__(self) -> None:
        self._cells: dict[Task, list[Cell]] = {}

    def keep(self, task: Task, cells: list[Cell]) -> None:
        """Keeps the inputs of an operation until it is answered."""
        self._cells[task] = cells
        task.then(self._forget)

    def of(self, task: Task) -> list[object]:
        """The tensors that an operation reads, as they are now."""
        return [cell.tensor for cell in self._cells.get(task, ())]

    def _forget(self, task: Task) -> None:
        self._cells.pop(task, None)
