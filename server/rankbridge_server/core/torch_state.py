"""What torch knows, in this process, of its groups and collectives. Imports nothing that is not there.

A rank asks itself; into a job that nobody prepared, `rankbridge doctor` brings the text of this file.
"""

from __future__ import annotations

from typing import Any

_ARGUMENTS = ("src", "dst", "tag", "group_src", "group_dst")


def torch_state(thread: int) -> dict[str, object]:
    """Groups, the flight recorder's content, and the call of torch that a thread is in.

    `thread`: by Python's number. "trouble" says what could not be read.
    """
    import json
    import sys

    found: dict[str, object] = {}
    try:
        module = sys.modules.get("torch.distributed.distributed_c10d")
        if module is not None:
            world = module._world
            groups = {}
            for group, name in list(world.pg_names.items()):
                ranks = world.pg_group_ranks.get(group, {})
                backend = world.pg_map.get(group, ("",))[0]
                described = getattr(group, "group_desc", "")
                groups[name] = {
                    "ranks": [rank for rank, _ in sorted(ranks.items(), key=lambda it: it[1])],
                    "backend": str(backend),
                    "description": described,
                }
            found["groups"] = groups
            found["rank"] = module.get_rank() if world.default_pg is not None else None
            found["world_size"] = module.get_world_size() if world.default_pg is not None else None
        found["calling"], found["arguments"] = _call(thread)
        c10d = sys.modules.get("torch._C._distributed_c10d")
        backends = _backends(found)
        # What goes by NCCL is in a recorder of its own, which torch has had for longer.
        has_nccl = "nccl" in "".join(backends)
        cudart = _cudart() if has_nccl else None
        if cudart is not None and hasattr(c10d, "_dump_nccl_trace_json"):
            found["device_trace"] = _device_trace(c10d, cudart)
        if has_nccl and "device_trace" not in found:
            found["trouble"] = "torch's recorder of NCCL cannot be read in this process"
        elif c10d is not None and hasattr(c10d, "_dump_fr_trace_json"):
            found["trace"] = json.loads(c10d._dump_fr_trace_json(True, False))
        elif c10d is not None and ("device_trace" not in found or backends != {"nccl"}):
            found["trouble"] = "this torch has no flight recorder that can be read"
    except BaseException as error:
        found["trouble"] = repr(error)
    return found


def write_torch_state(path: str) -> None:
    """Writes that of the main thread into a file, which is there when it is whole."""
    import json
    import os
    import threading

    found = torch_state(threading.main_thread().ident or 0)
    with open(path + ".part", "w") as file:
        json.dump(found, file)
    os.rename(path + ".part", path)


def _cudart() -> Any:
    """CUDA's runtime in this process; None: it has none."""
    import ctypes

    with open("/proc/self/maps") as maps:
        paths = sorted(it.split(maxsplit=5)[-1].strip() for it in maps if "/libcudart.so" in it)
    return ctypes.CDLL(paths[0]) if paths else None


def _device_trace(c10d: Any, cudart: Any) -> object:
    """What NCCL's recorder has."""
    import ctypes
    import json

    # It asks events of the device. While another thread captures a graph, that would spoil the capture, unless this
    # thread's mode is "relaxed", which is 2.
    mode = ctypes.c_int(2)
    cudart.cudaThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    try:
        return json.loads(c10d._dump_nccl_trace_json(True, False))
    finally:
        cudart.cudaThreadExchangeStreamCaptureMode(ctypes.byref(mode))


def _backends(found: dict[str, object]) -> set[str]:
    groups = found.get("groups")
    return {it["backend"] for it in groups.values()} if isinstance(groups, dict) else set()


def _call(thread: int) -> tuple[str, dict[str, int]]:
    """The method that a thread has called, and arguments of torch.distributed's own function."""
    import gc
    import sys

    # Why no garbage is collected meanwhile: see `current_frames` in frames.py, which a job has not.
    collects = gc.isenabled()
    gc.disable()
    try:
        frame = sys._current_frames().get(thread)
        return called_method(frame), _arguments(frame)
    finally:
        if collects:
            gc.enable()


def called_method(frame: Any) -> str:
    """The method that a thread's innermost Python line has called, which is in C."""
    import dis

    if frame is None:
        return ""
    before = [it for it in dis.get_instructions(frame.f_code) if it.offset <= frame.f_lasti]
    for it in reversed(before):
        if it.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            return str(it.argval)
        if it.opname.startswith(("POP", "STORE", "FOR", "JUMP", "RETURN", "BEFORE")):
            break
    return ""


def _arguments(frame: Any) -> dict[str, int]:
    """Whole numbers among the arguments of torch.distributed's own function, as peer, root and tag."""
    while frame is not None:
        if "/torch/distributed/distributed_c10d.py" in frame.f_code.co_filename:
            values = frame.f_locals
            found = {it: values[it] for it in _ARGUMENTS if type(values.get(it)) is int}
            if found:
                return found
        frame = frame.f_back
    return {}
