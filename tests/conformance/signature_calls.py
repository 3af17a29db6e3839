"""Calls of a function: first some that PyTorch takes, then the same with arguments said in every other way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from .signature_schemas import REQUIRED, Overload, Parameter

ALIASES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x",), "other": ("x2",)}


@dataclass(frozen=True)
class Call:
    """One call and what is special about it."""

    what: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class Bound:
    """Arguments under the names of an overload; those in `keywords` are given by keyword."""

    overload: Overload
    values: dict[str, Any]
    keywords: frozenset[str]

    def call(self, what: str) -> Call | None:
        """The call, or None where a gap among the positional arguments makes it impossible."""
        arguments: list[Any] = []
        options, gap = {}, False
        for parameter in self.overload:
            if parameter.name not in self.values:
                gap = True
            elif parameter.keyword_only or parameter.name in self.keywords or gap:
                options[parameter.name] = self.values[parameter.name]
                gap = True
            else:
                arguments.append(self.values[parameter.name])
        return Call(what, tuple(arguments), options)


def bind(overloads: list[Overload], arguments: tuple[Any, ...], options: dict[str, Any]) -> Bound | None:
    """Give a call's arguments the names of the first overload that they fit."""
    for overload in overloads:
        positional = [p for p in overload if not p.keyword_only]
        names = {p.name for p in overload}
        if len(arguments) > len(positional) or not options.keys() <= names:
            continue
        values = {p.name: v for p, v in zip(positional, arguments, strict=False)}
        if values.keys() & options.keys():
            continue
        values.update(options)
        if all(_fits(p, values[p.name]) if p.name in values else not p.is_required for p in overload):
            return Bound(overload, values, frozenset(options))
    return None


def _fits(parameter: Parameter, value: Any) -> bool:
    kind = parameter.type
    if kind == "?":
        return True
    if value is None:
        return kind.endswith("?") or parameter.default is None
    kind = kind.rstrip("?")
    if kind == "Tensor":
        return isinstance(value, torch.Tensor)
    if kind in ("int", "float", "Scalar", "number"):
        return isinstance(value, (bool, int, float, complex))
    if kind.endswith("[]"):
        return isinstance(value, (tuple, list, int))
    return not isinstance(value, torch.Tensor)


# ---------------------------------------------------------------- calls that PyTorch takes


def _tensors() -> Iterator[torch.Tensor]:
    torch.manual_seed(0)
    yield torch.rand(3, 3) + 0.5
    yield torch.randint(0, 3, (3, 3))
    yield torch.rand(3)
    yield torch.randint(0, 2, (3, 3)).bool()
    yield torch.rand(2, 3, 4)
    yield torch.rand(1, 2, 4, 4)
    yield torch.rand(3, 3, dtype=torch.complex64)
    yield torch.tensor(0.75)


_BY_NAME: dict[str, tuple[Any, ...]] = {
    "dim": (0, (0,)), "dim0": (0,), "dim1": (1,), "axis0": (0,), "axis1": (1,), "dims": ((1, 0), (0,)),
    "size": ((2, 3), (9,), (3, 3), 6), "shape": ((9,), (2, 3)), "sizes": ((3, 1), (3,)), "source": (0,), "destination": (1,),
    "n": (2, 5), "k": (1,), "steps": (4,), "window_length": (5,), "M": (5,), "split_size": (2,), "chunks": (2,),
    "sections": (3,), "repeats": (2, (2, 1)), "reps": ((2, 1),), "shifts": (1,), "q": (0.5,), "p": (2.0, 0.5),
    "start": (0,), "end": (3,), "length": (1,), "step": (1,), "low": (0,), "high": (5,), "num_samples": (2,),
    "stride": ((3, 1), (1,)), "dimension": (0,), "diagonal": (0,), "offset": (0,), "r": (2,), "row": (3,), "col": (4,),
    "reduce": ("sum",), "rounding_mode": ("floor",), "equation": ("ij,jk->ik",), "indexing": ("ij",),
    "index": (0,), "fill_value": (2,), "value": (2,), "dtype": (torch.float64,), "kernel_size": (2, (2,), (2, 2)),
    "output_size": (2, (2, 2)), "pad": ((1, 1),), "normalized_shape": ((3,), (4,)), "upscale_factor": (2,), "groups": (1,),
    "memory_format": (torch.contiguous_format,), "std": (1.5,), "mean": (0.5,), "ord": (2, "fro"),
}  # fmt: skip
_BY_TYPE: dict[str, tuple[Any, ...]] = {
    "int": (1, 0, 2), "int[]": ((1,), (2, 2), (0,)), "float": (0.5,), "Scalar": (2, 0.5), "number": (2,), "bool": (True,),
    "str": ("mean", "sum", "ij"), "ScalarType": (torch.float64,), "Device": ("cpu",), "float[]": ((0.5, 0.25),),
    "bool[]": ((True,),), "MemoryFormat": (torch.contiguous_format,), "Layout": (torch.strided,),
}  # fmt: skip


def seeds(overload: Overload) -> Iterator[Bound]:
    """Calls with the required arguments alone, made up from types and names; PyTorch takes some of them."""
    for tensor in _tensors():
        pools = [_pool(parameter, tensor) for parameter in overload if parameter.is_required]
        names = [parameter.name for parameter in overload if parameter.is_required]
        for chosen in itertools.islice(itertools.product(*pools), 12):
            values = dict(zip(names, chosen, strict=True))
            yield Bound(overload, values, frozenset(p.name for p in overload if p.keyword_only and p.name in values))


def _pool(parameter: Parameter, tensor: torch.Tensor) -> tuple[Any, ...]:
    kind = parameter.type.rstrip("?")
    if kind == "Tensor":
        index = torch.zeros_like(tensor, dtype=torch.int64)
        if parameter.name in ("index", "indices", "mask", "condition", "target", "tensor_indices_or_sections"):
            return (index, index.bool(), index.flatten()[:3].clone(), tensor.clone())
        return (tensor.clone(), tensor.movedim(0, -1).clone() if tensor.ndim else tensor, tensor.flatten()[:3].clone())
    if kind == "Tensor[]":
        return ((tensor, tensor.clone()), (torch.zeros(3, dtype=torch.int64),))
    return _BY_NAME.get(parameter.name) or _BY_TYPE.get(kind, ())


# ---------------------------------------------------------------- the same in other words


def rewordings(bound: Bound, is_method: bool) -> Iterator[Call]:
    """The call, and every other way to say it that the overload names."""
    made = itertools.chain(
        _orders(bound, is_method), _defaults(bound), _aliases(bound), _other_values(bound), _varargs(bound)
    )
    yield from (call for call in made if call is not None)


def _orders(bound: Bound, is_method: bool) -> Iterator[Call | None]:
    yield bound.call("as it is")
    first = bound.overload[0].name if bound.overload else ""
    yield replace(bound, keywords=frozenset(n for n in bound.values if not (is_method and n == first))).call("keywords")
    yield replace(bound, keywords=frozenset()).call("positional")


def _defaults(bound: Bound) -> Iterator[Call | None]:
    filled = dict(bound.values)
    for parameter in bound.overload:
        if parameter.is_required:
            continue
        values = {**bound.values, parameter.name: parameter.default}
        yield replace(bound, values=values, keywords=bound.keywords | {parameter.name}).call(
            f"default {parameter.name}"
        )
        if parameter.name not in bound.values:
            for value in _given(parameter):
                more = {**bound.values, parameter.name: value}
                what = f"{parameter.name}={type(value).__name__ if isinstance(value, torch.Generator) else value}"
                yield replace(bound, values=more, keywords=bound.keywords | {parameter.name}).call(what)
        if not parameter.keyword_only:
            filled.setdefault(parameter.name, parameter.default)
            yield replace(bound, values=dict(filled), keywords=frozenset()).call(f"defaults to {parameter.name}")


def _given(parameter: Parameter) -> tuple[Any, ...]:
    kind = parameter.type.rstrip("?")
    if kind == "bool":
        return (not parameter.default,)
    if kind == "Generator":
        return (torch.Generator(),)
    pools: dict[str, tuple[Any, ...]] = {
        "ScalarType": (torch.float64, torch.int64, torch.complex64, float, int, bool, complex, "float32", np.float32),
        "Device": ("cpu", torch.device("cpu"), "cpu:0", "meta", 0, "nonsense", None),
        "Layout": (torch.strided,),
        "MemoryFormat": (torch.contiguous_format, torch.preserve_format, torch.channels_last),
    }
    return pools.get(kind) or (_BY_NAME.get(parameter.name) or _BY_TYPE.get(kind, ()))[:2]


def _aliases(bound: Bound) -> Iterator[Call | None]:
    for name, others in ALIASES.items():
        for other in others if name in bound.values else ():
            overload = tuple(replace(p, name=other) if p.name == name else p for p in bound.overload)
            values = {other if n == name else n: v for n, v in bound.values.items()}
            yield Bound(overload, values, bound.keywords | {other}).call(f"{name} as {other}")


def _other_values(bound: Bound) -> Iterator[Call | None]:
    for parameter in bound.overload:
        if parameter.name not in bound.values:
            continue
        for what, value in _said_otherwise(bound.values[parameter.name], parameter):
            yield replace(bound, values={**bound.values, parameter.name: value}).call(f"{parameter.name}: {what}")


def _said_otherwise(value: Any, parameter: Parameter) -> Iterator[tuple[str, Any]]:
    if isinstance(value, bool):
        yield from (("int", int(value)), ("numpy bool", np.bool_(value)), ("tensor", torch.tensor(value)))
    elif isinstance(value, int):
        yield from (("numpy int", np.int64(value)), ("tensor", torch.tensor(value)), ("float", float(value)))
        yield from (("numpy array", np.array(value)), ("numpy float", np.float64(value)), ("one-tuple", (value,)))
        yield from (("one-element tensor", torch.tensor([value])), ("numpy int32", np.int32(value)))
        if value in (0, 1):
            yield "bool", bool(value)
    elif isinstance(value, float):
        yield from (("numpy float", np.float64(value)), ("tensor", torch.tensor(value)))
        if math.isfinite(value):
            yield "int", int(value)
        yield from (("numpy float32", np.float32(value)), ("numpy array", np.array(value)), ("bool", True))
        yield from (("complex", complex(value)), ("tensor that requires grad", torch.tensor(value, requires_grad=True)))
    elif isinstance(value, torch.Tensor):
        yield from _tensors_otherwise(value)
    elif isinstance(value, (tuple, list)) and value and isinstance(value[0], torch.Tensor):
        yield from (("list", list(value)), ("tuple", tuple(value)), ("one tensor", value[0]), ("none", []))
    elif isinstance(value, (tuple, list)) and parameter.type != "?":
        yield from _numbers_otherwise(value)


def _tensors_otherwise(value: torch.Tensor) -> Iterator[tuple[str, Any]]:
    plain = value.detach()
    yield "numpy array", plain.resolve_conj().numpy() if plain.dtype != torch.bfloat16 else plain
    yield "number", 2
    yield "list", plain.tolist()
    if plain.dtype.is_floating_point or plain.dtype.is_complex:
        yield "parameter", torch.nn.Parameter(plain.clone())
        yield "requires grad", plain.clone().requires_grad_()
    if plain.ndim:
        yield "strided", plain.repeat_interleave(2, -1)[..., ::2]


def _numbers_otherwise(value: Any) -> Iterator[tuple[str, Any]]:
    yield from (("list", list(value)), ("tuple", tuple(value)), ("numpy array", np.array(value)))
    yield from (("numpy numbers", tuple(np.array(value))), ("tensor", torch.tensor(value)))
    yield "tensors", tuple(torch.tensor(v) for v in value)
    if all(isinstance(v, int) for v in value):
        yield from (("size", torch.Size(value)), ("floats", tuple(float(v) for v in value)))
    if len(value) == 1:
        yield "number", value[0]


def _varargs(bound: Bound) -> Iterator[Call | None]:
    """A list of ints as the rest of the arguments, as in `x.permute(1, 0)`."""
    for position, parameter in enumerate(bound.overload):
        value = bound.values.get(parameter.name, REQUIRED)
        if parameter.type.startswith("int[]") and isinstance(value, (tuple, list)):
            before = [bound.values.get(p.name, REQUIRED) for p in bound.overload[:position]]
            options = {p.name: bound.values[p.name] for p in bound.overload[position + 1 :] if p.name in bound.values}
            if REQUIRED not in [v for v in before if not isinstance(v, torch.Tensor)]:
                yield Call(f"{parameter.name}: separate", (*before, *value), options)
