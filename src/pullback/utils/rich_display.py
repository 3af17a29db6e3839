"""What notebooks show of tensors, modules and nodes: HTML that needs no style of its own and suits dark and light.

The text that Python prints stays; below it stand facts that one would look up next.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from pullback.backend.array_summary import ArraySummary, summarise
from pullback.modes.switches import switches
from pullback.report import bytes_text
from pullback.utils.graph_picture import Detail, graph_tree, read_graph, svg_text

__all__ = ["module_html", "node_html", "tensor_html"]

FAINT = "opacity:.7;font-size:85%"
MOST_ELEMENTS = 2**24
"""Of a larger tensor no statistics are shown: a display must not take seconds."""
MOST_BOXES = 120


def tensor_html(tensor: Any) -> str:
    """A tensor as it prints, with its shape, dtype and memory, and the distribution of its elements.

    >>> import pullback
    >>> "shape (2, 2)" in tensor_html(pullback.eye(2))
    True
    """
    facts = [f"shape {tuple(tensor.shape)}", str(tensor.dtype).rpartition(".")[2], str(tensor.device)]
    picture = ""
    if type(tensor).__name__ in ("Tensor", "Parameter") and not switches.transforms and tensor.device.type != "meta":
        facts.append(bytes_text(tensor.numel() * tensor.element_size()))
        if 1 < tensor.numel() <= MOST_ELEMENTS:
            summary = summarise(tensor.detach()._array)
            facts += _statistics(summary)
            picture = _histogram(summary["histogram"])
    if tensor.requires_grad:
        facts.append("leaf that requires grad" if tensor.is_leaf else f"made by {tensor.grad_fn.name()}")
    below = f"<div style='{FAINT}'>{html.escape(' · '.join(facts))} {picture}</div>"
    return f"<div><pre>{html.escape(repr(tensor))}</pre>{below}</div>"


def _statistics(summary: ArraySummary) -> list[str]:
    facts = []
    if summary["mean"] is not None:
        facts = [f"mean {summary['mean']:.4g}", f"from {summary['minimum']:.4g} to {summary['maximum']:.4g}"]
    if summary["nans"] or summary["infinities"]:
        facts.append(f"{summary['nans']} NaN, {summary['infinities']} infinite")
    return facts


def _histogram(counts: list[int]) -> str:
    """Bars as an SVG picture in the colour of the text."""
    high = max(counts, default=0)
    bars = "".join(
        f'<rect x="{4 * place}" y="{18 - 18 * count / high:.1f}" width="3.2" height="{18 * count / high:.1f}"/>'
        for place, count in enumerate(counts)
        if count
    )
    size = f'width="{4 * len(counts)}" height="18"'
    return f'<svg {size} style="vertical-align:middle;fill:currentColor" role="img">{bars}</svg>' if bars else ""


def module_html(module: Any) -> str:
    """A module as a tree that opens and closes, with the number and memory of parameters at each.

    >>> import pullback
    >>> module_html(pullback.nn.Linear(2, 3)).count("<summary>")
    0
    """
    total = _counted(module.parameters())
    trained = sum(p.numel() for p in module.parameters() if p.requires_grad)
    frozen = f", {trained:,} of them trained" if trained != sum(p.numel() for p in module.parameters()) else ""
    return (
        f"<div style='font-family:monospace'>{_branch('', module, 0)}<div style='{FAINT}'>{total}{frozen}</div></div>"
    )


def _branch(name: str, module: Any, depth: int) -> str:
    prefix = f"({html.escape(name)}): " if name else ""
    children = list(module._modules.items())
    if not children:
        return f"<div>{prefix}{html.escape(repr(module))} <span style='{FAINT}'>{_counted(module.parameters())}</span></div>"
    extra = html.escape(module.extra_repr())
    head = f"{prefix}{html.escape(module._get_name())}({extra}) <span style='{FAINT}'>{_counted(module.parameters())}</span>"
    inside = "".join(_branch(child, part, depth + 1) for child, part in children if part is not None)
    opened = " open" if depth < 2 else ""
    return f"<details{opened}><summary>{head}</summary><div style='margin-left:1.6em'>{inside}</div></details>"


def _counted(parameters: Iterable[Any]) -> str:
    found = list(parameters)
    if not found:
        return ""
    count, size = sum(p.numel() for p in found), sum(p.numel() * p.element_size() for p in found)
    return f"{count:,} parameter{'s' if count != 1 else ''}, {bytes_text(size)}"


def node_html(node: Any) -> str:
    """The graph behind a node as a picture; a large one as the beginning of its tree.

    >>> import pullback
    >>> node_html(pullback.ones(2, requires_grad=True).exp().grad_fn).startswith("<svg")
    True
    """
    metadata = node._input_metadata
    output = SimpleNamespace(shape=metadata[0].shape if metadata else (), grad_fn=node)
    picture = read_graph(output, detail=Detail(source_lines=True))
    if len(picture.boxes) <= MOST_BOXES:
        return svg_text(picture)
    lines = graph_tree(output, width=110).splitlines()
    rest = f"\n... {len(lines) - 60} more lines; graph_page() shows the whole" if len(lines) > 60 else ""
    return f"<pre>{html.escape(chr(10).join(lines[:60]) + rest)}</pre>"
