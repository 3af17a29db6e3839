"""What formulas mean on Tensors: their files, with operators between a tensor and a number as PyTorch's rules record them.

An operator of a formula is the function of formulas/number_arithmetic.py, as it is in a rule's own lines. Which operands
are numbers is known only when it runs. `array_formulas` gives the same files their meaning on arrays.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from pullback.recording.rendered import reading
from pullback.rules.render import ARITHMETIC, left_to_f

_loaded: dict[str, ModuleType] = {}


class _Operators(ast.NodeTransformer):
    """Makes operators calls of `F.plus` and its like."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = ARITHMETIC.get(type(node.op))
        return node if name is None else ast.copy_location(ast.Call(left_to_f(name), [node.left, node.right], []), node)


def load_formulas(name: str) -> ModuleType:
    """The formulas of one file of formulas/, on Tensors."""
    if name == "number_arithmetic":  # what operators become
        return import_module(f"pullback.formulas.{name}")
    with reading:
        return _loaded.get(name) or _load(name)


def _load(name: str) -> ModuleType:
    file = Path(__file__).parent.parent / "formulas" / f"{name}.py"
    spec = spec_from_file_location(f"{__name__}.{name}", file)
    assert spec is not None
    module = module_from_spec(spec)
    tree = ast.fix_missing_locations(_Operators().visit(ast.parse(file.read_text(encoding="utf-8"))))
    sys.modules[spec.name] = module
    exec(compile(tree, str(file), "exec", dont_inherit=True), vars(module))
    _loaded[name] = module
    return module
