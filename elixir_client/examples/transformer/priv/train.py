"""Trains a small transformer to write as Alice's author does: torch, and nothing else.

It runs by itself, `python -m torch.distributed.run --nproc-per-node 4 train.py --steps 200`, and in the ranks of a gang
by app.py. Both give the same weights, bit for bit.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

TEXT = (Path(__file__).parent / "alice.txt").read_text()
CHARACTERS = sorted(set(TEXT))
CODES = torch.tensor([CHARACTERS.index(it) for it in TEXT])

SEED = 1
LAYERS, HEADS, WIDTH, CONTEXT = 2, 4, 32, 32
BATCH = 8
"""Pieces of text that each rank reads in a step."""

# The ranks share a machine; and sums of several threads would depend on how many there are.
torch.set_num_threads(1)


class Block(nn.Module):
    """Attention to what came before, and a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.attended = nn.Linear(WIDTH, 3 * WIDTH)
        self.mixed = nn.Linear(WIDTH, WIDTH)
        self.perceptron = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH),
            nn.Dropout(0.1),
        )

    def forward(self, stream: Tensor) -> Tensor:
        """Adds to a stream, float32[batch, length, WIDTH]."""
        batch, length, _ = stream.shape
        heads = self.attended(self.before_attention(stream)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attention = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        stream = stream + self.mixed(attention.transpose(1, 2).reshape(batch, length, WIDTH))
        added: Tensor = self.perceptron(stream)
        return stream + added


class Transformer(nn.Module):
    """Says of each character which one may follow: int64[batch, length] to float32[batch, length, characters]."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(CHARACTERS), WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.scores = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(CHARACTERS)))

    def forward(self, codes: Tensor) -> Tensor:
        """The scores of all characters."""
        places = self.places(torch.arange(codes.shape[1]))
        scores: Tensor = self.scores(self.blocks(self.characters(codes) + places))
        return scores


class Training:
    """A model, its optimizer, and how many steps are in them.

    A step is the same, whenever and in whatever process it is done.
    """

    def __init__(self) -> None:
        torch.manual_seed(SEED)
        self.step = 0
        self.model = Transformer()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def state(self) -> dict[str, Any]:
        """All that the next step depends on."""
        return {
            "step": self.step,
            "model": dict(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict(),
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Training:
        """A training that goes on from a state."""
        training = cls()
        training.step = state["step"]
        training.model.load_state_dict(state["model"])
        training.optimizer.load_state_dict(state["optimizer"])
        return training

    def connect(self) -> None:
        """Makes the model data parallel over torch's default group. All ranks call it, with equal states."""
        self._parallel = DistributedDataParallel(self.model)
        # After its first backward pass it lays gradients together in another order, and sums of other neighbours differ
        # in their last bits. That pass is one for nothing, so that all steps are alike, also after a rank was lost.
        self._loss().backward()  # type: ignore[no-untyped-call]
        self.optimizer.zero_grad()

    def advance(self) -> float:
        """Does a step; gives the loss on this rank's part of it.

        It changes nothing until the gradients of all ranks are there, and calls none of them afterwards: on each rank
        it happens as a whole, or not at all.
        """
        loss = self._loss()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return loss.item()

    def digest(self) -> str:
        """The SHA-256 of the weights and of the optimizer's moments."""
        digest = hashlib.sha256()
        moments = [it for each in self.optimizer.state.values() for it in each.values()]
        for tensor in [*self.model.state_dict().values(), *moments]:
            digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()

    def sample(self, text: str, length: int) -> str:
        """Continues a text, always with what is likeliest. For this, no other rank is needed."""
        self.model.eval()
        with torch.no_grad():
            for _ in range(length):
                codes = torch.tensor([[CHARACTERS.index(it) for it in text[-CONTEXT:]]])
                text += CHARACTERS[int(self.model(codes)[0, -1].argmax())]
        self.model.train()
        return text

    def _loss(self) -> Tensor:
        # Whatever is drawn in a step, its texts and its dropout, follows from its number and the rank.
        torch.manual_seed((SEED << 48) + (self.step << 16) + dist.get_rank())
        begins = torch.randint(len(CODES) - CONTEXT, (BATCH,))
        codes = torch.stack([CODES[it : it + CONTEXT + 1] for it in begins.tolist()])
        scores = self._parallel(codes[:, :-1])
        return functional.cross_entropy(scores.flatten(0, 1), codes[:, 1:].flatten())


def main() -> None:
    """Trains under torchrun; rank 0 prints how fast, and what came of it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    dist.init_process_group("gloo")
    training = Training()
    training.connect()
    dist.barrier()
    began = time.perf_counter()
    while training.step < steps:
        loss = training.advance()
    if dist.get_rank() == 0:
        rate = steps / (time.perf_counter() - began)
        print(json.dumps({"steps_per_second": rate, "loss": loss, "digest": training.digest()}))
    # What uses the group goes first: its threads end with it. One that outlives Python, and still lets go of a backward
    # pass's last work, aborts the process.
    del training
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
