"""`repr` of a tensor, to PyTorch's character: rows, brackets, summarisation, and the suffixes that name its state.

Works on a raw array plus what the caller knows of the tensor, so that it sees neither Tensor nor Node. How a single
number is written is `number_format.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import inf
from textwrap import indent as indent_text
from typing import Any

from pullback.backend.naming import display_namespace
from pullback.kernels import printing
from pullback.tensor.number_format import write_elements
from pullback.typing import Array


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """What `set_printoptions` sets; replaced as a whole, so that a thread never prints with half of a change."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=inf),
}

_options = PROFILES["default"]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, from now on and in all threads.

    A `profile` ("default", "short" or "full"; any other name changes nothing) is taken first and the other arguments on
    top of it. What is not given stays as it is, except `sci_mode`, which every call sets: None lets the values of each
    tensor decide.

    >>> set_printoptions(precision=2)
    >>> get_printoptions()["precision"]
    2
    >>> set_printoptions(profile="default")
    """
    global _options
    changes = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in changes.items():
        if name in ("precision", "edgeitems") and value is not None and value < 0:
            raise ValueError(f"set_printoptions: {name} must not be negative, but got {value}.")
    chosen: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    _options = replace(PROFILES.get(profile or "", _options), sci_mode=sci_mode, **chosen)


def get_printoptions() -> dict[str, Any]:
    """Return the options as a dictionary that `set_printoptions(**options)` takes back."""
    return asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options (as `set_printoptions`) for the duration of a `with` block.

    >>> with printoptions(edgeitems=1):
    ...     get_printoptions()["edgeitems"]
    1
    """
    global _options
    before = _options
    try:
        set_printoptions(**options)
        yield
    finally:
        _options = before


def format_tensor(
    array: Array,
    *,
    dtype_name: str,
    default_dtype_name: str = "float32",
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    invalid_grad_fn: bool = False,
    tangent: str | None = None,
    device: str = "cpu",
    class_name: str = "tensor",
    namespace: str | None = None,
    contents: str | None = None,
) -> str:
    """Write a tensor as PyTorch's `repr` does.

    `grad_fn_name` is the node's name; `tangent` the tangent as `format(tangent, "")` gives it (0-dim: a bare number);
    `class_name` the subclass's name where there is one. `contents` replaces the bracketed values, `namespace` the
    displayed one. On the "meta" device the values are not read.
    """
    prefix = class_name + "("
    is_meta = device == "meta"
    if contents is None:
        contents = "..." if is_meta else format_values(array, len(prefix))
    suffixes = []
    if device != "cpu":
        suffixes.append(f"device='{device}'")
    if _shows_size(array, is_meta):
        suffixes.append(f"size={tuple(array.shape)}")
    if _shows_dtype(dtype_name, default_dtype_name, values_tell=not is_meta and array.size > 0):
        suffixes.append(f"dtype={namespace or display_namespace()}.{dtype_name}")
    if invalid_grad_fn:
        suffixes.append("grad_fn=<Invalid>")
    elif grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _append_suffixes(prefix + contents, suffixes, len(prefix)) + ")"


def format_sparse(
    parts: Sequence[tuple[str, Array]],
    *,
    facts: Sequence[str],
    layout_name: str,
    dtype_name: str,
    default_dtype_name: str,
    history: str | None,
) -> str:
    """Write a sparse tensor: the named arrays it is stored as, its facts (`size=...`, `nnz=...`), layout and history."""
    prefix = "tensor("
    lines = []
    for name, array in parts:
        start = f"{name}=tensor("
        size = f", size={tuple(array.shape)}" if array.size == 0 else ""
        lines.append(start + format_values(array, len(prefix) + len(start)) + size + ")")
    suffixes = list(facts)
    if _shows_dtype(dtype_name, default_dtype_name, values_tell=parts[-1][1].size > 0):
        suffixes.append(f"dtype={display_namespace()}.{dtype_name}")
    suffixes += [f"layout={display_namespace()}.{layout_name}", *([history] if history else [])]
    gap = ",\n" + " " * len(prefix)
    text = prefix + gap.join(lines)
    return _append_suffixes(text, suffixes, len(prefix), on_own_line=layout_name == "sparse_coo") + ")"


def format_quantized(array: Array, facts: Sequence[str]) -> str:
    """Write a quantized tensor: the numbers it stands for, and its facts (`size=...`, `scale=...`)."""
    prefix = "tensor("
    return _append_suffixes(prefix + format_values(array, len(prefix)), facts, len(prefix)) + ")"


def _shows_size(array: Array, is_meta: bool) -> bool:
    if is_meta:
        return True
    return array.ndim != 1 if array.size == 0 else _options.edgeitems == 0


def _shows_dtype(dtype_name: str, default_dtype_name: str, values_tell: bool) -> bool:
    """Whether the dtype must be named: not the default one, and not to be told from how the values are written."""
    default_complex_name = "complex128" if default_dtype_name == "float64" else "complex64"
    told_by_values = ("int64", "bool", default_complex_name) if values_tell else ()
    return dtype_name not in (default_dtype_name, *told_by_values)


def _append_suffixes(text: str, suffixes: Sequence[str], indent: int, *, on_own_line: bool = False) -> str:
    """Append each suffix behind a comma, on a new line where it would pass `linewidth`, the first perhaps anyway."""
    # The brackets' and comma's share of the first line is counted as PyTorch counts it: two more than its characters.
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if on_own_line or column + len(suffix) + 2 > _options.linewidth:
            on_own_line = False
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text


def format_values(array: Array, indent: int) -> str:
    """Write the values in brackets, the second and later lines indented by `indent`, summarised if there are many."""
    options = _options
    if array.size == 0:
        return "[]"
    is_summarized = array.size > options.threshold
    if is_summarized and options.edgeitems == 0 and array.ndim > 0:
        return "[...]"
    shown = printing.corners(array, options.edgeitems) if is_summarized else array
    elements = write_elements(printing.widen(shown), options.precision, options.sci_mode)
    layout = _Layout(iter(elements.texts), elements.width + 2, array.shape, shown.shape, options)
    return layout.write(0, indent)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Places written elements, taken one by one, in nested brackets."""

    texts: Iterator[str]
    column_width: int
    shape: tuple[int, ...]
    shown_shape: tuple[int, ...]
    options: PrintOptions

    def write(self, dim: int, indent: int) -> str:
        """Write what lies below dimension `dim`, whose opening bracket stands in column `indent`."""
        dims_below = len(self.shape) - dim
        if dims_below == 0:
            return next(self.texts)
        if dims_below == 1:
            return self._write_row(dim, indent)
        parts = [self.write(dim + 1, indent + 1) for _ in range(self.shown_shape[dim])]
        if self._is_cut(dim):
            parts.insert(self.options.edgeitems, "...")
        return "[" + ("," + "\n" * (dims_below - 1) + " " * (indent + 1)).join(parts) + "]"

    def _write_row(self, dim: int, indent: int) -> str:
        items = [next(self.texts) for _ in range(self.shown_shape[dim])]
        if self._is_cut(dim):
            items.insert(self.options.edgeitems, " ...")
        per_line = max(1, (self.options.linewidth - indent) // self.column_width)
        lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    def _is_cut(self, dim: int) -> bool:
        return self.shown_shape[dim] < self.shape[dim]


def format_parameter(text: str, is_subclass: bool = False) -> str:
    """Write a Parameter around its written tensor; a subclass of Parameter has its own name inside."""
    return "Parameter containing:\n" + (f"Parameter({text})" if is_subclass else text)


def format_wrapper(class_name: str, value: str, level: int, batch_dim: int | None = None) -> str:
    """Write a function transform's wrapper (GradTrackingTensor, BatchedTensor) around the written value inside it."""
    where = f"lvl={level}" if batch_dim is None else f"lvl={level}, bdim={batch_dim}"
    return f"{class_name}({where}, value=\n{indent_text(value, '    ')}\n)"


def format_spec(array: Array, spec: str, text: str, class_name: str = "Tensor") -> str:
    """Answer `format(tensor, spec)`.

    A plain 0-dim Tensor formats as its number. Others (more dimensions, or a subclass, whose name is `class_name`)
    format as `text`, their `str`, and refuse any specification.
    """
    if array.ndim == 0 and class_name == "Tensor":
        return format(printing.widen(array).item(), spec)
    if spec:
        raise TypeError(
            f"unsupported format string passed to {class_name}.__format__: {spec!r} formats a single number, but this "
            f"{class_name} has shape {tuple(array.shape)}. Format a 0-dim Tensor, tensor.item() or tensor.tolist()."
        )
    return text
