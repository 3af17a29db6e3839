"""Random programs of views, in-place operations, hooks and backward passes, and what they show step by step.

`python -m tests.parity.random_programs MINUTES [FIRST_SEED]` compares PyTorch and pullback until the time is up.
"""

from __future__ import annotations

import gc
import random
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

Made = Callable[[Any], Any]

VIEWS: dict[str, Made] = {
    "first": lambda t: t[0], "last": lambda t: t.select(-1, -1), "tail": lambda t: t[1:], "steps": lambda t: t[::2],
    "swap": lambda t: t.transpose(0, -1), "flat": lambda t: t.view(-1), "reshape": lambda t: t.reshape(-1),
    "diagonal": lambda t: t.diagonal(), "unsqueeze": lambda t: t.unsqueeze(0), "squeeze": lambda t: t.squeeze(),
    "narrow": lambda t: t.narrow(0, 0, 1), "expand": lambda t: t.unsqueeze(0).expand(2, *t.shape),
    "unbind": lambda t: t.unbind(0)[-1], "split": lambda t: t.split(1, -1)[0], "chunk": lambda t: t.chunk(2)[0],
    "alias": lambda t: t.view_as(t), "detach": lambda t: t.detach(), "data": lambda t: t.data,
    "as_strided": lambda t: t.as_strided((2,), (1,), t.storage_offset()), "movedim": lambda t: t.movedim(0, -1),
    "unfold": lambda t: t.unfold(0, 1, 1),
}  # fmt: skip
FRESH: dict[str, Made] = {
    "clone": lambda t: t.clone(), "mul": lambda t: t * 1.5, "sin": lambda t: t.sin(), "square": lambda t: t * t,
    "exp": lambda t: (t * 0.1).exp(), "sum": lambda t: t.sum(), "cumsum": lambda t: t.cumsum(-1), "relu": lambda t: t.relu(),
    "sigmoid": lambda t: t.sigmoid(), "max": lambda t: t.max(-1).values, "add": lambda t: t + 1, "flip": lambda t: t.flip(0),
}  # fmt: skip
IN_PLACE: dict[str, Made] = {
    "add_": lambda t: t.add_(0.5), "mul_": lambda t: t.mul_(1.25), "sin_": lambda t: t.sin_(), "zero_": lambda t: t.zero_(),
    "relu_": lambda t: t.relu_(), "sigmoid_": lambda t: t.sigmoid_(), "exp_": lambda t: t.mul_(0.1).exp_(),
    "fill_": lambda t: t.fill_(0.75), "item": lambda t: t.__setitem__(0, 0.25), "square_": lambda t: t.square_(),
    "neg_": lambda t: t.neg_(), "clamp_": lambda t: t.clamp_(-1, 1), "detach_": lambda t: t.detach_(),
    "requires_grad_": lambda t: t.requires_grad_(), "frees": lambda t: t.requires_grad_(False), "t_": lambda t: t.t_(),
    "unsqueeze_": lambda t: t.unsqueeze_(0), "tanh_": lambda t: t.tanh_(), "swap_": lambda t: t.transpose_(0, -1),
}  # fmt: skip
WITH_OTHER: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda t, o: t.add_(o), "mul_": lambda t, o: t.mul_(o), "copy_": lambda t, o: t.copy_(o),
    "item": lambda t, o: t.__setitem__(0, o), "mul": lambda t, o: t * o, "add": lambda t, o: t + o, "sub_": lambda t, o: t.sub_(o),
    "data": lambda t, o: setattr(t, "data", o.detach().clone()) if t.shape == o.shape else None, "where": lambda t, o: t.where(o > 0, o),
    "grad": lambda t, o: setattr(t, "grad", o.detach().clone()),
}  # fmt: skip


_REFUSED_VIEW = re.compile("A view was created in|is a view of a view|is a view and its base")


class World:
    """One library's side of a program: its tensors, the handles of its hooks, and all that it has shown."""

    def __init__(self, module: Any) -> None:
        self.torch = module
        leaf = module.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=module.float64, requires_grad=True)
        plain = module.tensor([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]], dtype=module.float64)
        self.tensors = [leaf, leaf * 2, plain, module.tensor(0.5, dtype=module.float64, requires_grad=True)]
        self.handles: list[Any] = []
        self.shown: list[str] = []

    def say(self, *values: Any) -> None:
        self.shown.append(" ".join(self.text(value) for value in values))

    def text(self, value: Any) -> str:
        if isinstance(value, self.torch.Tensor):
            return f"{list(value.shape)}{[f'{x:.5g}' for x in value.detach().reshape(-1).tolist()]}"
        if isinstance(value, tuple):
            return "(" + ", ".join(self.text(item) for item in value) + ")"
        return str(value)

    def attempt(self, action: Callable[[], Any], *, keep: bool = True) -> None:
        """Do something that may be refused; what it makes is one of the tensors from now on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = action()
            except (RuntimeError, IndexError, TypeError, ValueError) as error:
                kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
                self.say(kind, str(error).replace("pullback.", "torch.")[:45])
                return
        if keep and isinstance(made, self.torch.Tensor) and all(made is not known for known in self.tensors):
            self.tensors.append(made)

    def describe(self) -> None:
        """Say all that can be seen of the tensors."""
        for number, tensor in enumerate(self.tensors):
            state = [tensor.requires_grad, tensor._version, tensor._is_view(), tensor.retains_grad]
            try:
                node = tensor.grad_fn
                name = None if node is None else node.name().rpartition("::")[2]
                state += [tensor.is_leaf, tensor.output_nr, name]
                if node is not None:
                    state += [
                        tuple(None if n is None else n.name().rpartition("::")[2] for n, _ in node.next_functions)
                    ]
            except RuntimeError as error:
                state.append(str(error).replace("pullback.", "torch.")[:45])
            base = next((i for i, other in enumerate(self.tensors) if tensor._base is other), None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.say("tensor", number, tensor, base, tuple(state), tensor.grad)


def program(choice: random.Random, worlds: list[World], steps: int = 14) -> None:
    """Do the same random steps in every world."""
    for step in range(steps):
        one = worlds[0]
        first, second = choice.randrange(len(one.tensors)), choice.randrange(len(one.tensors))
        act = _choose(choice, one, first, second)
        for world in worlds:
            world.say("step", step, act[0])
            act[1](world)
            world.describe()
        if len({len(world.tensors) for world in worlds}) > 1:
            return


def _choose(choice: random.Random, world: World, first: int, second: int) -> tuple[str, Callable[[World], None]]:
    kind = choice.choices(
        ["view", "fresh", "in_place", "other", "no_grad", "hook", "backward", "grad", "drop"],
        [6, 4, 5, 4, 2, 7, 4, 2, 1],
    )[0]
    if kind == "hook":
        return _choose_hook(choice, first)
    if kind in ("backward", "grad"):
        return _choose_backward(choice, kind, first, second)
    if kind == "drop":
        return f"drop {first}", lambda w: w.tensors.pop(first) if len(w.tensors) > 4 and first > 3 else None
    if kind == "other":
        name = choice.choice(list(WITH_OTHER))
        return f"{name} {first} {second}", lambda w: w.attempt(
            lambda: WITH_OTHER[name](w.tensors[first], _apart(w.tensors[first], w.tensors[second]))
        )
    quiet = kind == "no_grad"  # a leaf must not change its shape while a graph leads to it
    table = choice.choice([VIEWS, IN_PLACE]) if quiet else {"view": VIEWS, "fresh": FRESH, "in_place": IN_PLACE}[kind]
    name = choice.choice([n for n in table if not (quiet and n in ("t_", "swap_", "unsqueeze_"))])

    def act(world: World) -> None:
        with world.torch.set_grad_enabled(not quiet):
            world.attempt(lambda: table[name](world.tensors[first]))

    return f"{kind} {name} {first}", act


def _apart(tensor: Any, other: Any) -> Any:
    """The other tensor; a copy of a part of this one, which PyTorch would read while it writes."""
    return other if other is tensor or other.data_ptr() != tensor.data_ptr() else other.clone()


def _choose_hook(choice: random.Random, first: int) -> tuple[str, Callable[[World], None]]:
    name = choice.choice(
        ["tensor", "replace", "double", "retain", "post", "node", "prehook", "remove", "accumulator", "multi"]
    )
    number = choice.randrange(1000)

    def register(world: World) -> Any:
        tensor, say = world.tensors[first], world.say
        label = f"hook {number} of {first}"
        if name == "retain":
            return tensor.retain_grad()
        if name == "remove":
            return world.handles[number % len(world.handles)].remove() if world.handles else None
        made = {
            "tensor": lambda: tensor.register_hook(lambda grad: say(label, grad)),
            "replace": lambda: tensor.register_hook(lambda grad: None if grad is None else grad * 2),
            "double": lambda: tensor.register_hook(lambda grad: (say(label, grad), grad.sin())[1]),
            "post": lambda: tensor.register_post_accumulate_grad_hook(lambda leaf: say(label, leaf.grad)),
            "node": lambda: tensor.grad_fn and tensor.grad_fn.register_hook(lambda into, out: say(label, into, out)),
            "prehook": lambda: tensor.grad_fn and tensor.grad_fn.register_prehook(lambda out: say(label, out)),
            "accumulator": lambda: (
                tensor.grad_fn
                and tensor.grad_fn.register_prehook(lambda out: tuple(None if g is None else g + 1 for g in out))
            ),
            "multi": lambda: world.torch.autograd.graph.register_multi_grad_hook(
                [t for t in world.tensors[: first + 1] if not t.is_leaf], lambda grads: say(label, tuple(grads))
            ),
        }[name]()
        if made is not None:
            world.handles.append(made)
        return None

    return f"{name} hook {first}", lambda world: world.attempt(lambda: register(world))


def _choose_backward(choice: random.Random, kind: str, first: int, second: int) -> tuple[str, Callable[[World], None]]:
    retain, create, only = choice.random() < 0.7, choice.random() < 0.25, choice.random() < 0.3

    def run(world: World) -> Any:
        root, other = world.tensors[first], world.tensors[second]
        direct = root.dim() == 0 and kind == "grad" and root.is_leaf
        total = root if direct else (root * root).sum()
        if kind == "grad":
            grads = world.torch.autograd.grad(
                total, [other], retain_graph=retain, create_graph=create, allow_unused=True
            )
            world.say("grads", grads)
        else:
            total.backward(retain_graph=retain, create_graph=create, inputs=[other] if only else None)

    return f"{kind} {first} {second} {retain} {create} {only}", lambda w: w.attempt(lambda: run(w), keep=False)


def compare(modules: list[Any], seed: int) -> str | None:
    """Run one program on all modules; the first line in which they differ, with the steps before it."""
    worlds = [World(module) for module in modules]
    try:
        program(random.Random(seed), worlds)
    except Exception as error:
        return f"{type(error).__name__}: {error}\n" + "\n".join(worlds[0].shown[-6:])
    steps: list[str] = []
    for expected, actual in zip(*[world.shown for world in worlds], strict=False):
        if expected.startswith("step"):
            steps.append(expected)
        if "INTERNAL ASSERT" in expected or "unsupported operation: some elements of the i" in expected:
            return None  # pullback reads all before it writes
        if _REFUSED_VIEW.search(expected) and "Error" in actual:
            return None  # both refuse, PyTorch before it looks at the shapes
        if expected != actual:
            return "\n".join([*steps, f"expected: {expected}", f"actual:   {actual}"])
    return None if len({len(world.shown) for world in worlds}) == 1 else "\n".join([*steps, "another number of lines"])


def main() -> None:
    """Compare until the time is up."""
    import torch

    import pullback

    torch.set_num_threads(1)
    stop, seed, wrong = time.time() + 60 * float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, 0
    first = seed
    while time.time() < stop:
        difference = compare([torch, pullback], seed)
        if difference is not None:
            wrong += 1
            print(f"seed {seed}\n{difference}\n", flush=True)
        seed += 1
        if seed % 200 == 0:
            gc.collect()
    print(f"{seed - first} programs, {wrong} differ")


if __name__ == "__main__":
    main()
