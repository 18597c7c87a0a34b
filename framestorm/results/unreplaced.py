"""Texts that were sent in place of values: a variable that nothing had defined, or the end of a CSV data set."""

from collections import Counter
from collections.abc import Mapping
from urllib.parse import unquote

import polars as pl

from framestorm.model.criteria import ALL, own_label
from framestorm.model.summary import Unreplaced
from framestorm.results.jtl import Jtl

# As they stand, and as JMeter encodes them in an address; a label is as it stands.
_TEXT = r"(?i)(?:\$|%24)(?:\{|%7B)[^{}/?&]{1,80}?(?:\}|%7D)|(?:<|%3C)EOF(?:>|%3E)"


def read_unreplaced(jtl: Jtl, logged: Mapping[tuple[str, str], int], *, has_secrets: bool) -> list[Unreplaced]:
    """The samples that were sent with such a text, by label and text: by their rows, and by what JMeter's log says.

    The rows have addresses and labels only; the log has bodies and headers too, unless JMeter was killed.

    has_secrets: plans with the kit's `headers` fill in ${env:NAME}, and show it again in place of the value.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for (label, text), n in logged.items():
        # One sample may have both forms of a text.
        counts |= Counter({(own_label(label) if label == ALL else label, unquote(text)): n})
    counts |= _of_rows(jtl)
    return [
        Unreplaced(label, text, n)
        for (label, text), n in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        if not (has_secrets and text.startswith("${env:"))
    ]


def _of_rows(jtl: Jtl) -> Counter[tuple[str, str]]:
    if jtl.rows is None:
        return Counter()
    whole = pl.concat_str(pl.col("URL").fill_null(""), "label", separator=" ")
    texts = jtl.rows.filter(whole.str.contains(_TEXT)).select("label", whole.str.extract_all(_TEXT).alias("text"))
    # Once for each sample, and in one form.
    decoded = (
        pl.element().str.replace_all("(?i)%24", "$$").str.replace_all("(?i)%7B", "{").str.replace_all("(?i)%7D", "}")
    )
    decoded = decoded.str.replace_all("(?i)%3C", "<").str.replace_all("(?i)%3E", ">")
    each = texts.with_columns(pl.col("text").list.eval(decoded).list.unique()).explode("text")
    counted = each.group_by("label", "text").len()
    rows = counted.collect(engine="streaming").iter_rows()
    return Counter({(label, unquote(text)): n for label, text, n in rows})
