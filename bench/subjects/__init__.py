"""What is measured, each in a process of its own: `python -m bench.subjects.NAME SIZE`."""

NAMES = (
    "native",
    "copy",
    "admission",
    "grpc_floor",
    "torch_rpc",
    "ray",
    "monarch",
    "python",
    "elixir",
    "lent_gang",
    "torch_test",
)
