"""PyTorch's names for the samples of gamma and Dirichlet distributions and their derivatives."""

from __future__ import annotations

import pullback.generated as G

_standard_gamma = G.standard_gamma
_standard_gamma_grad = G.standard_gamma_grad
_sample_dirichlet = G.sample_dirichlet
_dirichlet_grad = G.dirichlet_grad
