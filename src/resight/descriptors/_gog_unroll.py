"""Write out the loops of a small fixed-size algorithm, so that matrices become local variables.

A compiler keeps a 9 x 9 matrix in registers, and works on many such matrices at once, only if
every index is a literal. Nobody wants to read such code, so algorithms are written with loops
and subscripts and rewritten here: ``for i in static(...)`` is repeated for each value of ``i``,
and ``A[i, j]`` of a matrix declared by ``A = registers()`` becomes the variable ``A_2_5``. The
function as it is written runs too, element by element, and gives the same numbers.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any

static = range  # marks a loop whose bounds are known before compiling


def registers() -> dict[Any, float]:
    """Declare a small matrix or vector that is only ever subscripted by known integers."""
    return {}


def unroll(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rewrite a module-level function without its ``static`` loops and ``registers``.

    An ``if`` whose test is made of loop variables and integers of the module is decided here. The
    new function has the name and file of the old one, so that compiled forms of it can be cached
    beside that file.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"only plain functions can be unrolled, not {function!r}")
    definition: Any = ast.parse(inspect.getsource(function)).body[0]
    writer = _Writer()
    known = {n: v for n, v in function.__globals__.items() if isinstance(v, int)}
    writer.block(definition.body, known, "    ")
    header = f"def {function.__name__}({', '.join(inspect.signature(function).parameters)}):"
    tree = ast.parse("\n".join([header, *writer.lines]))
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    scope: dict[str, Any] = {}
    exec(compile(tree, function.__code__.co_filename, "exec"), function.__globals__, scope)
    unrolled: Callable[..., Any] = scope[function.__name__]
    unrolled.__module__ = function.__module__
    return unrolled


class _Writer:
    """Writes statements as lines of source, under tables of names whose values are known."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._matrices: set[str] = set()

    def block(self, statements: list[ast.stmt], known: dict[str, int], indent: str) -> None:
        """Write a block; one statement may become many lines, or none."""
        for statement in statements:
            if isinstance(statement, ast.For):
                self._loop(statement, known, indent)
            elif isinstance(statement, ast.If):
                self._choice(statement, known, indent)
            elif "registers()" in (text := _source(statement)):
                self._matrices.add(text.split()[0])
            else:
                self.lines.append(indent + self._filled(text, known))

    def _loop(self, loop: Any, known: dict[str, int], indent: str) -> None:
        variable, bounds = loop.target.id, _source(loop.iter)
        if bounds.startswith("static("):
            for turn in eval(bounds, {"static": range}, known):
                self.block(loop.body, {**known, variable: turn}, indent)
        else:
            self.lines.append(f"{indent}for {variable} in {bounds}:")
            self.block(loop.body, known, indent + "    ")

    def _choice(self, choice: ast.If, known: dict[str, int], indent: str) -> None:
        test = _source(choice.test)
        if set(re.findall(r"[a-zA-Z]\w*", test)) <= known.keys():
            self.block(choice.body if eval(test, {}, known) else choice.orelse, known, indent)
            return
        self.lines.append(f"{indent}if {self._filled(test, known)}:")
        self.block(choice.body, known, indent + "    ")
        if choice.orelse:
            self.lines.append(f"{indent}else:")
            self.block(choice.orelse, known, indent + "    ")

    def _filled(self, text: str, known: dict[str, int]) -> str:
        """Put variables in the place of matrix entries, and values in that of known names."""

        def variable(entry: re.Match[str]) -> str:
            if entry[1] not in self._matrices:
                return entry[0]
            index = eval(_code(entry[2]), {}, known)
            return "_".join(map(str, [entry[1], *(index if isinstance(index, tuple) else [index])]))

        text = re.sub(r"(\w+)\[([^][]+)\]", variable, text)
        return re.sub(r"[a-zA-Z]\w*", lambda name: str(known.get(name[0], name[0])), text)


@cache
def _source(node: ast.AST) -> str:
    return ast.unparse(node)


@cache
def _code(expression: str) -> CodeType:
    return compile(expression, "<known>", "eval")
