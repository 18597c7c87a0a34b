"""Which samples are of a thread group: JMeter names its threads after it."""

import re
from collections.abc import Iterable

import polars as pl

from framestorm.model.run import Host


def is_of_groups(column: str, names: Iterable[str], slaves: Iterable[Host], numbers: Iterable[int] = ()) -> pl.Expr:
    """Return whether a column names a thread of these groups; where groups share a name, their numbers tell which.

    On a slave, its name begins with the slave's address and port, as JMeter was told to call it.
    """
    # jmeter-plugins' dynamic groups name their threads after the one that starts them.
    groups = "|".join(map(re.escape, names))
    # The address itself: in place of any word, it would take a group named peak-users for one named users.
    addresses = "|".join(re.escape(slave.address) for slave in slaves if slave.address)
    slave = rf"(?:(?:{addresses})(?::\d+)?-)?" if addresses else ""
    thread = pl.col(column).cast(pl.String)
    which = "|".join(map(str, numbers)) or r"\d+"
    return thread.str.contains(rf"^{slave}(?:{groups})(?:-ThreadStarter)? (?:{which})-\d+$").fill_null(value=False)
