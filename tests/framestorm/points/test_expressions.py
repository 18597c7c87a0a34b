"""Arithmetic in study.yml: what it gives, and what is refused."""

import pytest

from framestorm.points.expressions import ExpressionError, parse

NAMES = {"users": 4, "hold_s": 2.5, "none": 0, "target.replicas": 3}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("=5 * users", 20),
        ("= users / 8 + 1", 1.5),
        ("=users // 3", 1),
        ("=2 ** users", 16),
        ("=-users + +1", -3),
        ("=max(users, hold_s, 3)", 4),
        ("=min(users, hold_s)", 2.5),
        ("=ceil(hold_s) * floor(hold_s)", 6),
        ("=(1 + users) * target.replicas", 15),
        ("users", 4),
    ],
)
def test_gives(text, value):
    result = parse(text).value(NAMES)
    assert result == value


def test_what_is_read():
    expression = parse("=max(users, 2) * 5")
    assert expression.names == {"users"} and isinstance(expression.value(NAMES), int), "whole numbers stay whole"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("=", "not arithmetic"),
        ("=5 *", "not arithmetic"),
        ("=__import__('os')", "not arithmetic"),
        ("=(1).real", "not arithmetic"),
        ("='a'", "not arithmetic"),
        ("=users % 2", "not arithmetic"),
        ("=round(users)", "ceil, floor"),
        ("=max(*users, 1)", "not arithmetic"),
        ("=min(users)", "min takes two or more"),
        ("=ceil(1, 2)", "ceil takes one value"),
        ("=ceil()", "ceil takes one value"),
        ("=max(1, 2, default=3)", "not arithmetic"),
        ("=1" + " + 1" * 200, "at most 500 characters"),
        ("=" + "(" * 400, "not arithmetic"),
    ],
)
def test_is_refused_when_read(text, said):
    with pytest.raises(ExpressionError, match=said):
        parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("=user + 1", r"unknown name 'user'; allowed: users, hold_s"),
        ("=users / none", r"cannot be calculated with none = 0, users = 4: division by zero"),
        ("=users // none", "by zero"),
        ("=none ** -1", "negative power"),
        ("=(-users) ** 0.5", "not a number"),
        ("=1e308 * 1e308", "not a number"),
        ("=1e308 ** users", "cannot be calculated: the result is too large"),
        ("=ceil((0 - 8) ** 0.5)", "cannot be calculated"),
        ("=ceil(1e999 - 1e999)", "cannot be calculated"),
        ("=" + "9" * 400, "cannot be calculated"),
    ],
)
def test_has_no_value(text, said):
    with pytest.raises(ExpressionError, match=said):
        parse(text).value(NAMES)
