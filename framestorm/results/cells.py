"""Texts in samples.csv, which people open in spreadsheets and on terminals."""

import polars as pl
import polars.selectors as cs

# Given by the plan, by JMeter or by the kit; everything else may have come from the function.
_NAMES = ("label", "user", "host", "thread", "source")
_FORMULA, _NUMBER = r"^[=+@\t\r-]", r"^[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?$"
# A terminal runs what begins with ESC or with U+009B.
_CONTROL = r"[\x00-\x08\x0B-\x1F\x7F-\x9F]"


def inert() -> pl.Expr:
    """Return the columns whose text may come from the function.

    `'` stands before what a spreadsheet would run as a formula, `?` for what a terminal would take as a command.
    """
    text = (cs.string() - cs.by_name(*_NAMES, require_all=False)).as_expr()
    is_formula = text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
    shown = text.str.replace_all(_CONTROL, "?")
    return pl.when(is_formula).then(pl.lit("'") + shown).otherwise(shown).name.keep()
