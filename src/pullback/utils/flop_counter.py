"""Counting multiplications and additions of a block, module by module. PyTorch's `torch.utils.flop_counter`.

Counted are matrix products and convolutions, forward and backward; everything else counts nothing, as in PyTorch on a CPU.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from pullback.graph.node import next_sequence_nr
from pullback.modes.guards import guarded
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor
from pullback.utils._python_dispatch import TorchDispatchMode
from pullback.utils._pytree import tree_map

__all__ = ["FlopCounterMode", "register_flop_formula"]

Formula = Callable[..., int]

flop_registry: dict[Any, Formula] = {}
"""The formula of each operator that is counted."""
_formulas: dict[str, Formula] = {}
"""Those of this file, which wait for the operators to be loaded."""


def _counts(operators: str) -> Callable[[Formula], Formula]:
    def register(formula: Formula) -> Formula:
        _formulas.update(dict.fromkeys(operators.split(), formula))
        return formula

    return register


@_counts("mm bmm")
def mm_flop(a_shape: Sequence[int], b_shape: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Count a matrix product."""
    return 2 * math.prod(a_shape) * int(b_shape[-1])


@_counts("addmm baddbmm")
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Count a matrix product that is added to something."""
    return mm_flop(a_shape, b_shape)


bmm_flop = mm_flop
baddbmm_flop = addmm_flop


def conv_flop_count(
    x_shape: Sequence[int], w_shape: Sequence[int], out_shape: Sequence[int], transposed: bool = False
) -> int:
    """Count a convolution."""
    windows = (x_shape if transposed else out_shape)[2:]
    return 2 * math.prod(windows) * int(x_shape[0]) * math.prod(w_shape)


@_counts("convolution")
def conv_flop(
    x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
    *args: Any, out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """Count a convolution by its arguments."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@_counts("convolution_backward")
def conv_backward_flop(
    grad_out_shape: Any, x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any,
    transposed: bool, _output_padding: Any, _groups: Any, output_mask: Any, out_shape: Any = None,
) -> int:  # fmt: skip
    """Count the gradients of a convolution, which are convolutions themselves."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        image, gradient, weight = [[s[1], s[0], *s[2:]] for s in (x_shape, grad_out_shape, w_shape)]
        if transposed:
            count += conv_flop_count(gradient, image, weight)
        else:
            count += conv_flop_count(image, gradient, weight)
    return count


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Decorate a formula that counts calls of one or several operators from shapes, or from values if `get_raw`.

    >>> import pullback
    >>> @register_flop_formula(pullback.ops.aten.dot)
    ... def count_dot(a_shape, b_shape, *, out_shape=None, **kwargs):
    ...     return 2 * a_shape[0]
    """

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


def _of_shapes(formula: Formula) -> Formula:
    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(_shape_of, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return count


def _shape_of(value: Any) -> Any:
    return tuple(value._array.shape) if isinstance(value, Tensor) else value


class FlopCounterMode(TorchDispatchMode):
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
        super().__init__()
        self.depth = 999999 if depth is None else depth
        self.display = display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._custom = {
            k: v if getattr(v, "_get_raw", False) else _of_shapes(v) for k, v in (custom_mapping or {}).items()
        }
        self._names: dict[int, str] = {}
        self._running: list[str] = []
        self._begins: list[int] = []
        self._modules_since: list[tuple[str, ...]] = []

    def get_total_flops(self) -> int:
        """How many there were in all."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """How many of which operation, in all (`Global`) and inside of each module."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.flop_counts["Global"]  # there even if nothing is counted
        _register_formulas()
        from pullback.nn.modules.module_hooks import watch_modules  # lazy: modules are above this layer

        outer = self._outer
        try:
            watch_modules(self._enter_module, self._leave_module)
            super().__enter__()
        except BaseException:
            self._forget_modules()
            if self._outer is not outer:  # interrupted behind the push: see Note [Guards]
                super().__exit__()
            raise
        return self

    @guarded
    def __exit__(self, *exception: object) -> None:
        if self._outer:  # not left yet
            super().__exit__(*exception)
        self._forget_modules()
        if self.display:
            print(self.get_table(self.depth))

    @guarded
    def _forget_modules(self) -> None:
        from pullback.nn.modules.module_hooks import unwatch_modules  # lazy: modules are above this layer

        unwatch_modules(self._enter_module, self._leave_module)

    # Modules on the way.

    def _enter_module(self, module: Any, args: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                self._names[id(inner)] = f"{root}.{name}" if name else root
        self._running.append(self._names[id(module)])
        self._note_place()

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        self._running.pop()
        self._note_place()

    def _note_place(self) -> None:
        """Remember that nodes from this number on belong to the modules that run now."""
        self._begins.append(next_sequence_nr())
        self._modules_since.append(tuple(self._running))

    def _places(self) -> set[str]:
        """The modules that an operation belongs to: in backward, those in which its node was recorded."""
        node = switches.current_node
        if node is None:
            return {"Global", *self._running}
        index = bisect.bisect_right(self._begins, node.sequence_nr) - 1
        return {"Global", *(self._modules_since[index] if index >= 0 else ())}

    # Operations.

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        packet = func._packet
        formula = self._custom.get(packet) or flop_registry.get(packet)
        if formula is not None:
            flops = formula(*args, **kwargs, out_val=result)
            for place in self._places():
                self.flop_counts[place][packet] += flops
        return result

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


def _register_formulas() -> None:
    """Give the operators that PyTorch counts their formulas, once."""
    from pullback.dispatch.overloads import aten  # lazy: operators are above this layer

    for name, formula in _formulas.items():
        flop_registry.setdefault(aten(name), _of_shapes(formula))


def _short(number: int) -> str:
    """A number with three decimals and the letter of its thousands."""
    index = min(4, max(0, (len(str(number)) - 1) // 3))
    return f"{number / 1000**index:.3f}{('', 'K', 'M', 'B', 'T')[index]}" if index else str(number)
