"""Names in Elixir of what descriptors name."""

import re

PREFIX = "RankBridge.Proto"


class Unsupported(Exception):
    """A descriptor uses something that this generator does not do."""


def version_of(package: str) -> str:
    """Last part of a package: "v1" of "rankbridge.v1". Raises Unsupported for any other package."""
    match = re.fullmatch(r"rankbridge\.(v\d+)", package)
    if match is None:
        raise Unsupported(f"package {package!r}: only rankbridge.v<number> becomes Elixir")
    return match.group(1)


def alias_of(package: str) -> str:
    """Short module name under which the messages of a package are referred to: "V1"."""
    return version_of(package).upper()


def namespace_of(package: str) -> str:
    """Module under which the messages of a package live: "RankBridge.Proto.V1"."""
    return f"{PREFIX}.{alias_of(package)}"


def short_module(full_name: str, package: str) -> str:
    """Aliased module of a message or enum: ".rankbridge.v1.Call" becomes "V1.Call"."""
    prefix = f".{package}."
    if not full_name.startswith(prefix):
        raise Unsupported(f"{full_name} is not of package {package}")
    return f"{alias_of(package)}.{full_name.removeprefix(prefix)}"


def snake(name: str) -> str:
    """Function name of an RPC: "AllReduce" becomes "all_reduce"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
