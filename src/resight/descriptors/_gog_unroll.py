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
from types import CodeType, FunctionType
from typing import Any

static = range  # marks a loop whose bounds are known before compiling


def registers() -> dict[Any, float]:
    """Declare a small matrix or vector that is only ever subscripted by known integers."""
    return {}


def unroll(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rewrite a module-level function without its ``static`` loops and ``registers``.

    Integers that it takes from its module are known values too. An ``if`` whose test is made of
    known values is decided here. The new function has the name and file of the old one, so that
    compiled forms of it can be cached beside that file.
    """
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(function, FunctionType) or not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"only plain functions can be unrolled, not {function!r}")
    known = {n: v for n, v in function.__globals__.items() if isinstance(v, int)}
    writer = _Writer()
    undocumented = definition.body[ast.get_docstring(definition) is not None :]
    writer.block(undocumented, known, "    ")
    header = f"def {definition.name}({ast.unparse(definition.args)}):"
    tree = ast.parse("\n".join([header, *writer.lines]))
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    scope: dict[str, Any] = {}
    exec(compile(tree, function.__code__.co_filename, "exec"), function.__globals__, scope)
    unrolled = scope[definition.name]
    unrolled.__module__, unrolled.__doc__ = function.__module__, function.__doc__
    return unrolled


class _Writer:
    """Writes statements as lines of source, under tables of names whose values are known."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.matrices: set[str] = set()
        # A statement in a static loop is written many times but analysed once.
        self.templates: dict[int, _Template] = {}

    def block(self, statements: list[ast.stmt], known: dict[str, int], indent: str) -> None:
        """Write a block; one statement may become many lines, or none."""
        for statement in statements:
            if isinstance(statement, ast.For):
                self._loop(statement, known, indent)
            elif isinstance(statement, ast.If):
                self._choice(statement, known, indent)
            elif isinstance(statement, ast.Assign) and _calls(statement.value, "registers"):
                self.matrices |= {t.id for t in statement.targets if isinstance(t, ast.Name)}
            else:
                self.lines.append(indent + self._text(statement, known))

    def _loop(self, loop: ast.For, known: dict[str, int], indent: str) -> None:
        variable = ast.unparse(loop.target)
        if isinstance(loop.iter, ast.Call) and _calls(loop.iter, "static"):
            bounds = [int(self._text(argument, known)) for argument in loop.iter.args]
            for turn in range(*bounds):
                self.block(loop.body, {**known, variable: turn}, indent)
        else:
            self.lines.append(f"{indent}for {variable} in {self._text(loop.iter, known)}:")
            self.block(loop.body, known, indent + "    ")

    def _choice(self, choice: ast.If, known: dict[str, int], indent: str) -> None:
        test = self._text(choice.test, known)
        if {n.id for n in ast.walk(choice.test) if isinstance(n, ast.Name)} <= known.keys():
            self.block(choice.body if test == "True" else choice.orelse, known, indent)
            return
        self.lines.append(f"{indent}if {test}:")
        self.block(choice.body, known, indent + "    ")
        if choice.orelse:
            self.lines.append(f"{indent}else:")
            self.block(choice.orelse, known, indent + "    ")

    def _text(self, node: ast.AST, known: dict[str, int]) -> str:
        if id(node) not in self.templates:
            self.templates[id(node)] = _Template(node, known, self.matrices)
        return self.templates[id(node)].fill(known)


class _Template(ast.NodeTransformer):
    """Source of a statement or expression with gaps where known values come in."""

    def __init__(self, node: ast.AST, known: dict[str, int], matrices: set[str]) -> None:
        self.known, self.matrices = frozenset(known), frozenset(matrices)
        self.gaps: list[tuple[str, CodeType]] = []
        self.text = ast.unparse(self.visit(copy.deepcopy(node)))

    def fill(self, known: dict[str, int]) -> str:
        """Write the source for given values."""
        return self.text.format(*(_filled(name, eval(code, {}, known)) for name, code in self.gaps))

    def visit(self, node: ast.AST) -> Any:
        """Make a gap of the largest expressions that are known, and of matrix entries."""
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in self.matrices:
            return self._gap(ast.unparse(node.value), node.slice)
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        unknown, bound = names - self.known - {"max", "min"}, names & self.known
        if isinstance(node, ast.expr) and bound and not unknown:
            return self._gap("", node)
        return self.generic_visit(node)

    def _gap(self, name: str, expression: ast.expr) -> ast.Name:
        self.gaps.append((name, compile(ast.Expression(expression), "<known>", "eval")))
        return ast.Name(f"{{{len(self.gaps) - 1}}}")


def _filled(matrix: str, value: Any) -> str:
    if not matrix:
        return repr(value)
    return "_".join([matrix, *map(str, value if isinstance(value, tuple) else (value,))])


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name
