"""vLLM's message queues and graphs."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.clients.python import attempt
from tests.conformance.moments import Answer
from tests.conformance.stage import Stage
from tests.conformance.systems.vllm_calls import Arguments, by_value
from tests.conformance.values import Tensor

from rankbridge import Group, GroupCoordinator

IS_THERE = "queue"
"""What is answered of a queue that was made: it is used by its name."""


class Queues:
    """The queues of one case, by the keys that it keeps them under."""

    def __init__(self, stage: Stage) -> None:
        """Knows the stage."""
        self._stage = stage
        self._groups: dict[str, Group] = {}
        # By key; of those that are not here it is the key.
        self._names: dict[str, str] = {}

    def create(
        self, method: str, group: Group, given: Mapping[int, Arguments], key: str
    ) -> dict[int, Answer]:
        """Makes a queue on all members, or one from each other member to a reader."""
        self._groups[key] = group
        first = next(iter(given.values()))
        coordinator = GroupCoordinator(self._stage.gang, [group])
        if method == "create_mq_broadcaster":
            answer = attempt(lambda: self._to_all(coordinator, first["writer_rank"], key))
        else:
            reader = first["reader_rank_in_group"]
            answer = attempt(lambda: self._to_one_reader(coordinator, reader, group))
        return dict.fromkeys(given, {"ok": IS_THERE} if "ok" in answer else answer)

    def _to_all(self, coordinator: GroupCoordinator, writer: int, key: str) -> None:
        queues = coordinator.create_mq_broadcaster(writer)
        (self._names[key],) = {queue.name for queue in queues if queue is not None}

    def _to_one_reader(self, coordinator: GroupCoordinator, reader: int, group: Group) -> None:
        by_rank = coordinator.create_single_reader_mq_broadcasters(reader)
        queues = [by_rank[rank] for rank in group.ranks]
        assert [queue is None for queue in queues] == [place == reader for place in range(len(group))]
        for place, queue in enumerate(queues):
            if queue is not None:
                queue.enqueue(["from", place])
                assert queue.dequeue(reader) == ["from", place]

    def create_on(self, rank: int, group: Group, given: Arguments, key: str) -> Answer:
        """Makes one rank's part of a queue."""
        self._groups[key] = group
        make = self._stage.gang[rank].new_queue
        answer = attempt(lambda: make(key, writer_rank_in_group=given["writer_rank"], group=group))
        return {"ok": IS_THERE} if "ok" in answer else answer

    def on_all(self, method: str, key: str, given: Mapping[int, Arguments]) -> dict[int, Answer]:
        """Calls a method of a queue on all members."""
        group = self._groups[key]
        if method == "wait_until_ready":
            # A queue that was made is ready; that all have come so far, a barrier tells.
            return self._stage.together("barrier", {rank: ((), {}) for rank in group.ranks}, group)
        assert method == "broadcast_object"
        queue = self._stage.gang.queue(self._names.get(key, key), group=group)
        writer = queue.writer_rank_in_group
        value = by_value(given[group.ranks[writer]]["args"][0])
        answer = attempt(lambda: queue.broadcast_object(value))
        if "error" in answer:
            return dict.fromkeys(given, answer)
        read = [group.ranks[place] for place in queue.reader_ranks_in_group]
        answers: dict[int, Answer] = {group.ranks[writer]: {"ok": value}}
        return answers | {rank: {"ok": it} for rank, it in zip(read, answer["ok"], strict=True)}

    def on_one(self, rank: int, method: str, key: str, given: Arguments, ended: bool) -> Answer:
        """Calls a method of a queue on one member; `ended`: within its time, when it was recorded."""
        there = self._stage.gang[rank]
        group, key = self._groups[key], self._names.get(key, key)
        timeout = None if ended else given.get("timeout")
        match method:
            case "enqueue":
                value = by_value(given["args"][0])
                return attempt(lambda: there.enqueue(key, value, group=group, timeout=timeout))
            case "dequeue":
                return self._stage.fetched(attempt(lambda: there.dequeue(key, group=group, timeout=timeout)))
            case "broadcast_object":
                queue = self._stage.gang.queue(key, group=group)
                if group.member(rank).rank_in_group != queue.writer_rank_in_group:
                    return attempt(lambda: there.dequeue(key, group=group))
                (value,) = given["args"]
                answer = attempt(lambda: there.enqueue(key, value, group=group))
                return {"ok": value} if "ok" in answer else answer
            case "shutdown":
                answer = attempt(lambda: there.shut_down_queue(key, group=group))
                return {"ok": None} if "ok" in answer else answer
        raise NotImplementedError(method)

    def capture(self, group: Group, given: Mapping[int, Arguments]) -> dict[int, Answer]:
        """Records a reduction, changes what it reads, and runs it again."""
        return dict.fromkeys(given, attempt(lambda: self._captured(group)))

    def _captured(self, group: Group) -> None:
        gang = self._stage.gang
        refs = gang.put([Tensor.of("float32", [1.0]).array for _ in group.ranks], group=group)
        with gang.graph_capture(group=group) as graph:
            sums = gang.all_reduce(refs, group=group)
        gang.all_reduce(refs, group=group, in_place=True)
        gang.replay(graph)
        expected = [[float(len(group) ** 2)]] * len(group)
        assert [self._stage.client.get(ref).array.tolist() for ref in sums] == expected
