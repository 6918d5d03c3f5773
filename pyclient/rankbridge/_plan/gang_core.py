"""What a gang knows and decides without any I/O, for its sync and its async front."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, get_args

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call, Together
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import Calls, Scope, group_name
from rankbridge._plan.ref import Ref
from rankbridge.errors import (
    InvalidArgumentError,
    Outcome,
    RankOutOfRangeError,
    gang_error,
)

T = TypeVar("T")
RankT = TypeVar("RankT")

CLOSE_TIMEOUT = 5.0
"""Longest time that closing a session may take, in seconds: a rank that is gone has freed its refs."""

# Sessions entered with `with gang.session()`, by the gang's own key. Of the context, so that threads and
# tasks do not get into each other's sessions.
_ENTERED: ContextVar[dict[object, str]] = ContextVar("rankbridge_sessions")


def new_id() -> str:
    """Makes an id that nothing else has: 128 random bits."""
    return os.urandom(16).hex()


class GangCore(Generic[RankT]):
    """The ranks of a gang, its session, and what a call to several of them consists of.

    Attributes:
        targets: gRPC target of each rank, by rank.
        timeout: Default timeout of calls, in seconds.
        calls: How collectives are called: "gang" or "ranks".
    """

    def __init__(
        self,
        targets: Sequence[str],
        *,
        session_id: str,
        timeout: float,
        calls: Calls = "gang",
    ) -> None:
        """Knows the gang; connects nothing."""
        if calls not in get_args(Calls):
            raise InvalidArgumentError("no way to call a gang", expected="'gang' or 'ranks'", got=repr(calls))
        self.targets = tuple(targets)
        self.timeout = timeout
        self.calls: Calls = calls
        self._session_id = session_id
        self._ranks: tuple[RankT, ...] = ()

    def __len__(self) -> int:
        """Number of ranks."""
        return len(self.targets)

    def __getitem__(self, rank: int) -> RankT:
        """Gives one rank, counted from 0.

        Raises:
            RankOutOfRangeError: There is no such rank.
        """
        if not 0 <= rank < len(self._ranks):
            raise RankOutOfRangeError("no such rank", expected=f"0 to {len(self) - 1}", got=str(rank))
        return self._ranks[rank]

    def __iter__(self) -> Iterator[RankT]:
        """Gives every rank, in order."""
        return iter(self._ranks)

    def __repr__(self) -> str:
        """Gives the targets."""
        return f"{type(self).__name__}({list(self.targets)})"

    @property
    def session_id(self) -> str:
        """Session that owns what is made now: the innermost entered, else the gang's. Empty: the shared one."""
        return _ENTERED.get({}).get(self, self._session_id)

    @contextlib.contextmanager
    def _entered(self, session_id: str) -> Iterator[str]:
        token = _ENTERED.set({**_ENTERED.get({}), self: session_id})
        try:
            yield session_id
        finally:
            _ENTERED.reset(token)

    def _scope(self, rank: int, session_id: str | None = None) -> Scope:
        """Gives where a call is made, and for whom: the session given, else the current one."""
        if not 0 <= rank < len(self):
            raise RankOutOfRangeError(
                "no such rank in this gang", expected=f"0 to {len(self) - 1}", got=str(rank)
            )
        owner = self.session_id if session_id is None else session_id
        return Scope(rank=rank, session_id=owner, timeout=self.timeout)

    def _on(
        self, ranks: Iterable[int], build: Callable[..., Call[T]], *args: Any, **options: Any
    ) -> list[Call[T]]:
        """Makes the same call for several ranks."""
        return [build(self._scope(rank), *args, **options) for rank in ranks]

    def _on_members(
        self, members: Iterable[int], build: Callable[..., Call[T]], *args: Any, **options: Any
    ) -> Sequence[Call[T]]:
        """Makes the same operation of a group for its members, under one operation id."""
        if not args:
            return self._on_members_alike(members, build, **options)
        calls: Calls | None = options.pop("calls", None)
        return self._together(calls, self._on(members, build, *args, **with_id(options)))

    def _on_members_alike(
        self, members: Iterable[int], build: Callable[..., Call[T]], *args: Any, **options: Any
    ) -> Sequence[Call[T]]:
        """Makes the same operation likewise, whose request is the same for every member: it is made once."""
        calls: Calls | None = options.pop("calls", None)
        if (calls or self.calls) != "gang":
            return self._on(members, build, *args, **with_id(options))
        # It costs as much to make as to send.
        scopes = [self._scope(rank) for rank in members]
        return Together([build(scopes[0], *args, **with_id(options))], [scope.rank for scope in scopes])

    def _on_refs(
        self, refs: Sequence[Ref], build: Callable[..., Call[T]], **options: Any
    ) -> Sequence[Call[T]]:
        """Makes the same operation of a group for its members' refs, under one operation id."""
        self._checked_refs(refs, options.get("group", "world"), build.__name__)
        calls: Calls | None = options.pop("calls", None)
        each = ops.shares(build.__name__, with_id(options), len(refs))
        return self._together(
            calls, [build(self._scope(ref.rank), ref, **mine) for ref, mine in zip(refs, each, strict=True)]
        )

    def _together(self, calls: Calls | None, each: list[Call[T]]) -> Sequence[Call[T]]:
        """Gives the calls of all members, as they go together: as a gang call, or each on its own."""
        return Together(each) if (calls or self.calls) == "gang" else each

    def _checked_refs(self, refs: Any, group: str | Group, operation: str) -> tuple[int, ...]:
        """Gives the ranks of refs.

        Raises:
            InvalidArgumentError: They are not one of each member, in group order, as far as the members are known.
        """
        members = self._known_members(group)
        if isinstance(refs, Ref) or not all(isinstance(ref, Ref) for ref in refs or ()):
            got = "one ref" if isinstance(refs, Ref) else f"a {type(refs).__name__} of other things than refs"
            ranks: tuple[int, ...] = ()
        else:
            ranks = tuple(ref.rank for ref in refs or ())
            got = f"ranks {list(ranks)}"
        if not ranks or (members is not None and ranks != members):
            raise InvalidArgumentError(
                "one ref of each member, in group order",
                group=group_name(group),
                operation=operation,
                expected=f"ranks {list(members)}" if members is not None else "one ref at least",
                got=got,
            )
        return ranks

    def _paired(self, members: Sequence[int], values: Sequence[T], operation: str) -> list[tuple[Scope, T]]:
        """Gives each member its own value."""
        if len(values) != len(members):
            raise InvalidArgumentError(
                "one value for each rank",
                operation=operation,
                expected=str(len(members)),
                got=str(len(values)),
            )
        return [(self._scope(rank), value) for rank, value in zip(members, values, strict=True)]

    def _on_owners(
        self, refs: Ref | Iterable[Ref], build: Callable[..., Call[T]], **options: Any
    ) -> list[Call[T]]:
        """Makes a call for each ref, on its rank."""
        listed = [refs] if isinstance(refs, Ref) else list(refs)
        return [build(self._scope(ref.rank), ref, **options) for ref in listed]

    def _releases(self, refs: Ref | Iterable[Ref]) -> list[Call[int]]:
        """Frees refs with one call for each rank and session."""
        owners: dict[tuple[int, str], list[Ref]] = {}
        for ref in [refs] if isinstance(refs, Ref) else refs:
            owners.setdefault((ref.rank, ref.session_id), []).append(ref)
        return [ops.release(self._scope(rank), owned) for (rank, _), owned in owners.items()]

    def _known_members(self, group: str | Group) -> tuple[int, ...] | None:
        """Gives a group's ranks in group order, where that takes no question: "world", and a ``Group``."""
        if isinstance(group, Group):
            return group.ranks
        return tuple(range(len(self))) if group in ("", "world") else None

    def _all(self) -> range:
        return range(len(self))


def all_values(outcomes: Sequence[Outcome[T]]) -> list[T]:
    """Gives the values of a call to several ranks.

    Raises:
        GangError: Some rank failed.
    """
    if any(outcome.error is not None for outcome in outcomes):
        raise gang_error(outcomes)
    return [outcome.value for outcome in outcomes]  # type: ignore[misc]


def groups_known(listed: Iterable[Iterable[Group]]) -> dict[str, Group]:
    """Gives every group as its own members tell of it, by name: who is no member need not have heard of its end."""
    own = [group for groups in listed for group in groups if group.rank_in_group is not None]
    newest = sorted(own, key=lambda group: group.generation)
    return {group.name: of_gang(group) for group in newest}


def of_gang(group: Group) -> Group:
    """Gives a group as the gang sees it: without what is one rank's own."""
    return Group(name=group.name, ranks=group.ranks, backend=group.backend, generation=group.generation)


def with_id(options: dict[str, Any]) -> dict[str, Any]:
    """Gives the options of an operation with a fresh operation id, unless they have one."""
    return options if options.get("operation_id") is not None else {**options, "operation_id": new_id()}
