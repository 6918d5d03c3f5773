"""A transformer in tensor parallel: each rank has some heads and a part of the perceptrons, and none has all weights.

The weights are random, of a seed. In an application of your own each rank reads its part of a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

import rankbridge_server
from rankbridge_server import Context

SEED = 1
LAYERS, HEADS, WIDTH, HIDDEN, VOCABULARY, CONTEXT = 2, 8, 64, 256, 128, 64


@dataclass(frozen=True)
class Layer:
    """The weights of a layer, or a rank's part of them.

    `attended`: float32[3, heads, WIDTH / HEADS, WIDTH], by heads. `mixed`: float32[WIDTH, heads * WIDTH / HEADS].
    `up`: float32[hidden, WIDTH], by rows. `down`: float32[WIDTH, hidden], by columns.
    """

    attended: Tensor
    mixed: Tensor
    up: Tensor
    down: Tensor

    def part(self, rank: int, size: int) -> Layer:
        """What a rank of so many has of it."""
        return Layer(
            self.attended.chunk(size, 1)[rank].clone(),
            self.mixed.chunk(size, 1)[rank].clone(),
            self.up.chunk(size, 0)[rank].clone(),
            self.down.chunk(size, 1)[rank].clone(),
        )


class Model:
    """Scores what may follow a text. `rank`, `size`: whose part it is; of one alone, it is the whole."""

    def __init__(self, rank: int, size: int) -> None:
        draw = torch.Generator().manual_seed(SEED)

        def random(*shape: int) -> Tensor:
            scale: float = shape[-1] ** 0.5
            return torch.randn(*shape, generator=draw) / scale

        self._size = size
        self.characters, self.places = random(VOCABULARY, WIDTH), random(CONTEXT, WIDTH)
        self.layers = [
            Layer(
                random(3, HEADS, WIDTH // HEADS, WIDTH),
                random(WIDTH, WIDTH),
                random(HIDDEN, WIDTH),
                random(WIDTH, HIDDEN),
            ).part(rank, size)
            for _ in range(LAYERS)
        ]

    def scores(self, text: str) -> Tensor:
        """float32[VOCABULARY]: the score of each character to be the next. All ranks call it, with the same text."""
        codes = torch.tensor([ord(it) % VOCABULARY for it in text[-CONTEXT:]])
        stream = functional.embedding(codes, self.characters) + self.places[: len(codes)]
        for layer in self.layers:
            stream = stream + self._summed(self._attention(layer, _normal(stream)))
            stream = stream + self._summed(functional.gelu(_normal(stream) @ layer.up.T) @ layer.down.T)
        scores: Tensor = _normal(stream[-1]) @ self.characters.T
        return scores

    def _attention(self, layer: Layer, stream: Tensor) -> Tensor:
        query, key, value = torch.einsum("td,xhkd->xhtk", stream, layer.attended)
        heads = functional.scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True)
        mixed: Tensor = heads[0].transpose(0, 1).flatten(1) @ layer.mixed.T
        return mixed

    def _summed(self, part: Tensor) -> Tensor:
        """The sum of what the ranks' heads, or their parts of a perceptron, have come to."""
        if self._size > 1:
            dist.all_reduce(part)
        return part


def _normal(stream: Tensor) -> Tensor:
    return functional.layer_norm(stream, (WIDTH,))


class Held:
    """This rank's part."""

    model: Model


@rankbridge_server.on_formed
def formed(context: Context) -> None:
    """A rank that has replaced another gets its part; the others have theirs."""
    if context.is_new:
        Held.model = Model(context.rank, context.world_size)


@rankbridge_server.function
def complete(text: str, length: int = 8) -> dict[str, object]:
    """Continues a text by its likeliest characters.

    Returns the whole text, and the scores of all characters of which the last one was chosen.
    """
    return _completed(Held.model, text, length)


@rankbridge_server.function
def complete_alone(text: str, length: int = 8) -> dict[str, object]:
    """The same with all weights on one rank: what an answer is compared with."""
    return _completed(Model(0, 1), text, length)


def _completed(model: Model, text: str, length: int) -> dict[str, object]:
    if not text or length < 1:
        raise ValueError("there is at least one character to read, and one to write")
    with torch.no_grad():
        for _ in range(length):
            scores = model.scores(text)
            text += chr(int(scores.argmax()))
    return {"text": text, "scores": scores.tolist()}
