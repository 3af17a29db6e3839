"""The loss of connectionist temporal classification: the likelihood of a label sequence over all its alignments.

A target of S labels becomes 2 S + 1 states, with a blank around each label. `alpha[t, n, s]` is the log probability of
all ways to be in state s at time t, `beta` that of all ways to go on from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.native import by_device
from pullback.typing import Array


@by_device
def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int = 0,
    zero_infinity: bool = False,
) -> Array:  # fmt: skip
    """Minus the log likelihood of each target; `log_probs` is (T, N, C).

    `zero_infinity` concerns the gradient alone.
    """
    labels = _states(targets, target_lengths, blank)
    emitted = _emissions(log_probs, labels)
    alpha = _forward(emitted, _may_skip(labels, blank))
    loss = -_at_the_end(alpha, input_lengths, target_lengths)
    return loss.astype(log_probs.dtype)


@by_device
def ctc_loss_grad(
    input: Array, log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, losses: Array,
    blank: int, zero_infinity: bool,
) -> Array:  # fmt: skip
    """The gradient with respect to the logits of which `log_probs` are the log_softmax, as PyTorch defines it.

    It equals exp(log_probs) minus the posterior probability of each class; log_softmax passes it on unchanged.
    """
    labels = _states(targets, target_lengths, blank)
    emitted = _emissions(log_probs, labels)
    skip = _may_skip(labels, blank)
    alpha = _forward(emitted, skip)
    beta = _backward(emitted, skip, input_lengths, target_lengths)
    likelihood = _at_the_end(alpha, input_lengths, target_lengths)
    posterior = np.exp(alpha + beta - emitted - likelihood[None, :, None])
    steps, batch, _ = log_probs.shape
    shares = np.zeros(log_probs.shape, np.float64)
    times, rows = np.ogrid[:steps, :batch]
    np.add.at(shares, (times[..., None], rows[..., None], labels[None]), posterior)
    grad = np.exp(log_probs.astype(np.float64)) - shares
    grad[np.arange(steps)[:, None] >= input_lengths[None, :]] = 0
    if zero_infinity:
        grad = np.where(np.isinf(likelihood)[None, :, None], 0, grad)
    return (grad * input[None, :, None]).astype(log_probs.dtype)


def _states(targets: Array, target_lengths: Array, blank: int) -> Array:
    """The labels of the states, (N, 2 S + 1): blanks at even places; padding is blank too."""
    batch = target_lengths.shape[0]
    longest = int(target_lengths.max()) if batch else 0
    labels = np.full((batch, 2 * longest + 1), blank, np.int64)
    if longest == 0:
        return labels
    places = np.arange(longest)
    real = places[None, :] < target_lengths[:, None]
    if targets.ndim == 1:
        starts = np.concatenate(([0], np.cumsum(target_lengths)[:-1]))
        picked = targets[np.minimum(starts[:, None] + places, max(targets.shape[0] - 1, 0))]
    else:
        picked = targets[:, :longest]
    labels[:, 1::2] = np.where(real, picked, blank)
    return labels


def _emissions(log_probs: Array, labels: Array) -> Array:
    """The log probability of each state's label at each time, in double precision."""
    index = np.broadcast_to(labels[None], (log_probs.shape[0], *labels.shape))
    return np.take_along_axis(log_probs.astype(np.float64), index, 2)


def _may_skip(labels: Array, blank: int) -> Array:
    """Whether a state can be reached from two states before: a label that differs from the last one."""
    skip = np.zeros(labels.shape, bool)
    skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return skip


def _forward(emitted: Array, skip: Array) -> Array:
    alpha = np.full(emitted.shape, -np.inf)
    alpha[:1, :, :2] = emitted[:1, :, :2]
    for step in range(1, emitted.shape[0]):
        last = alpha[step - 1]
        total = last.copy()
        total[:, 1:] = np.logaddexp(total[:, 1:], last[:, :-1])
        total[:, 2:] = np.logaddexp(total[:, 2:], np.where(skip[:, 2:], last[:, :-2], -np.inf))
        alpha[step] = total + emitted[step]
    return alpha


def _backward(emitted: Array, skip: Array, input_lengths: Array, target_lengths: Array) -> Array:
    steps, _, states = emitted.shape
    beta = np.full(emitted.shape, -np.inf)
    final = _final_states(states, target_lengths)
    after = np.full(emitted.shape[1:], -np.inf)
    for step in range(steps - 1, -1, -1):
        total = after.copy()
        total[:, :-1] = np.logaddexp(total[:, :-1], after[:, 1:])
        total[:, :-2] = np.logaddexp(total[:, :-2], np.where(skip[:, 2:], after[:, 2:], -np.inf))
        total = np.where((input_lengths == step + 1)[:, None], final, total)
        after = beta[step] = total + emitted[step]
    return beta


def _final_states(states: int, target_lengths: Array) -> Any:
    """Zero at the two states in which a sequence may end, -inf elsewhere."""
    places = np.arange(states)[None, :]
    last = 2 * target_lengths[:, None]
    return np.where((places == last) | (places == last - 1), 0.0, -np.inf)


def _at_the_end(alpha: Array, input_lengths: Array, target_lengths: Array) -> Array:
    """The log probability of all ways to end at each sequence's own length."""
    rows = np.arange(alpha.shape[1])
    ends = np.maximum(input_lengths - 1, 0)
    last = 2 * target_lengths
    whole = alpha[ends, rows, last]
    part = np.where(last > 0, alpha[ends, rows, np.maximum(last - 1, 0)], -np.inf)
    nothing = np.where(target_lengths == 0, 0.0, -np.inf)
    return np.where(input_lengths > 0, np.logaddexp(whole, part), nothing)
