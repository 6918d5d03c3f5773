"""Calls that torch's dispatcher would lead to their backend, and do nothing else with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .recorder import Recorder

_OF_TORCH = "/c10d/Ops.cpp:"
_NO_KERNEL = ("debug", "Meta")


def straight(
    torch: Any, recorder: Recorder, hooks: str
) -> tuple[Callable[[Any, str], bool], Callable[[Any], bool], Callable[[], None]]:
    """Gives what tells which they are: of a group and an operator, and of a tensor, or a list of them, or of lists.

    They are so in the thread that asks, while nothing is done with calls but to record them. The third: what is to be
    called when somebody has hooked an operator.

    `hooks`: the file of hooks that need not be called. Raises AttributeError: this torch does not say what is asked.
    """
    # What runs in each call is written for speed, as in hook.py.
    modes, is_transformed = torch._C._len_torch_dispatch_stack, torch._C._are_functorch_transforms_active
    traces, is_profiled = torch._C._get_tracing_state, torch._C._autograd._profiler_enabled
    c10d = torch._C._distributed_c10d
    keeps_works, group_type = c10d._allow_inflight_collective_as_graph_input, c10d.ProcessGroup
    dump, tensor_type, strided = torch._C._dispatch_dump, torch.Tensor, torch.strided

    @cache
    def has_torchs_kernels(operator: str) -> bool:
        for line in dump(f"c10d::{operator}").splitlines():
            key, is_kernel, rest = line.partition(": registered at ")
            place = rest.partition(" :: ")[0]
            if is_kernel and key not in _NO_KERNEL and _OF_TORCH not in place and hooks not in place:
                return False
        return True

    def is_plain(tensors: Any) -> bool:
        if type(tensors) is list:
            for it in tensors:  # noqa: SIM110
                if not is_plain(it):
                    return False
            return True
        # To ask for its keys takes longer than all of this.
        return (
            type(tensors) is tensor_type
            and tensors.is_cpu
            and tensors.layout is strided
            and not tensors.requires_grad
            and not tensors.is_nested
            and not tensors.is_conj()
            and not tensors.is_neg()
            and not tensors._is_zerotensor()
        )

    def ask(group: Any, operator: str) -> bool:
        return (
            recorder.is_hooked
            and recorder.written is not None
            and not recorder.before
            and recorder.admit is None
            and type(group) is group_type
            and not modes()
            and not is_profiled()
            and not is_transformed()
            and traces() is None
            and not keeps_works()
            and has_torchs_kernels(operator)
        )

    return ask, is_plain, has_torchs_kernels.cache_clear
