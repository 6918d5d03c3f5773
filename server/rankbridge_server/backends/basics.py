"""The basic operations of an engine, and what is made of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

MESSAGES = frozenset({"send", "recv"})

_MADE_OF: Mapping[str, frozenset[str]] = {
    **{
        it: frozenset({it})
        for it in ("barrier", "broadcast", "scatter", "gather", "all_gather", "all_to_all")
    },
    **{it: frozenset({it}) for it in ("reduce", "all_reduce", "reduce_scatter", "scan")},
    **dict.fromkeys(("broadcast_object", "broadcast_tensor_dict"), frozenset({"broadcast"})),
    "scatter_object": frozenset({"all_to_all"}),
    "gather_object": frozenset({"gather"}),
    "all_gather_object": frozenset({"all_gather"}),
    **dict.fromkeys(("send", "send_object", "send_tensor_dict", "enqueue"), MESSAGES),
    **dict.fromkeys(("recv", "recv_object", "recv_tensor_dict", "dequeue"), MESSAGES),
}
"""By operation; those that are not here need no engine."""


def lacking(basics: Collection[str]) -> frozenset[str]:
    """The operations that an engine with these basic ones cannot do."""
    return frozenset(name for name, needs in _MADE_OF.items() if not needs <= frozenset(basics))
