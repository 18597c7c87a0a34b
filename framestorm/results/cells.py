"""Texts in samples.csv, which people open in spreadsheets."""

import polars as pl
import polars.selectors as cs

# Given by the plan, by JMeter or by the kit; everything else may have come from the function.
_NAMES = ("label", "user", "host", "thread", "source")
_FORMULA, _NUMBER = r"^[=+@\t\r-]", r"^[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?$"


def inert() -> pl.Expr:
    """The columns whose text may come from the function, with `'` before what a spreadsheet would run as a formula."""
    text = cs.string() - cs.by_name(*_NAMES, require_all=False)
    is_formula = text.as_expr().str.contains(_FORMULA) & ~text.as_expr().str.contains(_NUMBER)
    return pl.when(is_formula).then(pl.lit("'") + text.as_expr()).otherwise(text.as_expr()).name.keep()
