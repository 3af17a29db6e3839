"""The loss of connectionist temporal classification: the likelihood of a label sequence over all its alignments.

A target of S labels becomes 2 S + 1 states, with a blank around each label. `alpha[t, s, n]` is the log probability of
all ways to be in state s at time t, `beta` that of all ways to go on from there. States come before examples, so that
the neighbours of all states are one contiguous block.
"""

from __future__ import annotations

import numpy as np

from pullback.kernels.index_arrays import add_at
from pullback.native import by_device
from pullback.typing import Array

# Taken for the largest of three logarithms that are all -inf, so that no difference of infinities comes up.
LOWEST = -1e300


@by_device
def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int = 0,
    zero_infinity: bool = False,
) -> Array:  # fmt: skip
    """Minus the log likelihood of each target; `log_probs` is (T, N, C).

    `zero_infinity` concerns the gradient alone.
    """
    labels = _states(targets, target_lengths, blank)
    alpha = _scan(_emissions(log_probs, labels), _skip_costs(labels, blank), *_beginnings(labels))
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
    steps, batch, classes = log_probs.shape
    labels = _states(targets, target_lengths, blank)
    emitted = _emissions(log_probs, labels)
    alpha, beta = _forward_and_backward(emitted, _skip_costs(labels, blank), labels, input_lengths, target_lengths)
    likelihood = _at_the_end(alpha, input_lengths, target_lengths)
    posterior = alpha + beta
    posterior -= emitted
    posterior -= likelihood
    posterior = np.exp(posterior)
    shares = np.zeros(log_probs.shape, np.float64)
    places = np.arange(steps * batch).reshape(steps, 1, batch) * classes + labels[1::2]
    add_at(shares.reshape(-1), (places.reshape(-1),), posterior[:, 1::2].reshape(-1))
    shares[:, :, blank] += posterior[:, ::2].sum(1)
    grad = np.exp(log_probs.astype(np.float64))
    grad -= shares
    grad[np.arange(steps)[:, None] >= input_lengths[None, :]] = 0
    if zero_infinity:
        grad = np.where(np.isinf(likelihood)[None, :, None], 0, grad)
    grad *= input[None, :, None]
    return grad.astype(log_probs.dtype)


def _states(targets: Array, target_lengths: Array, blank: int) -> Array:
    """The labels of the states, (2 S + 1, N): blanks at even places; padding is blank too."""
    batch = target_lengths.shape[0]
    longest = int(target_lengths.max()) if batch else 0
    labels = np.full((2 * longest + 1, batch), blank, np.int64)
    if longest == 0:
        return labels
    places = np.arange(longest)
    real = places[None, :] < target_lengths[:, None]
    if targets.ndim == 1:
        starts = np.concatenate(([0], np.cumsum(target_lengths)[:-1]))
        picked = targets[np.minimum(starts[:, None] + places, max(targets.shape[0] - 1, 0))]
    else:
        picked = targets[:, :longest]
    labels[1::2] = np.where(real, picked, blank).T
    return labels


def _emissions(log_probs: Array, labels: Array) -> Array:
    """The log probability of each state's label at each time, in double precision."""
    steps, batch, classes = log_probs.shape
    rows = log_probs.reshape(steps, batch * classes)
    return np.take(rows, np.arange(batch) * classes + labels, 1).astype(np.float64)


def _skip_costs(labels: Array, blank: int) -> Array:
    """0 where a state can be reached from two states before (a label that differs from the last one), else -inf."""
    costs = np.full(labels.shape, -np.inf)
    costs[2:][(labels[2:] != blank) & (labels[2:] != labels[:-2])] = 0
    return costs


def _beginnings(labels: Array) -> tuple[Array, Array]:
    """When each sequence begins, and with which states: the first two, at once."""
    first = np.zeros(labels.shape, bool)
    first[:2] = True
    return np.zeros(labels.shape[1], np.int64), first


def _scan(emitted: Array, skip_costs: Array, begins: Array, first: Array) -> Array:
    """The log probability of all ways into each state; an example begins at step `begins` with the states `first`.

    A state is reached from itself, the state before, and for `skip_costs` from the one before that. The three are added
    up by one exp and one log on all states; `np.logaddexp` twice takes three times as long.
    """
    steps, states, batch = emitted.shape
    reached = np.full((steps + 1, states + 2, batch), -np.inf)
    terms = np.empty((3, states, batch))
    beginning = set(begins.tolist())
    for step in range(steps):
        last = reached[step]
        terms[0] = last[:-2] + skip_costs
        terms[1] = last[1:-1]
        terms[2] = last[2:]
        largest = np.maximum(terms.max(0), LOWEST)
        terms -= largest
        total = np.log(np.exp(terms).sum(0)) + largest + emitted[step]
        if step in beginning:
            total = np.where(begins == step, np.where(first, emitted[step], -np.inf), total)
        reached[step + 1, 2:] = total
    return reached[1:, 2:]


def _forward_and_backward(
    emitted: Array, skip_costs: Array, labels: Array, input_lengths: Array, target_lengths: Array
) -> tuple[Array, Array]:
    """alpha and beta by one scan: beta is alpha of the reversed sequences, which begin at their ends."""
    steps, states, batch = emitted.shape
    begins, first = _beginnings(labels)
    costs_back = np.full(skip_costs.shape, -np.inf)
    costs_back[2:] = skip_costs[:1:-1]
    both = _scan(
        np.concatenate((emitted, emitted[::-1, ::-1]), 2),
        np.concatenate((skip_costs, costs_back), 1),
        np.concatenate((begins, steps - input_lengths)),
        np.concatenate((first, _final_states(states, target_lengths)[::-1]), 1),
    )
    return both[:, :, :batch], both[::-1, ::-1, batch:]


def _final_states(states: int, target_lengths: Array) -> Array:
    """The two states in which a sequence may end."""
    places = np.arange(states)[:, None]
    last = 2 * target_lengths
    return (places == last) | (places == last - 1)


def _at_the_end(alpha: Array, input_lengths: Array, target_lengths: Array) -> Array:
    """The log probability of all ways to end at each sequence's own length."""
    rows = np.arange(alpha.shape[2])
    ends = np.maximum(input_lengths - 1, 0)
    last = 2 * target_lengths
    whole = alpha[ends, last, rows]
    part = np.where(last > 0, alpha[ends, np.maximum(last - 1, 0), rows], -np.inf)
    nothing = np.where(target_lengths == 0, 0.0, -np.inf)
    return np.where(input_lengths > 0, np.logaddexp(whole, part), nothing)
