"""The training of train.py as functions on ranks: what Elixir calls."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from train import Training

import rankbridge_server
from rankbridge_server import Context

training = Training()


@rankbridge_server.on_formed
def formed(context: Context) -> None:
    """Goes on from the step that the furthest of the ranks that are left has done."""
    global training
    training = Training.of(context.broadcast_state(training.state(), version=training.step))
    training.connect()


@rankbridge_server.function
def train(to: int) -> Generator[dict[str, Any], None, str]:
    """Trains until so many steps are done, those that were done before included.

    Reports each step with its loss, on this rank's part of the text. Returns a hash of the weights and of the
    optimizer's state.
    """
    while training.step < to:
        loss = training.advance()
        yield {"step": training.step, "loss": loss}
    return training.digest()


@rankbridge_server.function
def sample(text: str, length: int = 80) -> str:
    """Continues a text."""
    return training.sample(text, length)
