"""Writes docs/compatibility.md: every recorded row of PyTorch's behaviour, and whether pullback does the same.

Run: python -m tools.compatibility [--check]. The rows are the programs of tests/semantics/rows, compared with what PyTorch
reported when they were recorded; the table is made of these comparisons and nothing else. Below it stand the lists of kept
differences of the other comparisons, as the tests have them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "compatibility.md"
_INTRODUCTION = """# Compatibility with PyTorch's autograd, row by row

Each row is a small program in `tests/semantics/rows/`. PyTorch 2.13 ran it once and its reports were recorded; pullback
runs it in every test run. *same* means that every value, name, warning and error phrase it reports is PyTorch's. This page
is written by `python -m tools.compatibility` from these comparisons.
"""


_ON_PURPOSE = """
## Where pullback differs on purpose

These give another value than PyTorch 2.13, because that of pullback is the right one or the more useful.

| program | PyTorch | pullback | why |
|---|---|---|---|
| `F.gelu(torch.tensor(inf))` | nan | inf | the limit of x ndtr(x) |
| gradient of `torch.polar(x, angle).abs()` at x = -2 | 1 | -1 | the slope of the magnitude of a negative number |
| `torch.tensor([1 + 2j]) + inf` | inf+nanj | inf+2j | a real number has no imaginary part to add |
| gradient of `torch.remainder(7, x)` | not implemented | minus the rounded quotient | as of a tensor in place of 7 |
| second derivative of `F.hardsigmoid` | not implemented | 0 | as of the other kinked activations |
| third derivative of `F.layer_norm` and `F.batch_norm` | statistics count as constants | exact | differences agree with it |
| gradient of `as_strided_scatter` for its input | of overwritten elements | of the others | only these are read |
| `F.layer_norm` where the variance overflows | nan or 0 by the length of a row | nan | zeros would hide it |
| `vmap` of `F.gaussian_nll_loss`, `var` batched | refused: a check reads it | a loss each | batches need no branch |
| tangent of `torch.pow(b, z)` by a real `b`, `z` complex | without its imaginary part | whole | differences agree with it |
| tangent of `d.mul_(d)` for the dual 1.5, 2 | 7.5 | 6 | the product rule; PyTorch reads what it has just written |
| gradient of `torch.tensor([inf, 2.0]).prod()` | nan, inf | 2, inf | the product of the others, not a quotient |
| gradient of `torch.tensor([nan, 1.0]).norm(inf)` | 0, 0 | nan, nan | zeros would hide it |
| `is_anomaly_enabled()` in another thread | of the process | of the thread | as every other mode |
| warnings about PyTorch itself (sparse CSR in beta, slow paths) | given | not given | they do not hold here |
| second derivative of `torch._weight_norm` | `gradgradcheck` fails | exact | differences agree with it |
"""


_KEPT = """
## Differences that are kept, as comparisons list them

Every comparison with PyTorch has a list of what differs and stays so, with the reason; a test fails when a difference on
the list has gone, or when there is one that is not on it. These are the lists.

**Calls.** Python itself refuses too few, too many and misnamed arguments, in its own words and before anything of pullback
runs: to look at them in our own words, every call would have to pay. (PyTorch's key phrases, "missing 1 required positional
argument", "takes 2 positional arguments but 3 were given", "got an unexpected keyword argument", are Python's but for the
quotes.) A Tensor subclass and a `TorchFunctionMode` are told the call itself. A mode also sees what layers, initializers,
optimizers and distributions call, as in PyTorch, where they are Python too; which calls these are is theirs.

**Graphs.** Some functions of PyTorch write the parts of their result into new memory, so that a chain of `CopySlices` is
recorded (`pad_sequence`, `diff`, circular padding). Here they are operations without a write, which take a third of the time
to record and work under `vmap`. `unpad_sequence` leaves its argument as it is; PyTorch transposes it in place.

**Graphs of gradients.** What `create_graph=True` records has PyTorch's nodes for more than 200 common expressions, losses
and layers (`tests/parity/test_gradient_graphs.py`), and for about 2,700 of 3,413 samples of all operations
(`python -m tests.conformance.graphs --second`). Others are kept: derivatives of factorizations and of what uses them (`svd`,
`qr`, `lu`, `eigh`, `det`, `pinv`, `solve` of a vector) have terms of their own; gradients that PyTorch writes slice by slice
into new memory (`CopySlices` in `fft.rfft`, in `cumprod` with zeros, in `as_strided`) are expressions; `group_norm` and
`logcumsumexp` have other formulas, the latter since PyTorch's loses all digits; where PyTorch's second derivative is not
implemented (fused attention, `multi_margin_loss`, `hardsigmoid`, weights of `embedding_bag`), here it is. Where one tensor
is both factors of a fused product, the two gradients are added in the other order. After the graph was freed, a fused
layer's gradient shows the nodes of our rule.
"""

_LEFT_OUT_BY_FUZZ = """
What the generator of random programs leaves out: modules and optimizers, `torch.func` and forward mode, custom Functions
with several results or `setup_context`, sparse, quantized and nested tensors, several threads, tensors of more than twelve
elements, reading memory that the same statement writes to, `out=` into a tensor that shares its memory, hooks on tensors
made earlier, and what a statement that raised leaves behind. Versions, views and their bases, histories, strides, offsets,
dtypes and the gradient with all of these count.
"""


def kept_differences() -> str:
    """The lists of kept differences of all comparisons, by reason."""
    from tests.conformance.exceptions import INEXACT_IN_PYTORCH, NOT_COMPARED, NOT_SHOWN, VMAP_LIMITS
    from tests.dispatch import differing as dispatched
    from tests.errors import wrong_calls
    from tests.fuzz import CLEAN_SEEDS
    from tests.fuzz.accepted import ACCEPTED
    from tests.overriding import differing as told

    shown = {f"{node}: {', '.join(names.split())}": reason for node, (names, reason) in NOT_SHOWN.items()}
    compared = {f"{name}, {check}": reason for (name, check), reason in NOT_COMPARED.items()}
    parts = [
        _KEPT,
        _by_reason("What `__torch_function__` of a class is told (`tests/overriding`)", told.DIFFERING),
        _by_reason(
            "What a mode is told beside that (`tests/overriding`)", _more(told.DIFFERING_IN_MODES, told.DIFFERING)
        ),
        _by_reason("What wrong calls raise (`tests/errors`)", wrong_calls.DIFFERING),
        _by_reason("What dispatch modes see (`tests/dispatch`)", dispatched.DIFFERING),
        _by_reason(
            "Values and derivatives that are not compared (`tests/conformance`)", {**compared, **INEXACT_IN_PYTORCH}
        ),
        _by_reason(
            "What PyTorch refuses under `vmap`, by its words, and works here (`tests/conformance`)", VMAP_LIMITS
        ),
        _by_reason("What nodes do not show as `_saved_...` (`tests/conformance`)", shown),
        "### Random programs (`tests/fuzz`)\n",
        f"`make fuzz SEED={CLEAN_SEEDS.start} PROGRAMS={len(CLEAN_SEEDS)}` shows no difference but these:\n",
        "\n".join(dict.fromkeys([f"- {accepted.reason}" for accepted in ACCEPTED])),
        _LEFT_OUT_BY_FUZZ,
    ]
    return "\n".join(parts)


def _more(reasons: dict[str, str], known: dict[str, str]) -> dict[str, str]:
    """The reasons for what another list does not have."""
    return {case: reason for case, reason in reasons.items() if case not in known}


def _by_reason(title: str, reasons: dict[str, str]) -> str:
    """A table with a row per reason: what it holds for, and the reason."""
    cases: dict[str, list[str]] = {}
    for case, reason in reasons.items():
        cases.setdefault(reason.rstrip("."), []).append("`" + case.replace("|", "\\|") + "`")
    rows = [f"| {', '.join(found)} | {reason} |" for reason, found in cases.items()]
    return "\n".join([f"### {title}\n", "| what | why |", "|---|---|", *rows, ""])


def table() -> str:
    """The page."""
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    import pullback
    from tests.semantics.record import EXPECTED
    from tests.semantics.reporting import all_rows, run_row

    expected = json.loads(EXPECTED.read_text())
    sections: dict[str, list[str]] = {}
    same = 0
    rows = all_rows()
    for name, row in sorted(rows.items()):
        try:
            state = "same" if run_row(row, pullback) == expected.get(name) else "**differs**"
        except Exception as error:
            state = f"**fails** ({type(error).__name__})"
        same += state == "same"
        number, _, title = name.removeprefix("row_").partition("_")
        heading = (sys.modules[row.__module__].__doc__ or "").strip().rstrip(".")
        sections.setdefault(heading, []).append(f"| {int(number)} | {title.replace('_', ' ')} | {state} |")
    lines = [_INTRODUCTION, f"{same} of {len(rows)} rows are the same.\n"]
    for heading, entries in sorted(sections.items(), key=lambda item: int(item[0].split(":")[0].split()[-1])):
        lines += [f"## {heading}\n", "| row | behaviour | state |", "|--:|---|---|", *entries, ""]
    return "\n".join(lines) + _ON_PURPOSE + kept_differences()


def main(arguments: list[str]) -> int:
    """Write the page, or with --check say whether it is up to date."""
    text = table()
    if "--check" in arguments:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/compatibility.md is not up to date: run python -m tools.compatibility", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
