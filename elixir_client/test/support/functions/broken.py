"""A module that cannot be loaded."""


def prepare() -> None:
    raise RuntimeError("no weights at /nowhere")


prepare()
