"""Cuts a function where it cannot be recorded: what lies between is compiled, piece by piece.

# Note [Segments]
Where a recording stopped, the statement of the function that ran then is known by its line. The function's text is
written anew: a statement at which it stopped stays as it is and runs in Python; those between become functions of the
local variables that they read, which give those that they set, and each of these is compiled as any function is. So
nothing is assumed of a piece that is not assumed of a whole function: values, writes, random numbers and gradients are
exact for the same reasons. Branches, loops and `with` blocks around a break stay, and their bodies are cut. The condition
of a branch is computed in the piece before it, and Python asks it alone. A function that is called where it breaks is
compiled on its own. What is met later, on another path, cuts the function anew. Where an object was found changed
afterwards, the text tells where that may have been: first what assigns to attributes and items, then what is called for
nothing but its effect, `backward` and `zero_grad` last. What binds a name of an outer scope stays too; its value is computed
in a piece.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pullback.compiling.function_text import (
    CannotSplit,
    Spot,
    as_branch,
    as_function,
    changes_container,
    count_loads,
    definition_of,
    first_read,
    has_fixed,
    is_working,
    loaded_names,
    locate,
    make_function,
    names_in_graph,
    outer_names,
    parameter_count,
    stored_names,
)

_SCOPE, _MADE, _TEST = "__pullback_scope", "__pullback_made", "__pullback_test"
_LOCALS, _PICK, _CALL = "__pullback_locals", "__pullback_pick", "__pullback_call"
_PIECE = "__pullback_piece"
_REFUSED = frozenset(["super", "locals", "vars", "eval", "exec", "_getframe", "currentframe", "dir"])
"""Names of functions that look at the frame of their caller."""


def _is_backward(node: ast.expr) -> bool:
    """Whether an expression looks like a call of `backward` or `zero_grad`, which programs contain."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_method and node.func.attr in ("backward", "zero_grad")  # type: ignore[attr-defined]  # a method's call


def pick(scope: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Those of the names that are bound."""
    return {name: scope[name] for name in names if name in scope}


class Segmented:
    """A function written anew, with places that a break was seen at; `make_piece` compiles what lies between."""

    def __init__(
        self, function: types.FunctionType, breaks: dict[Spot, int], effects: int, make_piece: Callable[..., Any]
    ) -> None:
        self.pieces: dict[str, Any] = {}
        self._make_piece = make_piece
        self._breaks = breaks
        self._effects = effects
        self._code = function.__code__
        self._function = function
        self._definition = as_function(definition_of(function))
        self._check()
        self._names = set(self._code.co_varnames) | set(self._code.co_cellvars)
        self._outer = outer_names(self._definition)
        self._wanted = names_in_graph(self._definition)
        self._texts: list[ast.FunctionDef] = []
        self._waiting: list[tuple[list[ast.stmt], bool, ast.Call]] = []
        self._tests = 0

    def build(self, call: Callable[[Any], Any], former: Mapping[str, Any]) -> Callable[..., Any]:
        """The function that runs the pieces; `call` chooses what stands for a function that is called at a break.

        `former` are pieces, by their text, of the function as it was cut before.
        """
        definition = self._definition
        definition.body = self._block(definition.body, in_loop=False) or [ast.Pass()]
        loads = count_loads(definition)
        scope = {_LOCALS: builtins.locals, _PICK: pick, _CALL: call}
        for number, (statements, in_loop, place) in enumerate(self._waiting):
            text = self._piece_text(statements, in_loop, loads, place)
            lines = (statements[0].lineno, statements[-1].end_lineno)
            key = ast.dump(text, include_attributes=True)
            piece = former.get(key) or self._make_piece(make_function(text, self._function, scope, None), lines)
            self.pieces[key] = piece
            scope[f"{_PIECE}{number}"] = piece.function if piece.is_small else piece
        return make_function(definition, self._function, scope, self._function)

    def _check(self) -> None:
        code = self._code
        if code.co_flags & (0x20 | 0x80 | 0x200):
            raise CannotSplit("it is a generator or a coroutine")
        if _REFUSED & set(code.co_names) or "__class__" in code.co_freevars:
            raise CannotSplit("it looks at its own frame")
        names = {*code.co_names, *code.co_varnames}
        if any(name.startswith("__") and not name.endswith("__") for name in names):
            raise CannotSplit("it uses private names of a class")
        self._check_captured()

    def _check_captured(self) -> None:
        """Inner functions see variables, not values: one that is bound again after it was captured cannot be cut."""
        stores: dict[str, list[int]] = {}
        for node in ast.walk(self._definition):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                stores.setdefault(node.id, []).append(node.lineno)
        for node in ast.walk(self._definition):
            if node is self._definition or not isinstance(node, (ast.Lambda, ast.FunctionDef)):
                continue
            for name in loaded_names(node) & set(self._code.co_cellvars):
                bound = stores.get(name, [])
                is_parameter = name in self._code.co_varnames[: parameter_count(self._code)]
                if len(bound) + is_parameter > 1 or any(line > node.lineno for line in bound):
                    raise CannotSplit(f"an inner function captures {name}, which is bound more than once")

    # Statements.

    def _block(self, statements: Sequence[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        """Statements with calls of pieces in the place of those that can be recorded."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in statements:
            if self._stays(statement):
                before, kept = self._cut(statement, in_loop)
                run.extend(before)
                made.extend(self._flush(run, in_loop))
                run = []
                made.extend(kept)
            else:
                run.append(statement)
                if self._wanted and stored_names([statement]) & self._wanted:  # what follows must be computed from it
                    made.extend(self._flush(run, in_loop))
                    run = []
        return made + self._flush(run, in_loop)

    def _stays(self, statement: ast.stmt) -> bool:
        if self._level(statement) > 0 or has_fixed(statement) or self._may_have_effects(statement):
            return True
        return changes_container(statement) or bool(self._outer and stored_names([statement]) & self._outer)

    def _may_have_effects(self, statement: ast.stmt) -> bool:
        """Whether something outside of the function is changed here, as far as its text tells. See Note [Segments]."""
        for node in ast.walk(statement) if self._effects else ():
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                return True
            if isinstance(node, ast.Expr) and self._effects > 1 + _is_backward(node.value):
                return True
        return False

    def _level(self, node: Any) -> int:
        """How often a break was seen in a statement: 2 where it breaks although its tensors were computed before."""
        first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        return max([level for spot, level in self._breaks.items() if first <= spot < last], default=0)

    def _cut(self, statement: ast.stmt, in_loop: bool) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """What to compute before a statement that stays, and the statement."""
        if isinstance(statement, (ast.Return, ast.Assign, ast.Expr)) and isinstance(statement.value, ast.IfExp):
            return self._cut(as_branch(statement), in_loop)
        if isinstance(statement, ast.If):
            before = self._hoist_test(statement)
            statement.body = self._block(statement.body, in_loop) or [ast.Pass()]
            statement.orelse = self._block(statement.orelse, in_loop)
            return before, [statement]
        if isinstance(statement, ast.While):
            return [], [self._cut_while(statement)]
        if isinstance(statement, ast.For):
            self._rewrite_calls(statement.iter)
            statement.body = self._block(statement.body, True) or [ast.Pass()]
            statement.orelse = self._block(statement.orelse, in_loop)
            return [], [statement]
        if isinstance(statement, ast.With):
            statement.body = self._block(statement.body, in_loop) or [ast.Pass()]
            return [], [statement]
        if isinstance(statement, ast.Try):
            for name in ("body", "orelse", "finalbody"):
                setattr(statement, name, self._block(getattr(statement, name), in_loop))
            for handler in statement.handlers:
                handler.body = self._block(handler.body, in_loop) or [ast.Pass()]
            return [], [statement]
        if isinstance(statement, ast.Return):
            return self._cut_return(statement)
        return self._cut_simple(statement)

    def _cut_while(self, loop: ast.While) -> ast.While:
        """`while test: body` as an endless loop that begins with the test, so that pieces can compute it."""
        if loop.orelse or isinstance(loop.test, ast.Constant):
            loop.body = self._block(loop.body, True) or [ast.Pass()]
            loop.orelse = self._block(loop.orelse, True)
            return loop
        leave = ast.If(ast.UnaryOp(ast.Not(), loop.test), [ast.Break()], [])
        locate(leave, loop.test)
        before = self._hoist_test(leave)
        body = [*self._flush(before, True), leave, *self._block(loop.body, True)]
        endless = ast.While(ast.Constant(True), body, [])
        return ast.copy_location(endless, loop)

    def _hoist_test(self, statement: ast.If) -> list[ast.stmt]:
        test: ast.expr = statement.test
        level = self._level(test)
        if level != 1 or isinstance(test, ast.BoolOp):
            self._rewrite_calls(test)
            return []
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and not isinstance(test.operand, ast.BoolOp):
            assignment, test.operand = self._set_aside(test.operand)
            return [assignment]
        if not is_working(test):
            return []
        assignment, statement.test = self._set_aside(test)
        return [assignment]

    def _set_aside(self, expression: ast.expr) -> tuple[ast.stmt, ast.expr]:
        """An assignment of an expression to a name of its own, and that name."""
        name = f"{_TEST}{self._tests}"
        self._tests += 1
        self._names.add(name)
        assignment = ast.Assign([ast.Name(name, ast.Store())], expression)
        return locate(assignment, expression), locate(ast.Name(name, ast.Load()), expression)

    def _cut_return(self, statement: ast.Return) -> tuple[list[ast.stmt], list[ast.stmt]]:
        if statement.value is None or not is_working(statement.value):
            return [], [statement]
        if self._level(statement):
            return self._cut_simple(statement)
        assignment, statement.value = self._set_aside(statement.value)
        return [assignment], [statement]

    def _cut_simple(self, statement: ast.stmt) -> tuple[list[ast.stmt], list[ast.stmt]]:
        before: list[ast.stmt] = []
        if self._level(statement) == 0 and isinstance(statement, ast.Assign) and is_working(statement.value):
            assignment, statement.value = self._set_aside(statement.value)  # what is assigned to lies outside
            before.append(assignment)
        elif self._level(statement) == 0 and changes_container(statement):
            call = statement.value  # type: ignore[attr-defined]  # it is an expression
            if call.args and is_working(call.args[0]) and not isinstance(call.args[0], ast.Starred):
                assignment, call.args[0] = self._set_aside(call.args[0])
                before.append(assignment)
        elif self._level(statement) == 1 and isinstance(statement, (ast.Return, ast.Assign, ast.Expr)):
            holder = first_read(statement.value)
            if holder is not None:
                node, field, place = holder
                held = getattr(node, field)
                read = held if place is None else held[place]
                assignment, name = self._set_aside(read)
                before.append(assignment)
                if place is None:
                    setattr(node, field, name)
                else:
                    held[place] = name
        self._rewrite_calls(statement)
        return before, [statement]

    def _rewrite_calls(self, node: ast.AST) -> None:
        """Let functions that are called where the function breaks be compiled on their own."""
        if not self._level(node):
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and not isinstance(inner.func, ast.Call):
                chosen = ast.Call(ast.Name(_CALL, ast.Load()), [inner.func], [])
                inner.func = locate(chosen, inner.func)

    def _flush(self, run: list[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        """A call of a piece for statements that compute; those before that only bind names stay."""
        first = next((place for place, statement in enumerate(run) if is_working(statement)), None)
        if first is None:
            return run
        kept, work = run[:first], run[first:]
        number = len(self._waiting)
        scope = ast.Call(ast.Name(_LOCALS, ast.Load()), [], [])
        place = ast.Call(ast.Name(_PICK, ast.Load()), [scope, ast.Tuple([], ast.Load())], [])
        call = ast.Call(ast.Name(f"{_PIECE}{number}", ast.Load()), [place], [])
        assignment: ast.stmt = ast.Assign([ast.Name(_MADE, ast.Store())], call)
        locate(assignment, work[0])
        self._waiting.append((work, in_loop, place))
        taken: list[ast.stmt] = []
        for name in sorted(stored_names(work) & self._names):
            key = ast.Constant(name)
            has = ast.Compare(key, [ast.In()], [ast.Name(_MADE, ast.Load())])
            value = ast.Subscript(ast.Name(_MADE, ast.Load()), key, ast.Load())
            taken.append(locate(ast.If(has, [ast.Assign([ast.Name(name, ast.Store())], value)], []), work[-1]))
        return [*kept, assignment, *taken]

    def _piece_text(
        self, statements: list[ast.stmt], in_loop: bool, loads: dict[str, int], place: ast.Call
    ) -> ast.FunctionDef:
        """The function of a piece: from the names that it reads to those that are read later."""
        inner = count_loads(*statements)
        read = sorted(name for name in inner if name in self._names)
        place.args[1] = locate(ast.Tuple([ast.Constant(name) for name in read], ast.Load()), statements[0])
        # The definition does not hold these statements any more: what it reads is read outside of them, or by others.
        others = {name for work, _, _ in self._waiting if work is not statements for name in count_loads(*work)}
        later = set(loads) | others | (set(inner) if in_loop else set())
        given = sorted(stored_names(statements) & self._names & later)
        begin: list[ast.stmt] = []
        for name in read:
            key = ast.Constant(name)
            has = ast.Compare(key, [ast.In()], [ast.Name(_SCOPE, ast.Load())])
            value = ast.Subscript(ast.Name(_SCOPE, ast.Load()), key, ast.Load())
            begin.append(ast.If(has, [ast.Assign([ast.Name(name, ast.Store())], value)], []))
        scope = ast.Call(ast.Name(_LOCALS, ast.Load()), [], [])
        names = ast.Tuple([ast.Constant(name) for name in given], ast.Load())
        end: ast.stmt = ast.Return(ast.Call(ast.Name(_PICK, ast.Load()), [scope, names], []))
        for statement in begin:
            locate(statement, statements[0])
        locate(end, statements[-1])
        arguments = ast.arguments([], [ast.arg(_SCOPE)], None, [], [], None, [])
        made = ast.FunctionDef(self._definition.name, arguments, [*begin, *statements, end], [], None)
        return ast.copy_location(made, statements[0])
