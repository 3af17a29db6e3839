"""A character-level GPT: learns a short text and continues it.

`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse

import pullback as torch

nn = torch.nn
F = torch.nn.functional

TEXT = """A graph is recorded while a program runs. Each operation leaves a node; each node knows where its inputs came
from. To find a gradient, the graph is walked backwards: a node takes the gradient of its output, multiplies it by what
it remembers of its inputs, and hands the products on. A leaf adds up what arrives. When the walk is done, every leaf
holds the slope of the result with respect to itself, and the graph may be forgotten. """


class Block(nn.Module):
    """Causal self-attention and a feed-forward network, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x of shape (batch, time, width) with what this block adds."""
        batch, time, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (p.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Embeddings, blocks, and scores for the next character."""

    def __init__(self, vocabulary: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        """Return scores (batch, time, vocabulary) for the character after each position."""
        x = self.tokens(index) + self.positions(torch.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, index: torch.Tensor, count: int) -> torch.Tensor:
        """Append `count` sampled characters to a row of indices."""
        for _ in range(count):
            scores = self(index[:, -self.context :])[:, -1]
            chosen = torch.multinomial(F.softmax(scores, dim=-1), 1)
            index = torch.cat((index, chosen), dim=1)
        return index


def main() -> None:
    """Train on random excerpts, then let the model write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--context", type=int, default=32)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    text = TEXT.replace("\n", " ")
    alphabet = sorted(set(text))
    data = torch.tensor([alphabet.index(letter) for letter in text])
    model = GPT(len(alphabet), options.context, options.width, heads=4, layers=options.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)

    for step in range(options.steps):
        starts = torch.randint(len(data) - options.context - 1, (16,))
        inputs = torch.stack([data[i : i + options.context] for i in starts])
        targets = torch.stack([data[i + 1 : i + 1 + options.context] for i in starts])
        scores = model(inputs)
        loss = F.cross_entropy(scores.view(-1, len(alphabet)), targets.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step}: loss {loss.item():.4f}")

    model.eval()
    written = model.generate(data[None, :8], 60)[0]
    print("".join(alphabet[int(i)] for i in written))


if __name__ == "__main__":
    main()
