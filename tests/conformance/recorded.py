"""What other systems were recorded to tell about ranks, groups, meshes and layouts: the cases in `data`.

A case has the inputs, and for each rank what the system answered there: `{"ok": value}`, or `{"error": {...}}`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

Json = Any

SUITES = (
    "vllm",
    "optimus_mesh",
    "olmo",
    "olmo_nondist",
    "gfn_layout",
    "gfn_context_seed",
    "gfn_context_head",
)

REPLAYED = {
    "vllm": ("props/", "nodes/", "ctor/overlapping_lists", "ctor/duplicate_rank", "ctor/rank_out_of_range"),
    "optimus_mesh": ("mesh_table", "mesh_ctor_error"),
    "olmo": (
        *("get_rank", "get_world_size", "get_local_rank", "get_num_nodes", "is_distributed"),
        *("group_ranks", "reversed_group", "get_mesh_coordinates"),
    ),
    "olmo_nondist": ("get_global_rank", "get_num_nodes", "get_local_rank", "get_local_world_size"),
    "gfn_layout": ("build", "from_hostnames", "_split_ceil_floor"),
    "gfn_context_seed": ("initialize_distributed_compute",),
    "gfn_context_head": ("initialize_distributed_compute",),
}
"""By suite, what the names of the cases that are replayed here begin with."""

NOT_REPLAYED: dict[str, dict[str, tuple[str, ...]]] = {
    "vllm": {
        "collectives": ("all_", "reduce_", "gather/", "broadcast", "w1/", "underscore/", "detail/", "hang/"),
        "point to point": ("send_", "isend_"),
        "queues": ("mq/",),
        "experts": ("moe",),
        "what vLLM alone is asked for": (
            *("ctor/negative_local_rank", "ctor/no_device_communicator", "ctor/unknown_backend"),
            *("graph_capture/", "prepare_communication_buffer_for_model/"),
        ),
    },
    "optimus_mesh": {"devices": ("default_device",)},
    "olmo": {
        "collectives": ("all_", "barrier", "broadcast_", "synchronize_", "upstream_test_broadcast_object"),
        "schedules": ("do_n_at_a_time",),
        "environment variables and file systems": ("env_after_init", "get_fs_local_rank"),
    },
    "olmo_nondist": {
        "collectives": ("all_", "barrier", "synchronize_value"),
        "schedules": ("do_n_",),
        "environment variables and file systems": ("init_", "validate_env_vars", "get_fs_local_rank"),
        "arithmetic": ("get_reduce_divide_factor",),
    },
    "gfn_layout": {"environment variables and file systems": ("_first_env",)},
    "gfn_context_seed": {"backends that are not there": ("bad_backend", "mpi_backend_")},
    "gfn_context_head": {"backends that are not there": ("bad_backend", "mpi_backend_", "ccl_backend")},
}
"""By suite and by what they are about, what the names of the other cases begin with."""


def name_of(case: Json) -> str:
    """The name of a case."""
    name: str = case["id"] if "id" in case else case["case"]
    return name


@cache
def cases(suite: str) -> tuple[Json, ...]:
    """All cases of a suite."""
    return tuple(json.loads((DATA / f"{suite}.json").read_text())["cases"])


def replayed(suite: str, *names: str, world: int | None = None) -> list[Json]:
    """Those cases of a suite that are replayed, whose names begin with one of `names`, of one world or of any."""
    assert all(any(name.startswith(known) for known in REPLAYED[suite]) for name in names)
    return [
        case
        for case in cases(suite)
        if name_of(case).startswith(names) and (world is None or case["world"] == world)
    ]


def label(case: Json) -> str:
    """Names a case among those of its suite."""
    inputs = json.dumps(case.get("inputs", case.get("groups")), separators=(",", ":")).replace('"', "")
    return f"{name_of(case)}-w{case.get('world', '')}-{inputs}"


def answers(case: Json) -> list[Json]:
    """What each rank of a case answered."""
    assert all("ok" in answer for answer in case["per_rank"]), f"{label(case)} has errors"
    return [answer["ok"] for answer in case["per_rank"]]


def refused(case: Json) -> bool:
    """Whether every rank of a case refused it."""
    errors = ["error" in answer for answer in case["per_rank"]]
    assert all(errors) or not any(errors)
    return all(errors)


def vllm_ranks(case: Json) -> list[Json]:
    """What each rank of a vLLM case answered, in the newest version that was recorded."""
    results = case["results"]
    newest: Json = results["*"] if "*" in results else results[max(results)]
    ranks: list[Json] = newest["ranks"]
    return ranks


def subset(recorded: Json, told: Json) -> Json:
    """Of what was recorded, what the bridge tells too."""
    return {key: recorded[key] for key in told}
