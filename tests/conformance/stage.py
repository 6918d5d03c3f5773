"""Where a case is replayed: a gang of its size, its groups, and calls of a group with what each member gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.clients.client import CallArguments, Client
from tests.conformance.gangs import Gangs
from tests.conformance.moments import Answer
from tests.conformance.values import Tensor

from rankbridge import Gang, Group, Ref

HOPELESS_S = 3.0
"""Longest time of a call that waits for somebody who never comes."""

BY_SOURCE = {
    "broadcast_object": "src_rank_in_group",
    "broadcast_object_list": "src_rank_in_group",
    "broadcast_objects": "src_rank_in_group",
    "broadcast_tensor_dict": "src_rank_in_group",
    "synchronize_value": "src_rank_in_group",
    "synchronize_flag": "src_rank_in_group",
    "scatter_object": "src_rank_in_group",
}
"""Methods of a gang that take what one member gives, and the option that says which one."""

OF_ONE_RANK = frozenset(
    f"{verb}_{what}".removesuffix("_tensor")
    for verb in ("send", "recv")
    for what in ("tensor", "object", "tensor_dict")
)
"""Methods that only a rank has."""


class Stage:
    """One case's place.

    Attributes:
        gang: The gang, with the Python client, for what is asked and not replayed.
        client: The client that replays.
        name: What names of this case's groups begin with.
        gangs: Where the gang comes from.
    """

    def __init__(self, gang: Gang, client: Client, name: str, gangs: Gangs) -> None:
        """Takes what the case is replayed with."""
        self.gangs = gangs
        self.gang = gang
        self.client = client
        self.name = name
        self._groups: list[str] = []

    def close(self) -> None:
        """Ends the groups that are left."""
        left = [name for name in self._groups if name in {group.name for group in self.gang.groups()}]
        self._groups = []
        if left:
            self.gang.destroy_groups(left)

    def made(self, groups: Sequence[Group]) -> Sequence[Group]:
        """Takes groups that were made in another way, to end them with the case."""
        self._groups += [group.name for group in groups]
        return groups

    def new_groups(self, lists: Mapping[str, Sequence[int]]) -> Answer:
        """Makes groups of some ranks each, by the end of their name; its answer is one for all ranks."""
        named = [(f"{self.name}/{name}", list(ranks)) for name, ranks in lists.items()]
        answer = self.client.new_groups(named)
        if "ok" in answer:
            self._groups += [name for name, _ in named]
        return answer

    def group(self, name: str) -> Group:
        """Describes one of the case's groups, or "world"."""
        return self.gang.group("world" if name == "world" else f"{self.name}/{name}")

    def put(self, rank: int, tensor: Tensor) -> Ref:
        """Brings a tensor to a rank."""
        return self.client.put(rank, tensor)

    def together(
        self,
        method: str,
        given: Mapping[int, CallArguments],
        group: Group,
        timeout: float | None = None,
        fetch: bool = True,
    ) -> dict[int, Answer]:
        """Calls a method with what each rank gives.

        If all members come and agree, as one call of the gang; else each rank is called by itself, all at once.
        Answers have their tensors by value, unless they are not to be fetched.
        """
        options = [dict(options) for _, options in given.values()]
        agree = all(one == options[0] for one in options)
        if tuple(given) == group.ranks and agree and method in BY_SOURCE:
            source = options[0].get(BY_SOURCE[method], 0)
            # Of a source that is not there anybody's arguments will do: it is refused.
            giver = group.ranks[source] if source in range(len(group)) else group.ranks[0]
            args: tuple[Any, ...] = given[giver][0] or (None,)
        else:
            lists = [args for args, _ in given.values()]
            args = tuple(map(list, zip(*lists, strict=True)))
        if tuple(given) == group.ranks and agree and timeout is None and method not in OF_ONE_RANK:
            answers = self.client.call(method, args, options[0], group.name, group.ranks)
        else:
            answers = self.client.each(method, given, group.name, timeout)
        return {rank: self.fetched(answers[rank]) if fetch else answers[rank] for rank in given}

    def one(
        self,
        rank: int,
        method: str,
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        group: str = "world",
        timeout: float | None = None,
    ) -> Answer:
        """Calls a method of one rank, and gives its answer with tensors by value."""
        return self.fetched(self.client.each(method, {rank: (args, options)}, group, timeout)[rank])

    def fetched(self, answer: Answer) -> Answer:
        """An answer with tensors instead of refs."""
        return {"ok": self._fetched(answer["ok"])} if "ok" in answer else answer

    def _fetched(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return self.client.get(value)
        if isinstance(value, list | tuple):
            return type(value)(self._fetched(item) for item in value)
        if isinstance(value, dict):
            return {key: self._fetched(item) for key, item in value.items()}
        return Tensor.of_bridge(value) if hasattr(value, "dtype") and not isinstance(value, Tensor) else value
