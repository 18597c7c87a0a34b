"""Arithmetic in study.yml: `=5 * workers`, over numbers and names and nothing else.

A text in quotes is a metric as criteria name it: `='login p95' / 'log out p95'`.
"""

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from simpleeval import DEFAULT_OPERATORS, SimpleEval  # type: ignore[import-untyped]

from framestorm.model.metric import is_of_run, split_label
from framestorm.model.study import catalogue_name

MAX_LENGTH = 500
# Powers are of floats: a whole power of whole numbers may take for ever.
OPERATORS = {kind: DEFAULT_OPERATORS[kind] for kind in (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)} | {
    ast.Pow: lambda base, power: float(base) ** float(power),
    ast.UAdd: DEFAULT_OPERATORS[ast.UAdd],
    ast.USub: DEFAULT_OPERATORS[ast.USub],
}
FUNCTIONS = {"min": min, "max": max, "ceil": math.ceil, "floor": math.floor}
OF_ONE_VALUE = ("ceil", "floor")
# A name such as users or target.replicas.
NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
ALLOWED = f"+ - * / // ** ( ) numbers, names, metrics in quotes and {', '.join(FUNCTIONS)}"
Number = int | float


class ExpressionError(ValueError):
    """An expression cannot be read, or has no value; the message says which and why."""


@dataclass(frozen=True)
class Expression:
    """An expression that was read: `names` are those that it needs."""

    text: str
    names: frozenset[str]
    _tree: ast.expr

    def value(self, values: Mapping[str, Number]) -> Number:
        """The value with these values of its names; whole numbers stay whole where the arithmetic leaves them so.

        Raises:
            ExpressionError: a name is missing, or the result is not a real number.
        """
        if missing := sorted(self.names - values.keys()):
            raise ExpressionError(f"{self.text}: unknown name {missing[0]!r}; allowed: {', '.join(values) or 'none'}")
        evaluator = SimpleEval(operators=OPERATORS, functions=FUNCTIONS, names=dict(values))
        evaluator.nodes[ast.Attribute] = lambda node: values[ast.unparse(node)]
        try:
            result = evaluator.eval(self.text, previously_parsed=self._tree)
            if isinstance(result, complex) or not math.isfinite(result):
                raise ValueError("the result is not a number")
        except OverflowError:
            raise ExpressionError(f"{self.text} cannot be calculated: the result is too large") from None
        except (ArithmeticError, TypeError, ValueError) as error:
            used = ", ".join(f"{name} = {values[name]}" for name in sorted(self.names)) or "no names"
            raise ExpressionError(f"{self.text} cannot be calculated with {used}: {error}") from None
        return cast("Number", result)


def parse(text: str) -> Expression:
    """Read an expression, with or without the `=` before it.

    Raises:
        ExpressionError: it is not arithmetic, or holds more than that.
    """
    text = text.strip()
    body = text.removeprefix("=").strip()
    if len(body) > MAX_LENGTH:
        raise ExpressionError(f"{text[:40]}…: an expression has at most {MAX_LENGTH} characters")
    try:
        tree = ast.parse(body, mode="eval").body
        tree = _Named().visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{text}: this is not arithmetic; allowed: {ALLOWED}") from None
    return Expression(text, frozenset(_names(tree, text)), tree)


class _Named(ast.NodeTransformer):
    """Makes the name of a metric of each text in quotes."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        name = catalogue_name(node.value) if isinstance(node.value, str) else ""
        return ast.Name(name, ast.Load()) if is_of_run(name) else node


def _names(node: ast.expr, text: str) -> set[str]:
    """Return the names of an expression; refuses whatever is not arithmetic."""
    match node:
        case ast.Constant() if type(node.value) in (int, float):
            operands: list[ast.expr] = []
        case ast.BinOp() if type(node.op) in OPERATORS:
            operands = [node.left, node.right]
        case ast.UnaryOp() if type(node.op) in OPERATORS:
            operands = [node.operand]
        case ast.Call(func=ast.Name(id=function), keywords=[]) if function in FUNCTIONS:
            operands = node.args
            if (len(operands) != 1) if function in OF_ONE_VALUE else (len(operands) < 2):
                takes = "one value" if function in OF_ONE_VALUE else "two or more"
                raise ExpressionError(f"{text}: {function} takes {takes}")
        case ast.Name(id=name) if split_label(name)[0] is not None:
            return {name}
        case _ if isinstance(node, ast.Name | ast.Attribute) and NAME.fullmatch(ast.unparse(node)):
            return {ast.unparse(node)}
        case _:
            raise ExpressionError(f"{text}: {ast.unparse(node)!r} is not arithmetic; allowed: {ALLOWED}")
    return {name for operand in operands for name in _names(operand, text)}
