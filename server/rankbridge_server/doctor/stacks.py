"""What a stack says: whose frames these are, and whether they wait in torch.distributed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .evidence import Frame, RankEvidence, Thread

_LAUNCHER = ("/torch/distributed/elastic/", "/torch/distributed/run.py", "/torch/distributed/launcher/")
_LIBRARY = re.compile(
    r"/rankbridge_server/|/(?:site|dist)-packages/|/lib/python3|^<frozen |^<__array_function__"
)
_STANDARD = re.compile(r"/lib/python3\.\d+/(?!(?:site|dist)-packages/)|^<frozen ")
_TEARDOWN = {"destroy_process_group", "_shutdown", "_exit_function", "_run_exitfuncs", "shutdown_default_pg"}
_BEGINS = {"<module>", "_run_module_as_main"}
MOST_FRAMES = 6


def is_hook(frame: Frame) -> bool:
    """Whether it is what `rankbridge watch` and its guard run within a call, whoever calls."""
    return frame.name.rsplit(".", 1)[-1] == "hook" and frame.file.endswith(
        "/rankbridge_server/job/watch/hook.py"
    )


def waits_in_guard(rank: RankEvidence) -> bool:
    """Whether a thread of it is in a call that guard has not let enter torch's backend."""
    return any(
        any(map(is_hook, it.frames)) and any("/rankbridge_server/job/guard/" in at.file for at in it.frames)
        for it in rank.threads
    )


def is_distributed(frame: Frame) -> bool:
    """Whether it is of torch.distributed, and not of the launcher."""
    return "/torch/distributed/" in frame.file and not any(it in frame.file for it in _LAUNCHER)


def is_ours(frame: Frame) -> bool:
    """Whether it is of a rank, which calls the user's functions in a thread of its own."""
    return "/rankbridge_server/" in frame.file or frame.file.endswith("/threading.py")


def in_collective(thread: Thread) -> Frame | None:
    """The frame of torch.distributed in which it waits; None if its own code or another library has the last word."""
    hook = None
    for frame in thread.frames:
        if is_hook(frame):
            hook = frame
        if is_distributed(frame):
            return hook if frame.name in _TEARDOWN else frame
        # torch may wait by a store of the rank's.
        passes = _STANDARD.search(frame.file) or "/site-packages/torch/" in frame.file or is_ours(frame)
        if not passes:
            break
    return hook


def waits_in_collective(rank: RankEvidence) -> bool:
    """Whether a thread of it is in a collective. False if its stacks are not known."""
    return any(map(in_collective, rank.threads))


def waits_in_torch(rank: RankEvidence) -> bool:
    """Whether its main thread is blocked in torch's own code, as in the backward of DDP, which waits in C++."""
    if not rank.threads or not rank.threads[0].frames:
        return False
    frame = rank.threads[0].frames[0]
    return (
        rank.process.state == "S"
        and "/site-packages/torch/" in frame.file
        and "/torch/utils/" not in frame.file
    )


def waits_for_device(rank: RankEvidence) -> bool:
    """Whether its main thread waits for its device. It may use its CPU all the while."""
    frames = rank.threads[0].frames if rank.threads else ()
    return bool(frames) and frames[0].name == "synchronize" and "/torch/cuda/" in frames[0].file


def in_init(rank: RankEvidence) -> bool:
    """Whether it is in init_process_group."""
    return any(
        frame.name == "init_process_group" and is_distributed(frame)
        for it in rank.threads
        for frame in it.frames
    )


def in_teardown(rank: RankEvidence) -> bool:
    """Whether its main thread is on its way out: destroys its groups, or waits at exit."""
    if not rank.threads:
        return False
    frames = rank.threads[0].frames
    # What runs at exit is called by no line of the script. Functions on ranks of a gang are called by none, either.
    if rank.source not in ("record", "functions") and frames and frames[-1].name not in _BEGINS:
        return True
    return any(
        it.name in _TEARDOWN and bool(is_distributed(it) or _STANDARD.search(it.file)) for it in frames
    )


def is_users(frame: Frame) -> bool:
    """Whether it is of the user's own code: of no library, and not ours."""
    return not _LIBRARY.search(frame.file)


def own(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Frames of the job's own code, innermost first; all frames if none is."""
    mine = tuple(it for it in frames if not _LIBRARY.search(it.file))
    return (mine or tuple(frames))[:MOST_FRAMES]


def called_from(frames: Sequence[Frame]) -> Frame | None:
    """The line outside of torch that calls; of a library, with the nearest line of the job's own code."""
    outside = [it for it in frames if "/torch/" not in it.file]
    if not outside:
        return None
    caller = outside[0]
    script = next(filter(is_users, outside), caller)
    return caller if script is caller else replace(script, name=f"{caller} < {script.name}")


def stack(rank: RankEvidence) -> tuple[Frame, ...]:
    """Where its main thread is: the innermost frame, then those of its own code."""
    if not rank.threads:
        return ()
    frames = rank.threads[0].frames
    mine = own(frames)
    return mine if not frames or frames[0] in mine else (frames[0], *mine)[:MOST_FRAMES]


def site(rank: RankEvidence) -> Frame | None:
    """The line of its own code at which the thread that is in a collective is; else the main thread."""
    for thread in rank.threads:
        if in_collective(thread):
            return next(iter(own(thread.frames)), None)
    return next(iter(own(rank.threads[0].frames)), None) if rank.threads else None
