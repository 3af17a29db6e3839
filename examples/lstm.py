"""An LSTM learns to say which symbol of a sequence came first, over sequences of different lengths.

`import torch` in place of the first import runs the same program on PyTorch.
"""

from __future__ import annotations

import argparse

import pullback as torch

nn = torch.nn
SYMBOLS = 4


class FirstSymbol(nn.Module):
    """Embeds symbols, reads them with an LSTM, and judges by its last state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.scores = nn.Linear(width, SYMBOLS)

    def forward(self, sequences: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return scores for the first symbol of padded sequences."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(sequences), lengths, batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.lstm(packed)
        return self.scores(hidden[-1])


def main() -> None:
    """Train on random sequences of 2 to `--length` symbols."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = FirstSymbol(options.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)

    for step in range(options.steps):
        sequences = torch.randint(SYMBOLS, (32, options.length))
        lengths = torch.randint(2, options.length + 1, (32,))
        scores = model(sequences, lengths)
        loss = nn.functional.cross_entropy(scores, sequences[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == options.steps - 1:
            accuracy = (scores.argmax(1) == sequences[:, 0]).float().mean().item()
            print(f"step {step}: loss {loss.item():.4f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
