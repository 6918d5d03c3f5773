"""What Gloo moves: tensors, and in which groups."""

from __future__ import annotations

from typing import Any

from ..watch.next_call import NextCall


class GlooGroups:
    """Which groups move the CPU's tensors by Gloo, and in which something of this rank may be under way."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}
        self._busy: set[str] = set()

    def have(self, call: NextCall) -> bool:
        """Whether the group of a call, which moves tensors of the CPU, does."""
        known = self._known.get(call.key)
        if known is None:
            from torch import device
            from torch._C._distributed_c10d import ProcessGroup

            group = ProcessGroup.unbox(call.argument("process_group"))
            known = self._known[call.key] = group._get_backend(device("cpu")).name() == "gloo"
        return known

    def enters(self, call: NextCall) -> None:
        """Notes that a call enters the backend. Who asks for no work waits for it at once."""
        if call.argument("async_op") is not False and not call.is_blocking:
            self._busy.add(call.key)
        elif call.kind == "barrier":
            # It waits for all that was asked for before.
            self._busy.discard(call.key)

    def are_quiet(self, call: NextCall) -> bool:
        """Whether nothing of this rank is under way in the group of a call."""
        return call.key not in self._busy


def is_plain(tensor: Any) -> bool:
    """Whether Gloo can take a tensor."""
    from torch import strided

    return tensor.device.type == "cpu" and tensor.layout is strided and bool(tensor.is_contiguous())
