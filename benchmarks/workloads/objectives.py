"""Gradients of three objective functions that benchmarks of automatic differentiation use.

A Gaussian mixture's log likelihood with a Wishart prior, the reprojection error of bundle adjustment, and a small
stateful LSTM that predicts one character after another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from benchmarks.workload import Run, Workload, gradients_of, random_tensor


def gaussian_mixture(torch: Any) -> Run:
    """The log likelihood of `points` under `clusters` Gaussians given by the Cholesky factors of inverse covariances."""
    points, clusters, dims = 1000, 25, 10
    below = dims * (dims - 1) // 2
    alphas = random_tensor(torch, 1, clusters, requires_grad=True)
    means = random_tensor(torch, 2, clusters, dims, requires_grad=True)
    log_diagonals = random_tensor(torch, 3, clusters, dims, scale=0.1, requires_grad=True)
    lower = random_tensor(torch, 4, clusters, below, scale=0.1, requires_grad=True)
    x = random_tensor(torch, 5, points, dims)
    rows, columns = (torch.tensor(index) for index in numpy.tril_indices(dims, -1))
    constant = -0.5 * points * dims * math.log(2 * math.pi)

    def run() -> list[Any]:
        factors = torch.diag_embed(torch.exp(log_diagonals))
        filled = torch.zeros(clusters, dims, dims).index_put((torch.arange(clusters)[:, None], rows, columns), lower)
        centred = x[:, None, :] - means
        scaled = torch.einsum("kij,nkj->nki", factors + filled, centred)
        inner = alphas + log_diagonals.sum(1) - 0.5 * (scaled * scaled).sum(2)
        likelihood = torch.logsumexp(inner, 1).sum() - points * torch.logsumexp(alphas, 0)
        prior = 0.5 * ((torch.exp(log_diagonals) ** 2).sum() + (lower * lower).sum()) - log_diagonals.sum()
        (constant + likelihood - prior).backward()
        return gradients_of([alphas, means, log_diagonals, lower])

    return run


def bundle_adjustment(torch: Any) -> Run:
    """The reprojection error of points seen by cameras with rotation, centre, focal length and radial distortion."""
    cameras, points, observations = 20, 500, 5000
    generator = numpy.random.default_rng(0)
    camera_of = torch.tensor(generator.integers(0, cameras, observations))
    point_of = torch.tensor(generator.integers(0, points, observations))
    camera = random_tensor(torch, 1, cameras, 11, scale=0.2, requires_grad=True)
    position = random_tensor(torch, 2, points, 3, requires_grad=True)
    weight = torch.ones(observations, requires_grad=True)
    seen = random_tensor(torch, 3, observations, 2)
    away = torch.tensor([0.0, 0.0, 8.0])

    def rotate(rotation: Any, vector: Any) -> Any:
        angle = torch.sqrt((rotation * rotation).sum(1, keepdim=True) + 1e-9)
        axis = rotation / angle
        along = (axis * vector).sum(1, keepdim=True) * (1 - torch.cos(angle))
        return vector * torch.cos(angle) + torch.linalg.cross(axis, vector) * torch.sin(angle) + axis * along

    def run() -> list[Any]:
        view = camera[camera_of]
        placed = rotate(view[:, 0:3], position[point_of] - view[:, 3:6]) + away
        flat = placed[:, 0:2] / placed[:, 2:3]
        radius = (flat * flat).sum(1, keepdim=True)
        distorted = flat * (1 + view[:, 9:10] * radius + view[:, 10:11] * radius * radius)
        projected = (1 + view[:, 6:7]) * distorted + view[:, 7:9]
        residual = weight[:, None] * (projected - seen)
        ((residual * residual).sum() + ((1 - weight * weight) ** 2).sum()).backward()
        return gradients_of([camera, position, weight])

    return run


def character_lstm(torch: Any) -> Run:
    """Two diagonal LSTM layers over a sequence of 14-letter vectors: many operations on tiny tensors."""
    layers, letters, length = 2, 14, 60
    main = random_tensor(torch, 1, 2 * layers, 4 * letters, scale=0.3, requires_grad=True)
    extra = random_tensor(torch, 2, 3, letters, scale=0.3, requires_grad=True)
    sequence = [random_tensor(torch, 10 + nr, letters) for nr in range(length)]

    def layer(weight: Any, bias: Any, hidden: Any, state: Any, x: Any) -> tuple[Any, Any]:
        gates = torch.cat((x, hidden, x, hidden)) * weight + bias
        forget, enter, leave, change = gates.view(4, letters).unbind(0)
        state = torch.sigmoid(forget) * state + torch.sigmoid(enter) * torch.tanh(change)
        return torch.sigmoid(leave) * torch.tanh(state), state

    def run() -> list[Any]:
        hidden = [torch.zeros(letters) for _ in range(layers)]
        states = [torch.zeros(letters) for _ in range(layers)]
        total = torch.zeros(())
        for nr in range(length - 1):
            x = sequence[nr] * extra[0]
            for depth in range(layers):
                hidden[depth], states[depth] = layer(
                    main[2 * depth], main[2 * depth + 1], hidden[depth], states[depth], x
                )
                x = hidden[depth]
            prediction = x * extra[1] + extra[2]
            total = total + (sequence[nr + 1] * (prediction - torch.logsumexp(prediction, 0))).sum()
        (-total / length).backward()
        return gradients_of([main, extra])

    return run


WORKLOADS = [
    Workload("Gaussian mixture, gradient", gaussian_mixture, 0.5),
    Workload("bundle adjustment, gradient", bundle_adjustment, 0.5, small=True),
    Workload("character LSTM, gradient", character_lstm, 0.5, small=True),
]
