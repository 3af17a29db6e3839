"""A small GPT: 4 layers, 128 wide, 4 heads, 128 tokens, batch 8, with an AdamW step."""

from __future__ import annotations

from typing import Any

from benchmarks.workload import Run, Workload, random_labels
from benchmarks.workloads.networks import training_step

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 4, 128, 4, 128, 8, 256


def gpt_classes(torch: Any) -> Any:
    """Define the model's classes on the module given and return the class of the whole."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]  # the module is given at run time
        def __init__(self) -> None:
            super().__init__()
            self.norm_attention, self.norm_feedforward = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.projections, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.feedforward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def attend(self, x: Any) -> Any:
            parts = self.projections(x).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            return self.output(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))

        def forward(self, x: Any) -> Any:
            x = x + self.attend(self.norm_attention(x))
            return x + self.feedforward(self.norm_feedforward(x))

    class Model(nn.Module):  # type: ignore[misc, name-defined]  # the module is given at run time
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.positions(torch.arange(LENGTH))
            return self.head(self.norm(self.blocks(x)))

    return Model


def gpt(torch: Any) -> Run:
    torch.manual_seed(0)
    model = gpt_classes(torch)()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = random_labels(torch, 1, VOCABULARY, BATCH, LENGTH)
    following = random_labels(torch, 2, VOCABULARY, BATCH * LENGTH)
    return training_step(torch, model, optimizer, tokens, following)


WORKLOADS = [Workload("GPT 4x128, 128 tokens, batch 8, AdamW step", gpt, 0.9)]
