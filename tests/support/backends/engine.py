"""An engine for `--backend program:` with barriers, and all_reduces that go wrong as their first element says.

Members meet at files in a folder, the only argument.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

HANG, END, BABBLE, SHORT, REFUSE = 1.0, 2.0, 3.0, 4.0, 5.0


def main(folder: Path) -> None:
    """Answers line by line."""
    meeting: Path | None = None
    rank, size, count = 0, 1, 0
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        match request["do"]:
            case "open":
                rank, size = request["rank"], request["size"]
                answer = {
                    "address": f"{os.getpid()}-{time.monotonic_ns()}",
                    "operations": ["barrier", "all_reduce"],
                    "reductions": {"max": ["float32"]},
                }
            case "connect":
                meeting = folder / request["addresses"][0]
                meeting.mkdir(exist_ok=True)
            case "call" if request["call"] == "barrier":
                assert meeting is not None
                count += 1
                (meeting / f"{count}-{rank}").touch()
                while len(list(meeting.glob(f"{count}-*"))) < size:
                    time.sleep(0.001)
            case "call":
                data = base64.b64decode(request["base64"])
                (first,) = struct.unpack("f", data[:4])
                if first == HANG:
                    while True:
                        time.sleep(1)
                if first == END:
                    sys.exit(3)
                if first == BABBLE:
                    print("what?", flush=True)
                    continue
                if first == REFUSE:
                    error = {"message": "the author forgot something"}
                    print(json.dumps({"id": request["id"], "error": error}), flush=True)
                    continue
                answer = {"base64": base64.b64encode(data[: 3 if first == SHORT else None]).decode()}
        print(json.dumps({"id": request["id"], "ok": answer}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
