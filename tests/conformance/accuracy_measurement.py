"""The errors of both libraries side by side, and where ours is materially worse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Measurement:
    """The errors of both libraries in one function of one dtype, and where ours is worse."""

    label: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)

    def add(self, region: str, arguments: list[Any], ours: list[float], theirs: list[float], slack: float = 1) -> None:
        """Add the errors of one region, and flag it where the worst of ours is materially worse."""
        for kept in (range(len(ours)), [i for i, error in enumerate(theirs) if np.isfinite(error)]):
            if kept and is_worse(max(ours[i] for i in kept) / slack, max(theirs[i] for i in kept)):
                at = max(kept, key=ours.__getitem__)
                worst = f"{ours[at]:.3g} against {max(theirs[i] for i in kept):.3g}"
                self.flags.append(f"{region}: {worst} at {arguments[at]} ({theirs[at]:.3g} there)")
                break
        self.ours += ours
        self.theirs += theirs

    def __str__(self) -> str:
        if not self.ours:
            return f"{self.label:58} " + "".join(f"\n    FLAGGED {flag}" for flag in self.flags)
        ours, theirs = (f"{max(e):9.3g} {sorted(e)[int(len(e) * 0.999)]:9.3g}" for e in (self.ours, self.theirs))
        return f"{self.label:58} ours {ours}   PyTorch {theirs}" + "".join(f"\n    FLAGGED {f}" for f in self.flags)


def is_worse(ours: float, theirs: float) -> bool:
    """Whether an error is materially larger than PyTorch's."""
    return ours > max(2 * theirs, theirs + 1)
