"""Makes random programs: statements are chosen by what the tensors look like that PyTorch has made so far.

Left out, since there is nothing to compare: writes to memory that the same statement reads (what is read is not defined),
hooks on tensors that were modified since (they may end PyTorch's process), uninitialised memory, `resize_` to more
elements, the memory behind a tensor without elements (which lies nowhere here), and `data` set in inference mode or to an
inference tensor (PyTorch's tensor is then half an inference tensor). Comparison leaves out the steps of dimensions with one
element and of empty tensors, which are never taken, and what a refused statement left behind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from tests.fuzz.execution import names_for, run_statement

Maker = Callable[["ProgramMaker"], str]
SHAPES: tuple[list[int], ...] = ([], [1], [2], [3], [4], [2, 2], [2, 3], [1, 3], [3, 1], [2, 1, 2], [0, 2], [2, 2, 3])
INEXACT = re.compile(
    r"exp|log|sin|cos|tan|sigmoid|softmax|gelu|norm|var|std|mean|sqrt|erf|pow|polar|lerp|/|div|reciprocal|autograd|backward|\*\*"
)
"""Statements whose results may differ by a rounding error: their bytes are not looked at, neither before nor after."""
MODES = ("torch.no_grad()", "torch.inference_mode()", "torch.enable_grad()")


class ProgramMaker:
    """One program in the making, with the tensors that it has so far."""

    def __init__(self, library: Any, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = dict(names_for(library))
        self.library = library
        self.statements: list[str] = []

    def make(self) -> list[str]:
        """A whole program. Of the statements that PyTorch refuses a few are kept, each as the last one."""
        for _ in range(self.random.randint(1, 3)):
            self.append(self.creation())
        for _ in range(self.random.randint(3, 12)):
            if not self.append(self.statement()):
                break
        return self.statements

    def append(self, statement: str) -> bool:
        """Run a statement and add it to the program; whether the program goes on."""
        raised = run_statement(statement, self.names).raised
        if not raised or self.random.random() < 0.15:
            self.statements.append(statement)
            return not raised
        return True

    # What statements are made of.

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.random.choice(choices)

    def tensors(self) -> list[str]:
        """The names of the tensors, later ones more often."""
        return [name for name, value in self.names.items() if isinstance(value, self.library.Tensor)]

    def tensor(self) -> str:
        """The name of a tensor: often one of the last."""
        names = self.tensors()
        return self.random.choice(names[-3:] if self.random.random() < 0.6 else names)

    def new(self) -> str:
        """A name for a new tensor."""
        return "abcdefghijklmnopqrstuvwxyz"[min(len(self.tensors()), 25)]

    def shape(self, name: str) -> list[int]:
        """The sizes of a tensor."""
        return list(self.names[name].shape)

    def dim(self, name: str) -> int:
        """A dimension of a tensor, now and then one that it has not."""
        ndim = max(len(self.shape(name)), 1)
        return self.random.randint(-ndim, ndim - 1) if self.random.random() < 0.97 else ndim

    def number(self) -> str:
        """A number."""
        return self.pick("2", "0.5", "-1.0", "3.0", "0", "1")

    def fitting(self, name: str) -> str:
        """A tensor that probably broadcasts with another."""
        shape = self.shape(name)
        fits = [n for n in self.tensors() if _broadcasts(self.shape(n), shape)]
        return self.random.choice(fits) if fits and self.random.random() < 0.9 else self.tensor()

    def operand(self, name: str) -> str:
        """A tensor or a number."""
        return self.number() if self.random.random() < 0.3 else self.fitting(name)

    def apart(self, name: str, written: str) -> str:
        """The name of what is read, as a copy if it lies in the memory that is written: what is read then is not defined."""
        if name not in self.names or self.place(name) != self.place(written):
            return name
        return f"{name}.clone()"

    def place(self, name: str) -> int:
        """Where the memory of a tensor begins; PyTorch's tensors of zeros alone have none."""
        try:
            return int(self.names[name].untyped_storage().data_ptr())
        except RuntimeError:
            return id(self.names[name])

    def alone(self) -> list[str]:
        """The tensors whose memory no other tensor shares: one that is too small for out= is given other memory."""
        places = {name: self.place(name) for name in self.tensors()}
        return [name for name, place in places.items() if list(places.values()).count(place) == 1]

    def index(self, name: str) -> str:
        """An index expression."""
        parts, shape = [], self.shape(name)
        for size in shape[: self.random.randint(1, 2)]:
            position = self.random.randint(-size, max(size - 1, -size)) if size else 0
            parts.append(self.pick(str(position), f"{self.pick('', '0', '1')}:", ":1", "::2", ":", "None"))
        parts += [self.pick("...", "None")] if not parts or self.random.random() < 0.15 else []
        if self.random.random() < 0.15 and shape and shape[0]:
            chosen = [self.random.randrange(shape[0]) for _ in range(self.random.randint(1, 3))]
            parts[0] = self.pick(f"torch.tensor({chosen})", str(chosen), f"{name} > 0")
            parts = parts[:1] if parts[0].endswith("> 0") else parts
        return ", ".join(parts)

    # Statements.

    def creation(self) -> str:
        """A new tensor with small values."""
        shape = self.random.choice(SHAPES)
        count = 1
        for size in shape:
            count *= size
        dtype = self.random.choices(
            ("float32", "float64", "int64", "complex64", "bool", "float16", "bfloat16"), (12, 3, 2, 1, 1, 0.5, 0.5)
        )[0]
        values = [self.random.choice((0.5, 1.0, 1.5, 2.0, 3.0, -1.0, -0.5)) for _ in range(count)]
        made = f"torch.tensor({values}, dtype=torch.{dtype}).reshape({shape})"
        grad = ".requires_grad_()" if dtype not in ("int64", "bool") and self.random.random() < 0.6 else ""
        return f"{self.new()} = {made}{grad}"

    def statement(self) -> str:
        """A random statement, now and then in a block that switches recording."""
        makers, weights = zip(*MAKERS, strict=True)
        text: str = self.random.choices(makers, weights)[0](self)
        while INEXACT.search(text) and any(".view(torch." in statement for statement in self.statements):
            text = self.random.choices(makers, weights)[0](self)
        chance = self.random.random()
        if chance < 0.12 and "detach_" not in text and ".data = " not in text:
            return f"with {MODES[0] if chance < 0.08 else MODES[1] if chance < 0.11 else MODES[2]}: {text}"
        return text

    def lies_somewhere(self, name: str) -> bool:
        """Whether a tensor has elements."""
        return bool(self.names[name].numel())


def _broadcasts(shape: list[int], target: list[int]) -> bool:
    return len(shape) <= len(target) and all(
        s in (1, t) for s, t in zip(reversed(shape), reversed(target), strict=False)
    )


def _view(make: ProgramMaker) -> str:
    x = make.tensor()
    shape = make.shape(x)
    count = make.names[x].numel()
    strided = f"as_strided({make.pick([2], [1], [1, 2], [])}, {make.pick([1], [2], [0], [1, 1])})"
    call = make.pick(
        f"view({make.pick([count], [-1], [1, count], [count, 1])})", "view_as({0})", "t()", "detach()", "squeeze()",
        f"transpose({make.dim(x)}, {make.dim(x)})", f"permute({_permutation(make, len(shape))})",
        f"select({make.dim(x)}, {make.pick(0, -1, 1)})", f"narrow({make.dim(x)}, 0, {make.pick(1, 2)})",
        f"unsqueeze({make.dim(x)})", f"squeeze({make.dim(x)})", f"expand({[make.pick(1, 2), *shape]})",
        f"unbind({make.dim(x)})[{make.pick(0, -1)}]", f"split({make.pick(1, 2)}, {make.dim(x)})[{make.pick(0, -1)}]",
        f"chunk(2, {make.dim(x)})[0]", f"tensor_split(2, {make.dim(x)})[-1]", "diagonal()",
        f"unfold({make.dim(x)}, 1, 1)", "flatten()", "reshape(-1)", "contiguous()", "mT", "T", "movedim(0, -1)",
        strided if count else "t()", "real", "imag", "conj()",
        "swapaxes(0, -1)", "data", "alias", "ravel()", "expand_as({0})", "unflatten(0, [-1, 1])",
        "H", "adjoint()", "resolve_conj()", "view_as({0}).data", "detach().view(-1)", "squeeze().unsqueeze(0)",
    )  # fmt: skip
    if call == "alias":
        return f"{make.new()} = torch.ops.aten.alias({x})"
    return f"{make.new()} = {x}.{call.format(x)}"


def _permutation(make: ProgramMaker, count: int) -> list[int]:
    dims = list(range(count))
    make.random.shuffle(dims)
    return dims


def _indexed(make: ProgramMaker) -> str:
    x = make.tensor()
    return f"{make.new()} = {x}[{make.index(x)}]"


def _assignment(make: ProgramMaker) -> str:
    x = make.tensor()
    return f"{x}[{make.index(x)}] = {make.apart(make.operand(x), x)}"


def _in_place(make: ProgramMaker) -> str:
    x = make.tensor()
    other = make.apart(make.operand(x), x)

    def apart() -> str:
        return make.apart(make.fitting(x), x)

    call = make.pick(
        f"add_({other})", f"mul_({other})", f"sub_({other})", f"div_({other})", f"pow_({make.pick(2, 3)})", "neg_()",
        "exp_()", "sin_()", "cos_()", "tanh_()", "sigmoid_()", "relu_()", "abs_()", "square_()", "zero_()",
        f"fill_({make.number()})", f"fill_({other})", f"copy_({other})", "clamp_(-1, 1)", "clamp_(min=0)",
        f"addcmul_({apart()}, {apart()})", f"lerp_({apart()}, 0.5)",
        f"masked_fill_({x} > 0, {make.number()})", f"masked_fill_({x}.real > 0, {make.number()})",
        f"index_fill_({make.dim(x)}, torch.tensor([0]), {make.number()})", f"cumsum_({make.dim(x)})", "triu_()",
        f"index_add_(0, torch.tensor([0]), {apart()}[:1])", f"index_copy_(0, torch.tensor([0]), {x}[:1] * 2)",
        f"scatter_(0, torch.zeros_like({x}, dtype=torch.long), {apart()})", "floor_()", "sqrt_()", "sign_()",
        f"add_({apart()}, alpha=2)", "logical_not_()", f"eq_({other})", f"gt_({other})", "reciprocal_()",
        f"atan2_({apart()})", f"remainder_({make.number()})", "round_()", "rsqrt_()", "expm1_()", "log1p_()",
        f"mul_({x})", f"add_({x}.detach())", f"copy_({x}.clone())", "conj_physical_()", "erf_()", "hardtanh_()",
    )  # fmt: skip
    return f"{x}.{call}"


def _augmented(make: ProgramMaker) -> str:
    x = make.tensor()
    return f"{x} {make.pick('+=', '*=', '-=', '/=', '**=')} {make.apart(make.operand(x), x)}"


def _reshaping_in_place(make: ProgramMaker) -> str:
    x = make.tensor()
    return f"{x}." + make.pick(
        "t_()", f"transpose_({make.dim(x)}, {make.dim(x)})", "squeeze_()", f"squeeze_({make.dim(x)})",
        f"unsqueeze_({make.dim(x)})", "swapaxes_(0, -1)", "detach_()", "requires_grad_()", "requires_grad_(False)",
        f"as_strided_({make.pick([2], [1])}, [1])" if make.lies_somewhere(x) else "t_()", "resize_(2)" if make.names[x].numel() >= 2 else "t_()", "detach_()",
        "requires_grad = True", "requires_grad = False",
    )  # fmt: skip


def _other_memory(make: ProgramMaker) -> str:
    """A tensor over the memory of another, or over its own with another dtype."""
    x, other = make.tensor(), make.tensor()
    if not make.lies_somewhere(x) or not make.lies_somewhere(other) or make.names[x].is_inference():
        return _view(make)
    if make.names[other].is_inference():
        return f"{x}.set_({other}.detach())"
    data = (
        f"{x}.data = {other}.detach().clone()", f"{x}.data = {other}.data", f"{x}.data = {other}.detach()",
        f"{x}.set_({other}.detach())", f"{x}.set_({other})", f"{x}.set_({other}.detach().clone())",
    )  # fmt: skip
    if any(map(INEXACT.search, make.statements)):
        return make.pick(*data, f"{make.new()} = torch.view_as_real({x})")
    return make.pick(
        *data,
        f"{make.new()} = {x}.view(torch.{make.pick('float32', 'int32', 'int64', 'float64', 'uint8', 'int16')})",
        f"{make.new()} = torch.view_as_real({x})", f"{make.new()} = {x}.data.view(torch.int32)",
    )  # fmt: skip


def _operation(make: ProgramMaker) -> str:
    x = make.tensor()
    shape = make.shape(x)
    other = make.operand(x)
    return f"{make.new()} = " + make.pick(
        f"{x} + {other}", f"{x} * {other}", f"{x} - {other}", f"{x} / {other}", f"{x} ** 2", f"-{x}", f"{x}.exp()",
        f"{x}.sin()", f"{x}.clone()", f"{x}.sum()", f"{x}.mean()", f"{x}.sum({make.dim(x)})", f"{x}.relu()",
        f"{x}.tanh()", f"{x}.sigmoid()", f"{x}.abs()", f"{x}.prod()", f"{x} @ {make.fitting(x)}", f"{x} > {other}",
        f"torch.cat([{x}, {x}], {make.dim(x)})", f"torch.stack([{x}, {make.fitting(x)}])", f"{x}.max()",
        f"torch.where({x} > 0, {x}, {other})", f"{x}.to(torch.{make.pick('float64', 'float32', 'int64')})",
        f"{x}.double()", f"{x}.type_as({make.tensor()})", f"{x}.to({make.tensor()}.dtype)", f"{x}.cumsum(0)",
        f"{x}.index_select(0, torch.tensor([0]))", f"{x}.flip(0)", f"{x}.repeat(2)", f"torch.zeros_like({x})",
        f"{x}.detach().clone()", f"{x}.new_ones(2)", f"{x}.max({make.dim(x)})[0]", f"{x}.sort({make.dim(x)})[0]",
        f"Double.apply({x})", f"Same.apply({x})", f"Tripled.apply({x})", f"{x}.softmax({make.dim(x)})", f"{x}.square()",
        f"{x}.reshape({[make.names[x].numel()]})", f"{x}.expand_as({x}).clone()", f"torch.empty_like({x}).copy_({x})",
        f"{x}.roll(1)", f"{x}.masked_fill({x} > 0, 1.0)", f"{x}.clamp(0, 1)", f"{x}.norm()", f"{x}.var()", f"{x}.log()",
        f"{x}.contiguous()", f"torch.polar({x}.abs(), {x}.abs())", f"{x}.tril()", f"{x}.add({other}, alpha=2)",
        f"{x}.logsumexp({make.dim(x)})", f"{x}.amax({make.dim(x)})", f"{x}.amin()", f"{x}.std({make.dim(x)})",
        f"torch.maximum({x}, {make.fitting(x)})", f"{x}.cumprod({make.dim(x)})", f"{x}.gather(0, torch.zeros_like({x}, dtype=torch.long))",
        f"{x}.masked_select({x} > 0)", f"{x}.outer({make.fitting(x)})", f"torch.einsum('...i->...', {x})", f"{x}.diff()",
        f"torch.addcdiv({x}, {make.fitting(x)}, {make.fitting(x)})", f"{x}.topk(1, {make.dim(x)})[0]", f"{x}.pow({make.fitting(x)})",
        f"torch.nn.functional.gelu({x})", f"torch.nn.functional.pad({x}, (1, 1))", f"torch.nn.functional.layer_norm({x}, {shape[-1:]})",
        f"torch.nn.functional.linear({x}, {make.fitting(x)})", f"{x}.index_add(0, torch.tensor([0]), {make.fitting(x)}[:1])",
        f"{x}.repeat_interleave(2, {make.dim(x)})", f"{x}.atan2({make.fitting(x)})", f"torch.linalg.vector_norm({x}, {make.pick(1, 2, 3)})",
        f"{x}.unsqueeze(0).broadcast_to({[2, *shape]})", f"{x}.nan_to_num()", f"{x}.lerp({make.fitting(x)}, 0.25)", f"{x}.trace()",
    )  # fmt: skip


def _out(make: ProgramMaker) -> str:
    alone = make.alone()
    if not alone:
        return _operation(make)
    x, target = make.tensor(), make.random.choice(alone)
    other, read = make.apart(make.operand(x), target), make.apart(x, target)
    return make.pick(
        f"torch.add({read}, {other}, out={target})", f"torch.mul({read}, 2, out={target})",
        f"torch.exp({read}, out={target})", f"torch.sum({read}, 0, out={target})", f"torch.neg({x}, out={x})",
    )  # fmt: skip


def _backward(make: ProgramMaker) -> str:
    x = make.tensor()
    options = make.pick("", "", "retain_graph=True", "create_graph=True", f"torch.ones_like({x})")
    start = make.pick(f"{x}.sum()", f"{x}.sum()", f"({x} * {x}).sum()", f"{x}.abs().sum()", f"{x}.prod()", f"{x}")
    if options.startswith("torch.ones_like"):
        return f"{x}.backward({options})"
    return f"{start}.backward({options})"


def _gradient(make: ProgramMaker) -> str:
    x = make.tensor()
    leaves = [n for n in make.tensors() if make.names[n].requires_grad] or [x]
    wrt = make.random.choice(leaves)
    options = make.pick("", ", create_graph=True", ", retain_graph=True", ", allow_unused=True, create_graph=True",
                        ", allow_unused=True, materialize_grads=True")  # fmt: skip
    start = make.pick(f"{x}.sum()", f"({x} * {x}).sum()", f"{x}.abs().sum()", f"{x}.pow(3).sum()")
    # The raw gradient of a sum is one number expanded in PyTorch: what is done to it then would differ for good.
    copy = make.pick("", ".clone()") if "*" in start or "pow" in start else ".clone()"
    return f"{make.new()} = torch.autograd.grad({start}, {wrt}{options})[0]{copy}"


def _of_gradient(make: ProgramMaker) -> str:
    held = [n for n in make.tensors() if make.names[n].grad is not None]
    if not held:
        return _backward(make)
    x = make.random.choice(held)
    return make.pick(
        f"{make.new()} = {x}.grad.clone()", f"{x}.grad = None", f"{x}.grad.zero_()", f"{x}.grad.add_(1)", f"{x}.grad.detach_()",
        f"{x}.grad = {x}.grad.clone()", f"{x}.grad = torch.ones_like({x})", f"{x}.grad.mul_({x}.detach())",
        f"{make.new()} = {x}.grad * 2", f"{x}.grad.requires_grad_()",
    )  # fmt: skip


def _hook(make: ProgramMaker) -> str:
    """A hook on a tensor that has just been made: later ones may end PyTorch's process."""
    made = re.match(r"(\w) = (?!torch\.autograd\.grad)", make.statements[-1])
    if made is None or made[1] not in make.tensors() or not make.names[made[1]].requires_grad:
        return _backward(make)
    return f"{made[1]}." + make.pick("register_hook(lambda g: g * 2)", "retain_grad()", "register_hook(lambda g: None)")


MAKERS: tuple[tuple[Maker, float], ...] = (
    (_view, 5), (_indexed, 2), (_assignment, 2), (_in_place, 5), (_augmented, 1.5), (_reshaping_in_place, 1.2), (_other_memory, 0.8),
    (_operation, 4), (_out, 0.5), (_backward, 2), (_gradient, 1.2), (_of_gradient, 1), (_hook, 0.4),
    (lambda make: make.creation(), 0.3),
)  # fmt: skip


def make_program(library: Any, seed: int) -> list[str]:
    """The program of a seed."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ProgramMaker(library, seed).make()
