"""What Gloo moves: groups and tensors."""

from __future__ import annotations

from typing import Any

from ..watch.next_call import NextCall


class GlooGroups:
    """Which groups move the CPU's tensors by Gloo."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def have(self, call: NextCall) -> bool:
        """Whether the group of a call, which moves tensors of the CPU, does."""
        known = self._known.get(call.key)
        if known is None:
            from torch import device
            from torch._C._distributed_c10d import ProcessGroup

            group = ProcessGroup.unbox(call.argument("process_group"))
            known = self._known[call.key] = group._get_backend(device("cpu")).name() == "gloo"
        return known


def is_plain(tensor: Any) -> bool:
    """Whether Gloo can take a tensor."""
    from torch import strided

    return tensor.device.type == "cpu" and tensor.layout is strided and bool(tensor.is_contiguous())
