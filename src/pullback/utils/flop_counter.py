"""Counting multiplications and additions of a block, module by module. PyTorch's `torch.utils.flop_counter`.

Counted are matrix products and convolutions, forward and, for the gradients that are computed, backward. Everything else
counts nothing, as in PyTorch on a CPU.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.tensor.tensor import Tensor

__all__ = ["FlopCounterMode"]

_PRODUCTS = {
    "mm": ("mm", "mm", 0), "addmm": ("addmm", "mm", 1), "bmm": ("bmm", "bmm", 0), "baddbmm": ("baddbmm", "bmm", 1),
    "matmul_batched": ("bmm", "bmm", 0), "linear_product": ("mm", "mm", 0), "linear_product_folded": ("mm", "mm", 0),
    "linear_bias": ("addmm", "mm", 0), "linear_bias_folded": ("addmm", "mm", 0),
}  # fmt: skip
"""Per operation: PyTorch's name of it, that of the products of its backward, and where its first factor stands."""


@cache
def _operator(name: str) -> Any:
    """PyTorch's operator of this name, which the counts go by."""
    from pullback.library import ops  # lazy: operators by name are above this layer
    from pullback.library.operator_namespaces import OpOverload  # lazy: as above

    return getattr(ops.aten, name, None) or OpOverload("aten", name, {})


def _product_flops(factor: Tensor, result: Tensor) -> int:
    return 2 * result._array.size * int(factor._array.shape[-1])


def _convolution_flops(input: Tensor, weight: Tensor, result: Tensor, transposed: bool) -> int:
    windows = math.prod((input if transposed else result)._array.shape[2:])
    return 2 * windows * int(result._array.shape[0]) * int(weight._array.size)


class FlopCounterMode:
    """Counts the floating-point operations of a block.

    >>> import pullback
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = pullback.nn.Linear(3, 4)(pullback.ones(5, 3))
    >>> counter.get_total_flops()
    120
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.depth = 999999 if depth is None else depth
        self.display = display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._names: dict[int, str] = {}
        self._running: list[str] = []
        self._active = False

    def get_total_flops(self) -> int:
        """How many there were in all."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """How many of which operation, in all (`Global`) and inside of each module."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.flop_counts["Global"]  # there even if nothing is counted
        from pullback.nn.modules import module as modules  # lazy: modules are above this layer

        self._handles = [
            modules.register_module_forward_pre_hook(lambda module, args: self._enter_module(module)),
            modules.register_module_forward_hook(lambda module, args, output: self._leave_module(), always_call=True),
        ]
        push_interceptor(self._count_call)
        self._active = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._active = False
        pop_interceptor()
        for handle in self._handles:
            handle.remove()
        if self.display:
            print(self.get_table(self.depth))

    # Modules on the way.

    def _enter_module(self, module: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                self._names[id(inner)] = f"{root}.{name}" if name else root
        self._running.append(self._names[id(module)])

    def _leave_module(self) -> None:
        self._running.pop()

    # Operations.

    def _count_call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = function.__name__
        if name == "convolution":
            result = function(*args, **kwargs)
            flops, factors = _convolution_flops(args[0], args[1], result, bool(args[6])), args[:2]
            self._count("convolution", "convolution_backward", flops, factors, result)
            return result
        if name in _PRODUCTS:
            forward, backward, first = _PRODUCTS[name]
            result = function(*args, **kwargs)
            factors = args[first : first + 2]
            self._count(forward, backward, _product_flops(factors[0], result), factors, result)
            return result
        return NotImplemented

    def _count(self, forward: str, backward: str, flops: int, factors: tuple[Any, ...], result: Tensor) -> None:
        places = {"Global", *self._running}
        self._add(places, forward, flops)
        wanted = sum(factor._requires_grad for factor in factors)
        if wanted and result.grad_fn is not None:
            result.grad_fn.register_prehook(
                lambda grads: self._add(places, backward, wanted * flops) if self._active else None
            )

    def _add(self, places: set[str], operation: str, flops: int) -> None:
        for place in places:
            self.flop_counts[place][_operator(operation)] += flops

    # The table.

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, with each module's share."""
        depth = self.depth if depth is None else depth
        total = max(1, self.get_total_flops())
        names = sorted(name for name in self.flop_counts if name != "Global" and name.count(".") < depth)
        if not names:
            names = ["Global"]
        rows = [("Module", "FLOP", "% Total")]
        for name in names:
            counts = self.flop_counts[name]
            rows.append((name, _short(sum(counts.values())), f"{sum(counts.values()) / total:.2%}"))
            rows.extend((f"- {op}", _short(n), f"{n / total:.2%}") for op, n in counts.items())
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        widths[1], widths[2] = max(7, widths[1]), max(9, widths[2])
        rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2]))
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)


def _short(number: int) -> str:
    """A number with three decimals and the letter of its thousands."""
    index = min(4, max(0, (len(str(number)) - 1) // 3))
    return f"{number / 1000**index:.3f}{('', 'K', 'M', 'B', 'T')[index]}" if index else str(number)
