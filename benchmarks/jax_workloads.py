"""The workloads of workloads/ written for JAX, jitted: what `benchmarks.compiled --jax PYTHON` times beside.

The same arithmetic on the same arrays; steps of optimizers begin with other parameters, and give new ones, which the next
call is given. Loops of Python are unrolled as the compiler of pullback meets them, but those of thousands of operations
are `lax.fori_loop`s or `lax.scan`s, since unrolled they take minutes to compile. 10,000 leaves are left out for that reason.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy

Run = Callable[[], Any]


def _random(seed: int, *size: int, scale: float = 1.0) -> Any:
    return (numpy.random.default_rng(seed).standard_normal(size) * scale).astype(numpy.float32)


class _Workloads:
    """What JAX is asked for; a class, so that JAX is imported where there is one."""

    def __init__(self) -> None:
        jax: Any = importlib.import_module("jax")
        self.jax, self.np, self.nn = jax, jax.numpy, jax.nn

    def _ready(self, function: Any, *args: Any) -> Run:
        """Calls a jitted function and waits for what it gives."""
        jitted, given = self.jax.jit(function), self.jax.device_put(args)
        return lambda: self.jax.block_until_ready(jitted(*given))

    def _trained(self, step: Any, parameters: Any, *args: Any) -> Run:
        """Calls a jitted step, each time with the parameters that the last one gave."""
        jitted, given = self.jax.jit(step, donate_argnums=0), self.jax.device_put(args)
        state = [self.jax.device_put(parameters)]

        def run() -> Any:
            state[0] = self.jax.block_until_ready(jitted(state[0], *given))

        return run

    def chain(self, *size: int) -> Run:
        def total(x: Any, a: Any, b: Any) -> Any:
            for _ in range(200):
                x = x * a + b
            return x.sum()

        a, b = (numpy.full(size, value, dtype="f4") for value in (0.99, 0.01))
        return self._ready(self.jax.grad(total), numpy.ones(size, "f4"), a, b)

    def small_mlp(self, batch: int) -> Run:
        widths = (16, 32, 32, 4)
        weights = [_random(n, i, o, scale=i**-0.5) for n, (i, o) in enumerate(itertools.pairwise(widths))]
        biases = [numpy.zeros(o, "f4") for o in widths[1:]]

        def loss(parameters: Any, x: Any, target: Any) -> Any:
            weights, biases = parameters
            for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
                x = self.np.tanh(x @ weight + bias)
            difference = x @ weights[-1] + biases[-1] - target
            return (difference * difference).mean()

        return self._ready(self.jax.grad(loss), (weights, biases), _random(10, batch, 16), _random(11, batch, 4))

    def deep_graph(self) -> Run:
        def total(x: Any) -> Any:
            return self.jax.lax.fori_loop(0, 5000, lambda _, h: self.np.sin(h * 1.001), x).sum()

        return self._ready(self.jax.grad(total), numpy.full(4, 0.5, "f4"))

    def _cross_entropy(self, scores: Any, labels: Any) -> Any:
        logs = self.nn.log_softmax(scores)
        return -self.np.take_along_axis(logs, labels[:, None], 1).mean()

    def _sgd(self, model: Any, parameters: Any, x: Any, labels: Any) -> Run:
        def step(parameters: Any, x: Any, labels: Any) -> Any:
            grads = self.jax.grad(lambda p: self._cross_entropy(model(p, x), labels))(parameters)
            return self.jax.tree.map(lambda p, g: p - 1e-3 * g, parameters, grads)

        return self._trained(step, parameters, x, labels)

    def _dense(self, *widths: int) -> list[Any]:
        return [
            (_random(n, i, o, scale=i**-0.5), numpy.zeros(o, "f4"))
            for n, (i, o) in enumerate(itertools.pairwise(widths))
        ]

    def _perceptron(self, layers: Any, x: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = self.nn.relu(x @ weight + bias)
        return x @ layers[-1][0] + layers[-1][1]

    def mlp(self, batch: int) -> Run:
        labels = numpy.random.default_rng(2).integers(0, 10, batch)
        return self._sgd(self._perceptron, self._dense(784, 512, 512, 10), _random(1, batch, 784), labels)

    def _convolution(self, x: Any, weight: Any, padding: Any) -> Any:
        return self.jax.lax.conv_general_dilated(x, weight, (1, 1), padding)

    def _pooled(self, x: Any) -> Any:
        lax = self.jax.lax
        return lax.reduce_window(x, -self.np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def lenet(self) -> Run:
        kernels = [(_random(5, 6, 1, 5, 5, scale=0.2), numpy.zeros((6, 1, 1), "f4"))]
        kernels += [(_random(6, 16, 6, 5, 5, scale=0.1), numpy.zeros((16, 1, 1), "f4"))]

        def model(parameters: Any, x: Any) -> Any:
            ((first, first_bias), (second, second_bias)), layers = parameters
            x = self._pooled(self.nn.relu(self._convolution(x, first, ((2, 2), (2, 2))) + first_bias))
            x = self._pooled(self.nn.relu(self._convolution(x, second, "VALID") + second_bias))
            return self._perceptron(layers, x.reshape(len(x), -1))

        labels = numpy.random.default_rng(2).integers(0, 10, 32)
        return self._sgd(model, (kernels, self._dense(400, 120, 84, 10)), _random(1, 32, 1, 28, 28), labels)

    def convolution(self) -> Run:
        def gradients(x: Any, weight: Any, seed: Any) -> Any:
            return self.jax.vjp(lambda x, w: self._convolution(x, w, "SAME"), x, weight)[1](seed)

        inputs = _random(1, 16, 64, 32, 32), _random(2, 64, 64, 3, 3, scale=0.05), _random(3, 16, 64, 32, 32)
        return self._ready(gradients, *inputs)

    def lstm(self) -> Run:
        batch, width, steps = 16, 64, 64

        def loss(parameters: Any, inputs: Any) -> Any:
            weight, bias = parameters
            hidden = state = self.np.zeros((batch, width))
            for x in inputs:
                gates = self.np.concatenate([x, hidden], 1) @ weight + bias
                forget, enter, leave, candidate = self.np.split(gates, 4, 1)
                state = self.nn.sigmoid(forget) * state + self.nn.sigmoid(enter) * self.np.tanh(candidate)
                hidden = self.nn.sigmoid(leave) * self.np.tanh(state)
            return (hidden * hidden).mean()

        parameters = _random(1, 2 * width, 4 * width, scale=0.1), numpy.zeros(4 * width, "f4")
        run = self._ready(self.jax.grad(loss), parameters, [_random(n, batch, width) for n in range(steps)])

        def run_alone() -> None:
            run()  # the weights are not those of nn.Linear: the gradients are not to be compared

        return run_alone

    def gpt(self) -> Run:
        layers, width, heads, length, batch, vocabulary = 4, 128, 4, 128, 8, 256
        np, nn = self.np, self.nn

        def norm(x: Any, scale: Any, shift: Any) -> Any:
            centred = x - x.mean(-1, keepdims=True)
            return centred * self.jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift

        def block(x: Any, p: Any) -> Any:
            parts = norm(x, *p["norm_attention"]) @ p["projections"][0] + p["projections"][1]
            q, k, v = parts.reshape(batch, length, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
            scores = q @ k.swapaxes(-1, -2) / math.sqrt(width // heads)
            mask = np.tril(np.ones((length, length), bool))
            mixed = nn.softmax(np.where(mask, scores, -np.inf)) @ v
            x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["output"][0] + p["output"][1]
            inner = nn.gelu(norm(x, *p["norm_feedforward"]) @ p["first"][0] + p["first"][1], approximate=False)
            return x + inner @ p["second"][0] + p["second"][1]

        def loss(p: Any, tokens: Any, following: Any) -> Any:
            x = p["tokens"][tokens] + p["positions"]
            for part in p["blocks"]:
                x = block(x, part)
            return self._cross_entropy((norm(x, *p["norm"]) @ p["head"]).reshape(-1, vocabulary), following)

        def step(state: Any, tokens: Any, following: Any) -> Any:
            p, first, second, count = state
            grads, count = self.jax.grad(loss)(p, tokens, following), count + 1
            first = self.jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
            second = self.jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
            one, two = 1 - 0.9**count, 1 - 0.999**count

            def moved(p: Any, m: Any, v: Any) -> Any:
                return p * (1 - 1e-6) - 1e-4 * (m / one) / (np.sqrt(v / two) + 1e-8)

            return self.jax.tree.map(moved, p, first, second), first, second, count

        def linear(seed: int, i: int, o: int) -> Any:
            return _random(seed, i, o, scale=i**-0.5), numpy.zeros(o, "f4")

        def scales() -> Any:
            return numpy.ones(width, "f4"), numpy.zeros(width, "f4")

        blocks = [
            {
                "norm_attention": scales(), "norm_feedforward": scales(), "projections": linear(n, width, 3 * width),
                "output": linear(n, width, width), "first": linear(n, width, 4 * width),
                "second": linear(n, 4 * width, width),
            }
            for n in range(layers)
        ]  # fmt: skip
        p = {
            "tokens": _random(1, vocabulary, width), "positions": _random(2, length, width), "blocks": blocks,
            "norm": scales(), "head": linear(3, width, vocabulary)[0],
        }  # fmt: skip
        zeros = self.jax.tree.map(numpy.zeros_like, p)
        tokens = numpy.random.default_rng(1).integers(0, vocabulary, (batch, length))
        following = numpy.random.default_rng(2).integers(0, vocabulary, batch * length)
        return self._trained(step, (p, zeros, self.jax.tree.map(numpy.copy, zeros), 0.0), tokens, following)

    def elementwise(self, size: int) -> Run:
        def total(x: Any, scale: Any, shift: Any) -> Any:
            h = self.np.tanh(x * scale + shift)
            h = self.nn.gelu(h * x, approximate=False)
            return (self.nn.sigmoid(h) * self.np.exp(-h * h)).sum()

        return self._ready(self.jax.grad(total), *[_random(n, size) for n in (1, 2, 3)])

    def hessian(self) -> Run:
        return self._ready(self.jax.hessian(_rosenbrock), _random(1, 64))

    def hessian_vector_product(self) -> Run:
        def product(x: Any, direction: Any) -> Any:
            return self.jax.jvp(self.jax.grad(_rosenbrock), (x,), (direction,))[1]

        return self._ready(product, _random(1, 100_000), _random(2, 100_000))

    def jacobian(self) -> Run:
        def layers(value: Any, first: Any, second: Any) -> Any:
            return self.np.tanh(second @ self.np.tanh(first @ value))

        weights = [_random(n, 128, 128, scale=0.1) for n in (2, 3)]
        return self._ready(self.jax.jacrev(layers), _random(1, 128), *weights)

    def gaussian_mixture(self) -> Run:
        points, clusters, dims, np = 1000, 25, 10, self.np
        rows, columns = numpy.tril_indices(dims, -1)
        summed = self.jax.scipy.special.logsumexp

        def likelihood(parameters: Any, x: Any) -> Any:
            alphas, means, logs, lower = parameters
            factors = np.zeros((clusters, dims, dims)).at[:, rows, columns].set(lower)
            factors = factors + np.exp(logs)[:, :, None] * np.eye(dims)
            scaled = np.einsum("kij,nkj->nki", factors, x[:, None, :] - means)
            inner = alphas + logs.sum(1) - 0.5 * (scaled * scaled).sum(2)
            prior = 0.5 * ((np.exp(logs) ** 2).sum() + (lower * lower).sum()) - logs.sum()
            return summed(inner, 1).sum() - points * summed(alphas, 0) - prior

        below = dims * (dims - 1) // 2
        parameters = (_random(1, clusters), _random(2, clusters, dims), _random(3, clusters, dims, scale=0.1),
                      _random(4, clusters, below, scale=0.1))  # fmt: skip
        return self._ready(self.jax.grad(likelihood), parameters, _random(5, points, dims))

    def bundle_adjustment(self) -> Run:
        cameras, points, observations, np = 20, 500, 5000, self.np
        generator = numpy.random.default_rng(0)
        camera_of, point_of = generator.integers(0, cameras, observations), generator.integers(0, points, observations)

        def rotate(rotation: Any, vector: Any) -> Any:
            angle = np.sqrt((rotation * rotation).sum(1, keepdims=True) + 1e-9)
            axis = rotation / angle
            along = (axis * vector).sum(1, keepdims=True) * (1 - np.cos(angle))
            return vector * np.cos(angle) + np.cross(axis, vector) * np.sin(angle) + axis * along

        def error(parameters: Any, seen: Any, away: Any) -> Any:
            camera, position, weight = parameters
            view = camera[camera_of]
            placed = rotate(view[:, 0:3], position[point_of] - view[:, 3:6]) + away
            flat = placed[:, 0:2] / placed[:, 2:3]
            radius = (flat * flat).sum(1, keepdims=True)
            distorted = flat * (1 + view[:, 9:10] * radius + view[:, 10:11] * radius * radius)
            residual = weight[:, None] * ((1 + view[:, 6:7]) * distorted + view[:, 7:9] - seen)
            return (residual * residual).sum() + ((1 - weight * weight) ** 2).sum()

        parameters = _random(1, cameras, 11, scale=0.2), _random(2, points, 3), numpy.ones(observations, "f4")
        away = numpy.array([0.0, 0.0, 8.0], "f4")
        return self._ready(self.jax.grad(error), parameters, _random(3, observations, 2), away)

    def character_lstm(self) -> Run:
        layers, letters, length, np = 2, 14, 60, self.np
        sigmoid, summed = self.nn.sigmoid, self.jax.scipy.special.logsumexp

        def layer(weight: Any, bias: Any, hidden: Any, state: Any, x: Any) -> Any:
            gates = np.concatenate((x, hidden, x, hidden)) * weight + bias
            forget, enter, leave, change = gates.reshape(4, letters)
            state = sigmoid(forget) * state + sigmoid(enter) * np.tanh(change)
            return sigmoid(leave) * np.tanh(state), state

        def loss(parameters: Any, sequence: Any) -> Any:
            main, extra = parameters

            def step(carried: Any, letter: Any) -> Any:
                (hidden, states), (now, following) = carried, letter
                x, new_hidden, new_states = now * extra[0], [], []
                for depth in range(layers):
                    x, state = layer(main[2 * depth], main[2 * depth + 1], hidden[depth], states[depth], x)
                    new_hidden.append(x)
                    new_states.append(state)
                prediction = x * extra[1] + extra[2]
                return (new_hidden, new_states), (following * (prediction - summed(prediction, 0))).sum()

            start = ([np.zeros(letters)] * layers, [np.zeros(letters)] * layers)
            return -self.jax.lax.scan(step, start, (sequence[:-1], sequence[1:]))[1].sum() / length

        parameters = _random(1, 2 * layers, 4 * letters, scale=0.3), _random(2, 3, letters, scale=0.3)
        return self._ready(
            self.jax.grad(loss), parameters, numpy.stack([_random(10 + n, letters) for n in range(length)])
        )


def _rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


MAKERS: dict[str, Callable[[Any], Run]] = {
    "chain of 200 x*a+b, 8 floats": lambda w: w.chain(8),
    "chain of 200 x*a+b, scalars": lambda w: w.chain(),
    "small MLP, batch 1": lambda w: w.small_mlp(1),
    "small MLP, batch 16": lambda w: w.small_mlp(16),
    "deep graph, 10,000 operations": lambda w: w.deep_graph(),
    "MLP 784-512-512-10, batch 64, SGD step": lambda w: w.mlp(64),
    "MLP 784-512-512-10, batch 512, SGD step": lambda w: w.mlp(512),
    "LeNet, batch 32, SGD step": lambda w: w.lenet(),
    "3x3 convolution, 16x64x32x32": lambda w: w.convolution(),
    "LSTM unrolled 64 steps": lambda w: w.lstm(),
    "GPT 4x128, 128 tokens, batch 8, AdamW step": lambda w: w.gpt(),
    "elementwise chain, 2^17 elements": lambda w: w.elementwise(2**17),
    "elementwise chain, 2^20 elements": lambda w: w.elementwise(2**20),
    "elementwise chain, 2^23 elements": lambda w: w.elementwise(2**23),
    "Hessian, 64 inputs": lambda w: w.hessian(),
    "Hessian-vector product, 100,000 inputs": lambda w: w.hessian_vector_product(),
    "Jacobian, 128 by 128": lambda w: w.jacobian(),
    "Gaussian mixture, gradient": lambda w: w.gaussian_mixture(),
    "bundle adjustment, gradient": lambda w: w.bundle_adjustment(),
    "character LSTM, gradient": lambda w: w.character_lstm(),
}
"""By the names of workloads."""


def make(name: str) -> Run:
    """What does the work of a workload once, in JAX; ValueError where it is left out."""
    if name not in MAKERS:
        raise ValueError(f"{name} is not written for JAX")
    return MAKERS[name](_Workloads())
