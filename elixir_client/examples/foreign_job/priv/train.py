"""Fine-tunes a small model by DistributedDataParallel: a head is trained on top of a part that stays as it is.

Runs under torchrun: torchrun --nproc-per-node 4 train.py --steps 1000
"""

from __future__ import annotations

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WORDS, WIDTH, CLASSES, BATCH, LENGTH = 500, 32, 8, 16, 12


class Classifier(nn.Module):
    """Says of a text which class it belongs to."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH).requires_grad_(False)
        self.encoder = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).requires_grad_(False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        """The scores of all classes."""
        encoded: torch.Tensor = self.encoder(self.embedding(texts)).mean(1)
        scores: torch.Tensor = self.head(encoded)
        return scores


def main() -> None:
    """Trains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds that each step waits for its data")
    parser.add_argument(
        "--flip", type=int, help="on this rank one element of a weight is another, as if by a bit"
    )
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    # The ranks that look at the loss now and then.
    judges = dist.new_group([0, 1], group_desc="judges")
    torch.manual_seed(0)
    model = DistributedDataParallel(Classifier())
    if options.flip == rank:
        model.module.encoder[0].weight.data[5, 7] += 0.25
    optimizer = torch.optim.SGD((it for it in model.parameters() if it.requires_grad), lr=0.1)
    data = torch.Generator().manual_seed(rank)
    for step in range(options.steps):
        time.sleep(options.pause)
        texts = torch.randint(WORDS, (BATCH, LENGTH), generator=data)
        loss = nn.functional.cross_entropy(model(texts), texts.sum(1) * CLASSES // (WORDS * LENGTH))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % 100 == 0 and rank in (0, 1):
            seen = loss.detach()
            dist.all_reduce(seen, group=judges)
            if rank == 0:
                print(f"step {step}: loss {seen.item() / 2:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
