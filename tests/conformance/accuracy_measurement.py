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
            if kept and are_worse([ours[i] / slack for i in kept], [theirs[i] for i in kept]):
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


def are_worse(ours: list[float], theirs: list[float]) -> bool:
    """Whether errors are materially larger than PyTorch's: the third largest of many, since one is chance beside a zero."""
    place = -3 if len(ours) > 16 else -1
    third, their_third = sorted(ours)[place], sorted(theirs)[place]
    return third > max(2 * their_third, their_third + 1) or max(ours) > 16 * (max(theirs) + 1)
