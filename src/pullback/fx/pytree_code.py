"""The text of a graph whose function takes and returns nested containers: it flattens and unflattens around the nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.fx.code_text import CodeGen
from pullback.utils._pytree import TreeSpec, tree_flatten, tree_unflatten


class PyTreeInfo(NamedTuple):
    """The names of a function's parameters, and the containers that they and the results are."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


class PyTreeCodeGen(CodeGen):
    """Writes a function that takes containers of what the graph takes, and returns a container of what it returns."""

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        self.pytree_info = pytree_info

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line with the function's own parameters, and one that takes them apart."""
        names = self.pytree_info.orig_args
        head = super().gen_fn_def(list(names), maybe_return_annotation)
        leaves = [variable.partition(" ")[0] for variable in free_vars if variable != "self"]
        if not leaves:
            return head
        given = ", ".join(names)
        return f"{head}\n    {', '.join(leaves)}, = fx_pytree.tree_flatten_spec([{given}], self._in_spec)"

    def generate_output(self, output_args: Any) -> str:
        """The statement that puts the results together and returns them."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"

    def process_inputs(self, *args: Any) -> Any:
        """The tensors in the containers given."""
        return tree_flatten(args)[0]

    def process_outputs(self, outputs: Any) -> Any:
        """The containers of the results."""
        spec = self.pytree_info.out_spec
        return outputs if spec is None else tree_unflatten(list(outputs), spec)
