"""Write out the loops of a small fixed-size algorithm, so that matrices become local variables.

A compiler keeps a 9 x 9 matrix in registers, and works on many such matrices at once, only if
every index is a literal. Nobody wants to read such code, so algorithms are written with loops
and subscripts and rewritten here: ``for i in static(...)`` is repeated for each value of ``i``,
and ``A[i, j]`` of a matrix declared by ``A = registers()`` becomes the variable ``A_2_5``. The
function as it is written runs too, element by element, and gives the same numbers.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

static = range  # marks a loop whose bounds are known before compiling


def registers() -> dict[Any, float]:
    """Declare a small matrix or vector that is only ever subscripted by known integers."""
    return {}


def unroll(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rewrite a function without its ``static`` loops and without its ``registers``.

    Parameters
    ----------
    function : a module-level function
        Integers that it takes from its module are known values too. An ``if`` whose test is
        made of known values is decided here.

    Returns
    -------
    A function of the same name and the same file, so that compiled forms of it can be cached
    beside that file.
    """
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(definition, ast.FunctionDef) or not isinstance(function, FunctionType):
        raise TypeError(f"only plain functions can be unrolled, not {function!r}")
    known = {n: v for n, v in function.__globals__.items() if isinstance(v, int)}
    definition.decorator_list = []
    definition.body = _Unroller(known).statements(definition.body)
    tree = ast.fix_missing_locations(ast.Module([definition], []))
    ast.increment_lineno(tree, function.__code__.co_firstlineno - definition.lineno)
    scope: dict[str, Any] = {}
    exec(compile(tree, function.__code__.co_filename, "exec"), function.__globals__, scope)
    unrolled = scope[definition.name]
    unrolled.__module__ = function.__module__
    return unrolled


class _Unroller(ast.NodeTransformer):
    """Rewrites statements under a table of names whose integer values are known."""

    def __init__(self, known: dict[str, int], matrices: frozenset[str] = frozenset()) -> None:
        self.known = known
        self.matrices = set(matrices)

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a block; one statement may become many, or none."""
        written: list[ast.stmt] = []
        for statement in body:
            # Rewriting happens in place and a loop body is visited once for every turn.
            result = self.visit(copy.deepcopy(statement))
            written += result if isinstance(result, list) else [result]
        return written

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        if not (isinstance(node.iter, ast.Call) and _is_name(node.iter.func, "static")):
            node.iter = self.visit(node.iter)
            node.body = self.statements(node.body)
            return node
        bounds = [self._value(argument) for argument in node.iter.args]
        written: list[ast.stmt] = []
        for turn in range(*bounds):
            inner = _Unroller({**self.known, node.target.id: turn}, frozenset(self.matrices))  # type: ignore[attr-defined]
            written += inner.statements(node.body)
        return written

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        if _names(node.test) <= self.known.keys():
            return self.statements(node.body if self._value(node.test) else node.orelse)
        node.test = self.visit(node.test)
        node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        value = node.value
        if isinstance(value, ast.Call) and _is_name(value.func, "registers"):
            self.matrices |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            return []
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not (isinstance(node.value, ast.Name) and node.value.id in self.matrices):
            self.generic_visit(node)
            return node
        index = self._value(node.slice)
        parts = index if isinstance(index, tuple) else (index,)
        return ast.Name("_".join([node.value.id, *map(str, parts)]), node.ctx)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self.known:
            return ast.Constant(self.known[node.id])
        return node

    def _value(self, expression: ast.expr) -> Any:
        code = compile(ast.Expression(copy.deepcopy(expression)), "<static index>", "eval")
        return eval(code, {"max": max, "min": min}, self.known)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _names(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
