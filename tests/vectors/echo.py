"""The Python half of the live comparison with another language: `python -m tests.vectors.echo`.

Reads requests as lines of JSON on stdin and answers each on stdout, until stdin ends.

* `{"message": NAME, "bytes": BASE64}`: decodes, and answers `{"bytes": encoded again, "fields": plain form}`,
  or `{"malformed": true}`.
* `{"random": COUNT, "seed": SEED}`: answers with that many lines `{"message", "bytes", "fields"}`.
"""

import base64
import json
import random
import sys
from typing import Any

from google.protobuf.message import DecodeError, Message
from tests.vectors.messages import CLASSES, random_message
from tests.vectors.plain import to_plain


def described(message: Message) -> dict[str, Any]:
    """A message's bytes and plain form."""
    encoded = message.SerializeToString(deterministic=True)
    return {"bytes": base64.b64encode(encoded).decode(), "fields": to_plain(message)}


def answers(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Answers to one request."""
    if "random" in request:
        rng = random.Random(request["seed"])
        names = rng.choices(sorted(CLASSES), k=request["random"])
        drawn = [(name, random_message(rng, name)) for name in names]
        return [{"message": name, **described(message)} for name, message in drawn]
    message = CLASSES[request["message"]]()
    try:
        message.ParseFromString(base64.b64decode(request["bytes"]))
    except DecodeError:
        return [{"malformed": True}]
    return [described(message)]


def main() -> None:
    """Serves until stdin ends."""
    for line in sys.stdin:
        for answer in answers(json.loads(line)):
            print(json.dumps(answer))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
