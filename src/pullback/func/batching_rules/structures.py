"""Batching by structure: what a declaration says about an operation, and the rule that follows.

# Note [Structures]
An operation's declaration says which elements of its tensors a result element depends on (`structure=` in derivatives/,
or what the kind and the parameters imply), and so does `@structured` for a function that reads arrays itself:

- elementwise: on one element of each tensor, which broadcast;
- along: on one tensor's elements along the dimensions that `Dim` and `Dims` parameters name;
- view: the same memory, seen along other dimensions;
- leading: on elements with the same position in leading dimensions, of which there may be any number;
- matrices: on matrices in the last two dimensions (vectors where `vectors=` says so), whose leading dimensions broadcast;
- samples: on one sample along the first dimension;
- general: on anything. Such an operation has a rule of its own, or runs example by example.
"""

from __future__ import annotations

from pullback.func.batching_rules.along_dims import along_dims
from pullback.func.batching_rules.elementwise import elementwise
from pullback.func.batching_rules.loop import loop
from pullback.func.batching_rules.matrices import of_matrices
from pullback.func.batching_rules.planes import among_samples, more_leading
from pullback.func.batching_rules.shape import views_along_dims
from pullback.func.batching_rules.table import Rule

_RULES: dict[str, Rule] = {
    "elementwise": elementwise,
    "along": along_dims,
    "view": views_along_dims,
    "leading": more_leading,
    "matrices": of_matrices,
    "samples": among_samples,
    "general": loop,
}


def rule_of_structure(structure: str) -> Rule:
    """The batching rule that follows from a structure."""
    return _RULES[structure]
