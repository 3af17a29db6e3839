"""Calls with a Tensor subclass among their arguments, and what its `__torch_function__` is told of each.

`s` and `t` are instances of the subclass, `x` and `y` plain tensors of the same size, `i` indices, `m` a mask. The calls of
every method, property, operator and public function are found by trying which arguments PyTorch takes
(`python -m tests.overriding.record`), and are stored with its answers.
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
import operator
import pickle
import warnings
from functools import cache
from typing import Any

import numpy

OPERATORS = [
    *[f"s {sign} y" for sign in "+ - * / // % ** @ < <= > >= == !=".split()],
    *[f"x {sign} t" for sign in "+ - * / // % ** @ < <= > >= == !=".split()],
    *[f"s {sign} 2" for sign in "+ - * / // % ** < <= > >= == !=".split()],
    *[f"2 {sign} s" for sign in "+ - * / // % ** < <= > >= == !=".split()],
    *[f"{left} {sign} {right}" for sign in "& | ^".split() for left, right in (("sm", "m"), ("m", "sm"), ("sm", "True"))],
    *[f"{left} {sign} {right}" for sign in "<< >>".split() for left, right in (("si", "i"), ("i", "si"), ("si", "1"), ("1", "si"))],
    *["-s", "+s", "abs(s)", "~sm", "s[0]", "s[0, 1]", "s[:, None]", "s[m]", "x[sm]", "x[si]", "len(s)", "list(s)", "bool(s[0, 0])"],
    *["float(s[0, 0])", "int(s[0, 0])", "complex(s[0, 0])", "s in (1, s)", "1.0 in s", "iter(s)", "reversed(s)", "[*s]", "round(s)"],
    *["math.floor(s[0, 0])", "hash(s)", "repr(s)", "str(s)", "f'{s[0, 0]:.2f}'", "copy.copy(s)", "copy.deepcopy(s)"],
    *["pickle.dumps(s)", "operator.index(si[0])", "divmod(s, 2)", "numpy.asarray(s)", "numpy.sin(s)", "torch.tensor(s)"],
    *[f"operator.{name}({left}, {right})" for name in "iadd isub imul itruediv ifloordiv imod ipow".split()
      for left, right in (("s", "y"), ("x", "t"), ("s", "2"))],
    *[f"operator.{name}({left}, {right})" for name in "iand ior ixor".split() for left, right in (("sm", "m"), ("m", "sm"))],
    *[f"operator.{name}({left}, {right})" for name in "ilshift irshift".split() for left, right in (("si", "i"), ("i", "si"))],
    *["operator.setitem(s, 0, 1.0)", "operator.setitem(x, 0, t[0])", "operator.setitem(s, m, y[m])", "operator.setitem(x, sm, 0.0)"],
    *["s.backward()", "s.sum().backward()", "s.norm(1)", "s.norm(p=1, dim=0)", "s.split([1, 1])", "s.split(1, dim=1)"],
    *["torch.split(s, 1)", "torch.split(s, [1, 1], dim=1)", "torch.einsum('ij,jk->ik', s, y)", "torch.einsum('ij,jk', x, t)"],
    *["torch.einsum('ij,jk->ik', [x, t])", "torch.einsum('ij', s)", "torch.norm(s)", "torch.norm(s, 1)", "torch.norm(s, dim=0)"],
    *["s.view(4)", "s.view(4, 1)", "s.view(torch.int32)", "s.view_as(y)", "x.view_as(t)", "s.expand_as(y)", "x.expand_as(t)"],
    *["s.type_as(y)", "x.type_as(t)", "s.type()", "s.type(torch.float64)", "s.to(torch.float64)", "s.to(y)", "x.to(t)", "s.to('cpu')"],
    *["torch.equal(s, y)", "torch.equal(x, t)", "s.equal(y)", "x.equal(t)", "s.reshape(4)", "s.reshape_as(y)", "x.reshape_as(t)"],
    *["s.stft(2, return_complex=True)", "s.flatten().stft(2, return_complex=True)", "s.unique()", "s.unique(dim=0)"],
    *["s.unflatten(0, (2, 1))", "s.refine_names", "s.register_hook(print)", "s.where(m, y)", "x.where(m, t)", "x.where(sm, y)"],
    *["torch.where(m, s, 1.0)", "torch.where(sm)", "torch.cat([s, y])", "torch.cat([x, t])", "torch.stack((x, t))"],
    *["torch.meshgrid(s[0], y[0])", "torch.broadcast_tensors(x, t)", "torch.block_diag(x, t)", "torch.cartesian_prod(x[0], t[0])"],
    *["torch.max(s)", "torch.max(s, 0)", "torch.max(x, t)", "s.max(0)", "s.max(y)", "x.max(t)", "s.sum(0)", "s.sum(dim=0)"],
    *["s.mean(0, keepdim=True)", "s.var(0)", "s.std()", "torch.var(s, 0)", "torch.std_mean(s)", "s.argmax()", "s.sort(descending=True)"],
    *["torch.sum(s, dim=(0, 1))", "torch.add(s, 1)", "torch.add(1, t)", "torch.add(x, t, alpha=2)", "s.add(y, alpha=2)", "torch.pow(2, t)"],
    *["torch.add(s, y, out=x)", "torch.add(x, y, out=t)", "s.pow(2)", "torch.pow(s, y)", "torch.clamp(s, 0, 1)", "torch.clamp(x, t)"],
    *["s.clamp(min=0)", "s.tolist()", "s.numpy()", "s.numpy(force=True)", "s.requires_grad_()", "s.is_shared()", "s.storage()"],
    *["s.untyped_storage()", "s.pin_memory", "s.new_tensor([1.0])", "s.new_zeros(2)", "s.new_zeros((2,))", "s.permute(1, 0)"],
    *["s.permute((1, 0))", "s.transpose(0, 1)", "s.repeat(2, 1)", "s.tile((2, 1))", "s.roll(1, 0)", "s.flip(0)", "s.flip((0, 1))"],
    *["torch.nn.functional.relu(s, inplace=True)", "torch.nn.functional.softmax(s, -1)", "torch.nn.functional.dropout(s, 0.0)"],
    *["torch.nn.Linear(2, 2)(s)", "torch.nn.ReLU()(s)", "torch.nn.LayerNorm(2)(s)", "torch.nn.Softmax(-1)(s)", "torch.nn.MSELoss()(s, y)"],
    *["torch.nn.MSELoss()(x, t)", "torch.nn.GELU()(s)", "torch.nn.Dropout(0.0)(s)", "torch.nn.Flatten()(s)", "torch.nn.Identity()(s)"],
    *["torch.is_tensor(s)", "torch.numel(s)", "torch.is_complex(s)", "torch.result_type(s, y)", "torch.result_type(x, t)"],
    *["torch.set_default_dtype", "torch.autograd.grad(s.sum(), s)", "torch.autograd.backward(s.sum())", "torch.zeros_like(t)"],
    *["torch.as_tensor(s)", "torch.from_numpy", "torch.nn.Parameter(s)", "torch.nn.utils.clip_grad_norm_([s], 1.0)"],
    *["torch.allclose(s, y)", "torch.allclose(x, t)", "torch.isclose(x, t)", "torch.atleast_2d(s)", "torch.atleast_2d(x, t)"],
    *["torch.tensordot(s, y)", "torch.tensordot(x, t, dims=1)", "torch.cdist(s, y)", "torch.cdist(x, t)", "torch.chain_matmul(x, t)"],
    *["torch.linalg.norm(s)", "torch.linalg.multi_dot([x, t])", "torch.linalg.solve(x, t)", "torch.linalg.inv(s)", "torch.linalg.svd(s)"],
    *["torch.fft.fft(s)", "torch.special.erf(s)", "torch.special.xlogy(x, t)", "torch.special.xlogy(1.0, t)"],
]  # fmt: skip

IN_MODES = [
    *[f"torch.{call}" for call in (
        "zeros(2, 3)", "zeros((2, 3), dtype=torch.float64)", "ones(2, requires_grad=True)", "full((2,), 1.0)", "empty(2)", "eye(2)",
        "arange(3)", "arange(1, 3, dtype=torch.int64)", "linspace(0, 1, 3)", "logspace(0, 1, 3)", "rand(2)", "randn((2,))",
        "randint(3, (2,))", "randint(0, 3, (2,))", "randperm(3)", "tril_indices(2, 2)", "tensor([1.0])", "tensor(1.0, dtype=None)",
        "as_tensor([1.0])", "asarray([1.0])", "scalar_tensor(1.0)", "hann_window(3)", "normal(0.0, 1.0, (2,))", "Tensor([1.0])",
        "Tensor(2, 3)", "promote_types(torch.int32, torch.float32)", "set_grad_enabled(True)", "is_grad_enabled()",
        "from_numpy(numpy.ones(2))", "broadcast_shapes((1, 2), (2,))", "empty_strided((2, 2), (2, 1))", "bernoulli(x / 5)",
    )],
    *[f"torch.nn.{layer}" for layer in (
        "Linear(2, 2)", "Parameter(x)", "BatchNorm1d(2)(x)", "Embedding(3, 2)(i)",
        "Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())(x)", "Sigmoid()(x)", "Tanh()(x)", "SiLU()(x)", "PReLU()(x)",
        "LogSoftmax(-1)(x)", "CrossEntropyLoss()(x, i)", "L1Loss()(x, y)", "MaxPool2d(2)(x[None])", "AvgPool2d(2)(x[None])",
        "AdaptiveAvgPool2d(1)(x[None])", "GroupNorm(1, 2)(x)", "Upsample(scale_factor=2)(x[None])", "Bilinear(2, 2, 2)(x, x)",
        "Hardtanh()(x)", "Dropout(0.0)(x)", "Unflatten(0, (2, 1))(x)", "PixelShuffle(1)(x[None])", "ZeroPad2d(1)(x[None])",
        "CosineSimilarity()(x, y)", "PairwiseDistance()(x, y)", "Linear(2, 2).state_dict()", "init.xavier_uniform_(x)",
        "init.xavier_normal_(x)", "init.uniform_(x)", "init.normal_(x)", "init.zeros_(x)", "init.ones_(x)", "init.kaiming_uniform_(x)",
        "init.constant_(x, 1.0)",
    )],
    *["(x.requires_grad_() * 2).sum().backward()", "torch.autograd.grad((x.requires_grad_() * 2).sum(), x)", "torch.no_grad().__enter__()"],
    *["torch.no_grad()(torch.add)(x, y)", "torch.vmap(torch.sin)(x)", "torch.func.grad(lambda v: v.sin().sum())(x)", "print(x)"],
]  # fmt: skip
"""Further calls, without an overriding tensor, of which modes are told."""

PROPERTIES_WRITTEN = [
    "s.grad = y", "s.requires_grad = True", "s.data = y", "s.names = None", "s.real = y", "del s.grad", "s.anything = 1",
    "x.data = t", "x.grad = t", "s.grad_dtype = torch.float32",
]  # fmt: skip


@cache
def classes(torch: Any) -> tuple[Any, Any]:
    """A subclass that writes down what it is told, and one that is not told."""

    class Told(torch.Tensor):
        seen: list[list[Any]] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = torch.overrides.resolve_name(func)
            cls.seen.append([found or f"unknown {func.__name__}", func.__name__, len(args), sorted(kwargs or {})])
            return super().__torch_function__(func, types, args, kwargs or {})

    class Untold(torch.Tensor):
        seen: list[list[Any]] = []

    return Told, Untold


def names(torch: Any, chosen: Any) -> dict[str, Any]:
    """What the calls speak of. Made anew for each, since some of them write."""
    scope: dict[str, Any] = {"torch": torch, "copy": copy, "math": math, "operator": operator, "pickle": pickle}
    scope["numpy"] = numpy
    for name, values in (
        ("s t x y", [[1.0, 2.0], [3.0, 5.0]]), ("si i", [1, 0]), ("sm m", [[True, False], [True, True]]),
    ):  # fmt: skip
        for each in name.split():
            made = torch.tensor(values)
            scope[each] = made if each in "xyim" else made.as_subclass(chosen)
    return scope


def told(torch: Any, text: str) -> list[Any]:
    """What the subclass is told of a call, the type of the result, and that of the result for a class that is not told.

    An error counts as a result, told by its type.
    """
    return [*_told(torch, text, True), *_told(torch, text, False)]


def _told(torch: Any, text: str, is_told: bool) -> list[Any]:
    chosen = classes(torch)[not is_told]
    scope, seen = names(torch, chosen), chosen.seen
    seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if " = " in text or text.startswith("del "):
                exec(text, scope)
                result = None
            else:
                result = eval(text, scope)
        except Exception as error:
            kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
            return [*seen, f"raises {kinds[0]}"]
    return [*seen, kind_of(result)]


def kind_of(result: Any) -> str:
    """The type of a result, and of the elements of one that holds tensors."""
    if isinstance(result, (tuple, list)) and result:
        return f"{len(result)} of {kind_of(result[0])}"
    kind = type(result).__name__.removesuffix("Type")
    return kind if kind in ("Tensor", "Told", "Untold", "NotImplemented") else "other"


def told_to_mode(torch: Any, text: str) -> list[Any]:
    """What a function mode is told of a call on plain tensors: name, types and arguments; and the type of an error."""

    class Mode(torch.overrides.TorchFunctionMode):
        seen: list[list[Any]] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            named = {name: _shown(torch, kwargs[name]) for name in sorted(kwargs)}
            found = torch.overrides.resolve_name(func) or f"unknown {func.__name__}"
            self.seen.append([found, func.__name__, [t.__name__ for t in types], _shown(torch, args), named])
            return func(*args, **kwargs)

    scope = names(torch, torch.Tensor)
    torch.manual_seed(0)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            with Mode():
                exec(text, scope) if " = " in text or text.startswith("del ") else eval(text, scope)
        except Exception as error:
            kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
            return [*Mode.seen, f"raises {kinds[0]}"]
        finally:
            torch.set_grad_enabled(True)
    return Mode.seen


def _shown(torch: Any, value: Any) -> Any:
    """An argument as it is recorded: a tensor by its sizes, a number by itself, others by their types."""
    if isinstance(value, torch.Tensor):
        return f"Tensor{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return [_shown(torch, part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.12g}")
    return value if isinstance(value, (int, str, type(None))) else type(value).__name__
