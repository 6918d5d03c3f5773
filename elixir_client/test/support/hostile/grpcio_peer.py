"""Calls hostile servers with grpcio, and prints how each call ended, as JSON in the order of the targets.

Usage: grpcio_peer.py SECONDS TARGET...
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc


def call(target: str, seconds: float) -> str:
    # A pool of its own: otherwise channels with equal options share connections.
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(target, options=options) as channel:
        method: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/hostile.Server/Call")
        try:
            answer = method(b"hello", timeout=seconds)
        except grpc.RpcError as error:
            return error.code().name.lower()
        return "ok" if answer is not None else "ok_without_message"


def main() -> None:
    seconds, targets = float(sys.argv[1]), sys.argv[2:]
    with ThreadPoolExecutor(max_workers=16) as pool:
        codes = list(pool.map(lambda target: call(target, seconds), targets))
    print(json.dumps({"version": grpc.__version__, "codes": codes}))


if __name__ == "__main__":
    main()
