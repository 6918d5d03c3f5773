"""The source of an operation's first contract case, from its declaration: `python -m tests.contract.skeleton scan`."""

from __future__ import annotations

import sys

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from rankbridge.v1 import options_pb2
from rankbridge.v1.operation_service_pb2 import Operation


def request_of(kind: str) -> Descriptor:
    """The request that declares an operation."""
    request = Operation.DESCRIPTOR.fields_by_name[kind].message_type
    assert request is not None
    return request


def arguments_of(request: Descriptor) -> dict[str, object]:
    """Arguments that a case names, with what each has unless it is given; not what members bring."""
    return {
        field.name: default(field)
        for field in request.fields
        if field.name != "ref_id" and field.message_type is None
    }


def default(field: FieldDescriptor) -> object:
    """What an argument has unless it is given, as cases write it."""
    if field.is_repeated:
        return []
    declared = field.GetOptions().Extensions[options_pb2.argument].default
    if field.enum_type is not None:
        return declared or None
    return type(field.default_value)(declared) if declared else field.default_value


def skeleton(kind: str) -> str:
    """The source of a case: inputs and results are to be filled in."""
    request = request_of(kind)
    options = request.GetOptions().Extensions[options_pb2.operation]
    brings = options_pb2.Brings.Name(options.brings).removeprefix("BRINGS_").lower()
    gives = options_pb2.Gives.Name(options.gives).removeprefix("GIVES_").lower()
    return (
        f'yield case(\n    "{kind}",\n    "{kind}",\n    arguments={arguments_of(request)!r},\n'
        f"    inputs=...,  # of each member: {brings}\n    results=...,  # of each member: {gives}\n)"
    )


if __name__ == "__main__":
    print("\n".join(skeleton(kind) for kind in sys.argv[1:]))
