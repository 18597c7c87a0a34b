"""Arithmetic in study.yml: `=5 * workers`, over numbers and names and nothing else."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

MARK = "="
MAX_LENGTH = 500
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    # Of floats: a whole power of whole numbers may take for ever.
    ast.Pow: lambda base, power: float(base) ** float(power),
}
SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "ceil": math.ceil, "floor": math.floor}
ALLOWED = f"+ - * / // ** ( ) numbers, names and {', '.join(FUNCTIONS)}"
Number = int | float


class ExpressionError(ValueError):
    """An expression that cannot be read, or that has no value; the message says which and why."""


def is_expression(value: object) -> bool:
    """Whether a value of study.yml is to be calculated."""
    return isinstance(value, str) and value.startswith(MARK)


@dataclass(frozen=True)
class Expression:
    """One that was read: `names` are those it needs."""

    text: str
    names: frozenset[str]
    _tree: ast.expr

    def value(self, names: Mapping[str, Number]) -> Number:
        """What comes out with these names; whole numbers stay whole where the arithmetic leaves them so.

        Raises:
            ExpressionError: a name is missing, or the result is no real number.
        """
        try:
            result = self._value(self._tree, names)
            is_number = not isinstance(result, complex) and math.isfinite(result)
        except ExpressionError:
            raise
        except ZeroDivisionError:
            raise ExpressionError(f"{self.text}: division by zero{self._with(names)}") from None
        except OverflowError:
            raise ExpressionError(f"{self.text}: the result is too large{self._with(names)}") from None
        except (TypeError, ValueError):  # roots of what is below 0 on the way, or no number
            is_number = False
        if not is_number:
            raise ExpressionError(f"{self.text}: the result is no number{self._with(names)}")
        return cast("Number", result)

    def _with(self, names: Mapping[str, Number]) -> str:
        used = ", ".join(f"{name} = {names[name]}" for name in sorted(self.names))
        return f" (with {used})" if used else ""

    def _value(self, node: ast.expr, names: Mapping[str, Number]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.BinOp():
                return OPERATORS[type(node.op)](self._value(node.left, names), self._value(node.right, names))
            case ast.UnaryOp():
                return SIGNS[type(node.op)](self._value(node.operand, names))
            case ast.Call(func=ast.Name(id=function)):
                return FUNCTIONS[function](*(self._value(argument, names) for argument in node.args))
        name = _dotted(node) or ""
        if name not in names:
            raise ExpressionError(f"{self.text}: unknown name {name!r}; allowed: {', '.join(names) or 'none'}")
        return names[name]


def parse(text: str) -> Expression:
    """Read an expression, with or without the `=` before it.

    Raises:
        ExpressionError: it is none, or holds more than arithmetic.
    """
    text = text.strip()
    body = text.removeprefix(MARK).strip()
    if len(body) > MAX_LENGTH:
        raise ExpressionError(f"{text[:40]}…: an expression has at most {MAX_LENGTH} characters")
    try:
        tree = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{text}: this is no arithmetic; allowed: {ALLOWED}") from None
    return Expression(text, frozenset(_names(tree, text)), tree)


def _names(node: ast.expr, text: str) -> set[str]:
    """The names of an expression; refuses whatever is no arithmetic."""
    match node:
        case ast.Constant() if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return set()
        case ast.BinOp() if type(node.op) in OPERATORS:
            return _names(node.left, text) | _names(node.right, text)
        case ast.UnaryOp() if type(node.op) in SIGNS:
            return _names(node.operand, text)
        case ast.Call(func=ast.Name(id=function), keywords=[]) if function in FUNCTIONS:
            wanted = 1 if function in ("ceil", "floor") else 2
            if len(node.args) < wanted or (wanted == 1 and len(node.args) > 1):
                raise ExpressionError(f"{text}: {function} takes {'one value' if wanted == 1 else 'two or more'}")
            return {name for argument in node.args for name in _names(argument, text)}
    name = _dotted(node)
    if name is None:
        part = ast.unparse(node)
        raise ExpressionError(f"{text}: {part!r} is no arithmetic; allowed: {ALLOWED}")
    return {name}


def _dotted(node: ast.expr) -> str | None:
    """A name such as users or target.replicas; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return None
