"""Which samples are of a thread group: JMeter names its threads after it."""

import re
from collections.abc import Iterable

import polars as pl


def is_of_groups(column: str, names: Iterable[str], *, has_slaves: bool) -> pl.Expr:
    """Return whether a column names a thread of these groups; on a slave, its name begins with the slave's address."""
    # jmeter-plugins' dynamic groups name their threads after the one that starts them.
    groups = "|".join(map(re.escape, names))
    slave = r"(?:\S+-)?" if has_slaves else ""
    thread = pl.col(column).cast(pl.String)
    return thread.str.contains(rf"^{slave}(?:{groups})(?:-ThreadStarter)? \d+-\d+$").fill_null(value=False)
