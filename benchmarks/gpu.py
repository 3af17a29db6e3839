"""The GPU: pullback, eager and compiled, PyTorch, torch.compile and jax on the same workloads, each in a process of its own.

Run on a machine with a GPU: `python -m benchmarks.gpu [--json FILE] [--only NAME]`. Times are milliseconds, the least
of several rounds, with the device waited for at both ends of a round.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

Step = Callable[[], Any]


def chain(torch: Any, size: int = 1 << 26) -> Step:
    """Eight elementwise operations on a large array, forward and backward."""
    x = torch.randn(size, device="cuda").requires_grad_()

    def step() -> None:
        x.grad = None
        y = (x * 0.5 + 0.1).tanh() * (x * 2).sigmoid()
        y = (y * y + x).exp()
        y.sum().backward()

    return step


def small(torch: Any) -> Step:
    """Two hundred multiplications and additions of eight numbers, forward and backward."""
    a, b = torch.full((8,), 0.99, device="cuda"), torch.full((8,), 0.01, device="cuda")
    x = torch.ones(8, device="cuda", requires_grad=True)

    def step() -> None:
        x.grad = None
        h = x
        for _ in range(200):
            h = h * a + b
        h.sum().backward()

    return step


def elementwise_pass(torch: Any, name: str) -> Step:
    x = torch.randn(4096, 4096, device="cuda")
    return lambda: getattr(torch, name)(x)


def sum_rows(torch: Any, dim: int) -> Step:
    x = torch.randn(4096, 4096, device="cuda")
    return lambda: x.sum(dim)


def multiply(torch: Any, size: int = 1 << 26) -> Step:
    x, y = torch.randn(size, device="cuda"), torch.randn(size, device="cuda")
    return lambda: x * y


def matmul(torch: Any, dtype: str) -> Step:
    x = torch.randn(4096, 4096, device="cuda").to(getattr(torch, dtype))
    return lambda: x @ x


def softmax(torch: Any) -> Step:
    x = torch.randn(16384, 1024, device="cuda", requires_grad=True)
    g = torch.randn(16384, 1024, device="cuda")

    def step() -> None:
        x.grad = None
        torch.softmax(x, -1).backward(g)

    return step


def layer_norm(torch: Any) -> Step:
    norm = torch.nn.LayerNorm(768).to("cuda")
    x = torch.randn(16384, 768, device="cuda", requires_grad=True)
    g = torch.randn(16384, 768, device="cuda")

    def step() -> None:
        x.grad = norm.weight.grad = norm.bias.grad = None
        norm(x).backward(g)

    return step


def cross_entropy(torch: Any) -> Step:
    x = torch.randn(8192, 50257, device="cuda", requires_grad=True)
    t = torch.randint(0, 50257, (8192,), device="cuda")

    def step() -> None:
        x.grad = None
        torch.nn.functional.cross_entropy(x, t).backward()

    return step


def adamw(torch: Any) -> Step:
    """A step over a hundred million parameters in a hundred tensors."""
    parameters = [torch.randn(1000, 1000, device="cuda").requires_grad_() for _ in range(100)]
    for p in parameters:
        p.grad = torch.randn(1000, 1000, device="cuda")
    return torch.optim.AdamW(parameters, lr=1e-3).step


def gpt(torch: Any, dtype: str) -> Step:
    """A training step of a GPT: 6 layers of 512, 8 heads, 8 sequences of 512 tokens, a vocabulary of 8192."""
    nn, functional = torch.nn, torch.nn.functional
    base: Any = nn.Module
    width, heads, length, batch, words = 512, 8, 512, 8, 8192

    class Block(base):  # type: ignore[misc]  # of either library
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.first(x)).split(width, 2)
            q, k, v = (t.view(batch, length, heads, width // heads).transpose(1, 2) for t in (q, k, v))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    class GPT(base):  # type: ignore[misc]  # of either library
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(6)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, tokens: Any, places: Any) -> Any:
            return self.head(self.norm(self.blocks(self.words(tokens) + self.places(places))))

    model = GPT().to("cuda").to(getattr(torch, dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, words, (batch, length), device="cuda")
    targets = torch.randint(0, words, (batch * length,), device="cuda")
    places = torch.arange(length, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(tokens, places).view(-1, words).float(), targets)
        loss.backward()
        optimizer.step()

    return step


def convolution(torch: Any) -> Step:
    """A step of a small ResNet-style network on 32 images of 64 by 64."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64),
        nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
    ).to("cuda")  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, t = torch.randn(32, 3, 64, 64, device="cuda"), torch.randint(0, 10, (32,), device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), t).backward()
        optimizer.step()

    return step


def lstm(torch: Any) -> Step:
    net = torch.nn.LSTM(256, 256, batch_first=True).to("cuda")
    x = torch.randn(32, 64, 256, device="cuda")

    def step() -> None:
        net.zero_grad()
        net(x)[0].sum().backward()

    return step


WORKLOADS: dict[str, tuple[Callable[[Any], Step], int]] = {
    "exp of 4096 x 4096": (lambda t: elementwise_pass(t, "exp"), 50),
    "x * y, 2^26": (multiply, 20),
    "sum over dim 0 of 4096 x 4096": (lambda t: sum_rows(t, 0), 50),
    "sum over dim 1 of 4096 x 4096": (lambda t: sum_rows(t, 1), 50),
    "4096 x 4096 product, bfloat16": (lambda t: matmul(t, "bfloat16"), 20),
    "4096 x 4096 product, float32": (lambda t: matmul(t, "float32"), 10),
    "elementwise chain, 2^26": (chain, 10),
    "200 small operations": (small, 10),
    "softmax 16384 x 1024": (softmax, 20),
    "layer norm 16384 x 768": (layer_norm, 20),
    "cross entropy 8192 x 50257": (cross_entropy, 10),
    "AdamW, 100 M parameters": (adamw, 10),
    "GPT step, float32": (lambda t: gpt(t, "float32"), 5),
    "GPT step, bfloat16": (lambda t: gpt(t, "bfloat16"), 5),
    "convolution step": (convolution, 5),
    "LSTM step": (lstm, 5),
}


def measure(library: str, only: str | None) -> None:
    """Print the times of one library as JSON lines."""
    torch = import_module("pullback" if library.startswith("pullback") else "torch")
    torch.manual_seed(0)
    for name, (make, count) in WORKLOADS.items():
        if only and only not in name:
            continue
        try:
            step = make(torch)
            if library.endswith("compile"):
                step = torch.compile(step)
            for _ in range(8 if library.endswith("compile") else 3):
                step()
            torch.cuda.synchronize()
            stream = torch.cuda.current_stream()
            times = []
            for _ in range(3):
                start = time.perf_counter()
                for _ in range(count):
                    result = step()
                    stream.query()  # results that were put off are launched before they are dropped
                    del result
                torch.cuda.synchronize()
                times.append((time.perf_counter() - start) / count * 1e3)
            row = {"name": name, "library": library, "ms": min(times)}
        except Exception as error:
            row = {"name": name, "library": library, "error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(row), flush=True)
        step = None  # type: ignore[assignment]
        torch.cuda.empty_cache()
    for name, (make, _) in WORKLOADS.items():  # after all times: to count bytes takes time at every allocation
        if not only or only in name:
            print(json.dumps({"name": name, "library": library, "MiB": most_memory(torch, make)}), flush=True)


def most_memory(torch: Any, make: Callable[[Any], Step]) -> float:
    """The most MiB in use during a step."""
    step = make(torch)
    step()
    torch.cuda.reset_peak_memory_stats()
    step()
    return float(torch.cuda.max_memory_allocated() / 2**20)


def measure_jax(only: str | None) -> None:
    """The workloads that jax has a short form of, compiled."""
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")

    def chain_loss(x: Any) -> Any:
        y = jnp.tanh(x * 0.5 + 0.1) * jax.nn.sigmoid(x * 2)
        return jnp.exp(y * y + x).sum()

    def small_loss(x: Any) -> Any:
        h = x
        for _ in range(200):
            h = h * 0.99 + 0.01
        return h.sum()

    def soft(x: Any) -> Any:
        return (jax.nn.softmax(x, -1) * g).sum()

    key = jax.random.PRNGKey(0)
    g = jax.random.normal(key, (16384, 1024))
    cases = {
        "elementwise chain, 2^26": (jax.jit(jax.grad(chain_loss)), jax.random.normal(key, (1 << 26,))),
        "200 small operations": (jax.jit(jax.grad(small_loss)), jnp.ones(8)),
        "softmax 16384 x 1024": (jax.jit(jax.grad(soft)), g),
        "exp of 4096 x 4096": (jax.jit(jnp.exp), jax.random.normal(key, (4096, 4096))),
    }
    for name, (function, x) in cases.items():
        if only and only not in name:
            continue
        for _ in range(3):
            function(x).block_until_ready()
        times = []
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(10):
                result = function(x)
            result.block_until_ready()
            times.append((time.perf_counter() - start) / 10 * 1e3)
        print(json.dumps({"name": name, "library": "jax", "ms": min(times)}), flush=True)


def main() -> None:
    """Run each library in a process of its own and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only")
    parser.add_argument("--json")
    parser.add_argument("--library")
    parser.add_argument("--libraries", default="pullback,pullback-compile,torch,compile,jax")
    options = parser.parse_args()
    if options.library:
        if options.library == "jax":
            measure_jax(options.only)
        else:
            measure(options.library, options.only)
        return
    rows = []
    for library in options.libraries.split(","):
        command = [sys.executable, "-m", "benchmarks.gpu", "--library", library]
        command += ["--only", options.only] if options.only else []
        done = subprocess.run(command, capture_output=True, text=True)
        rows += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode:
            print(library, done.stderr[-2000:], file=sys.stderr)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    libraries = options.libraries.split(",")
    print("| workload (ms) | " + " | ".join(libraries) + " |")
    print("|---|" + "---|" * len(libraries))
    for name in WORKLOADS:
        found = {row["library"]: row for row in rows if row["name"] == name and "MiB" not in row}
        cells = [f"{found[one]['ms']:.3f}" if "ms" in found.get(one, {}) else "" for one in libraries]
        print(f"| {name} | {' | '.join(cells)} |")
    for row in rows:
        if "error" in row:
            print(row["library"], row["name"], row["error"])


if __name__ == "__main__":
    main()
