"""Texts that were sent in place of values: a variable that nothing had defined, or the end of a CSV data set."""

from collections import Counter
from collections.abc import Mapping
from urllib.parse import unquote

from framestorm.model.criteria import ALL, own_label
from framestorm.model.summary import Unreplaced
from framestorm.results.jtl import Jtl


def read_unreplaced(jtl: Jtl, logged: Mapping[tuple[str, str], int], *, has_secrets: bool) -> list[Unreplaced]:
    """The samples that were sent with such a text, by label and text: by their rows, and by what JMeter's log says.

    The rows have addresses and labels only; the log has bodies and headers too, unless JMeter was killed.

    has_secrets: plans with the kit's `headers` fill in ${env:NAME}, and show it again in place of the value.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for (label, text), n in logged.items():
        # One sample may have both forms of a text.
        counts |= Counter({(own_label(label) if label == ALL else label, unquote(text)): n})
    counts |= Counter({(label, unquote(text)): n for (label, text), n in jtl.unreplaced.items()})
    return [
        Unreplaced(label, text, n)
        for (label, text), n in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        if not (has_secrets and text.startswith("${env:"))
    ]
