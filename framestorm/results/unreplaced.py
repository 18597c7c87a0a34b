"""Texts that were sent in place of values: a variable that nothing had defined, or the end of a CSV data set."""

from urllib.parse import unquote

import polars as pl

from framestorm.model.summary import Unreplaced
from framestorm.results.jtl import Jtl

# As they stand, and as JMeter encodes them in an address; a label is as it stands.
_TEXT = r"(?i)(?:\$|%24)(?:\{|%7B)[^{}/?&]{1,80}?(?:\}|%7D)|(?:<|%3C)EOF(?:>|%3E)"


def read_unreplaced(jtl: Jtl) -> list[Unreplaced]:
    """The samples whose address or label has such a text, by label and text."""
    if jtl.rows is None:
        return []
    whole = pl.concat_str(pl.col("URL").fill_null(""), "label", separator=" ")
    texts = jtl.rows.filter(whole.str.contains(_TEXT)).select("label", whole.str.extract_all(_TEXT).alias("text"))
    # Once for each sample, and in one form.
    decoded = (
        pl.element().str.replace_all("(?i)%24", "$$").str.replace_all("(?i)%7B", "{").str.replace_all("(?i)%7D", "}")
    )
    decoded = decoded.str.replace_all("(?i)%3C", "<").str.replace_all("(?i)%3E", ">")
    each = texts.with_columns(pl.col("text").list.eval(decoded).list.unique()).explode("text")
    counted = each.group_by("label", "text").len()
    rows = counted.sort("len", "label", "text", descending=[True, False, False]).collect(engine="streaming")
    return [Unreplaced(label, unquote(found), n) for label, found, n in rows.iter_rows()]
