"""How ranks that are held at different calls come to be held at the same one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .holding import HeldCall


class CatchUp:
    """Chooses whom to step until all of `ranks` are held at one call."""

    def __init__(self, ranks: Collection[int]) -> None:
        self._ranks = frozenset(ranks)
        # Numbers of the calls out of which ranks were stepped, by rank, caller and group.
        self._stepped: dict[tuple[int, str, str], int] = {}

    def is_reached(self, held: Sequence[HeldCall]) -> bool:
        """Tells whether all ranks are held, at the same call of one group."""
        calls = {(it.group, it.operation, it.number, it.caller) for it in held}
        return {it.rank for it in held} == self._ranks and len(calls) == 1

    def behind(self, held: Sequence[HeldCall]) -> list[HeldCall]:
        """Gives the calls to step: of each group those with the lowest number, as other ranks may wait in them.

        None where a rank that is not held was stepped out of an earlier call of that group: it is still to come.
        """
        least: dict[tuple[str, str], int] = {}
        for it in held:
            group = it.caller, it.group
            least[group] = min(it.number, least.get(group, it.number))
        away = self._ranks - {it.rank for it in held}
        chosen = [
            it
            for it in held
            if it.number == least[it.caller, it.group]
            and all(self._stepped.get((rank, it.caller, it.group), it.number) >= it.number for rank in away)
        ]
        self._stepped.update({(it.rank, it.caller, it.group): it.number for it in chosen})
        return chosen
