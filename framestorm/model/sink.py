"""`--sink KIND:URL`: who else is told of a run while it goes on, and what became of that."""

from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

from framestorm.errors import UsageError

SinkKind = Literal["influxdb", "prometheus", "otlp"]
KINDS: tuple[SinkKind, ...] = get_args(SinkKind)
# The address of each kind as its own documentation has it.
EXAMPLES: dict[SinkKind, str] = {
    "influxdb": "http://host:8086/write?db=jmeter or http://host:8086/api/v2/write?org=o&bucket=b",
    "prometheus": "http://host:9090/api/v1/write",
    "otlp": "http://host:4318/v1/metrics",
}
# What the path of an address has, so that figures do not go to a page that answers with 200: one of these.
PATHS: dict[SinkKind, tuple[str, ...]] = {
    "influxdb": ("write",), "prometheus": ("write", "push"), "otlp": ("metrics",),
}  # fmt: skip


@dataclass(frozen=True)
class SinkAddress:
    """A service of one kind, and where it takes figures."""

    kind: SinkKind
    url: str

    @property
    def shown(self) -> str:
        """The service as people call it; the query may hold a password."""
        return f"{self.kind}:{self.url.partition('?')[0]}"


@dataclass(frozen=True)
class SinkOutcome:
    """What became of the intervals of a run for one sink: how many there were, and how many it did not get.

    A second of a label has several intervals if its samples become known one after the other.
    problem: what went wrong first, None if nothing did.
    """

    sink: str
    intervals: int
    missed: int
    problem: str | None = None


def parse_sink(text: str, option: str = "--sink") -> SinkAddress:
    """Parse the value of an option.

    Raises:
        UsageError: the kind is not known, or the address is not one that takes figures.
    """
    name, _, url = text.partition(":")
    kind = next((kind for kind in KINDS if kind == name), None)
    if kind is None:
        raise UsageError(f"{option} {text}: expected KIND:URL, with one of the kinds {', '.join(KINDS)}")
    shown = url if option != "--sink" else text
    try:
        parts = urlsplit(url)
        is_usable = (
            parts.scheme in {"http", "https"}
            and parts.hostname
            and parts.port != 0
            and any(word in parts.path for word in PATHS[kind])
        )
        has_password = parts.password is not None
    except ValueError:
        is_usable, has_password = False, False
    if has_password:
        raise UsageError(
            f"{option}: an address with a password would be kept in the run; see docs/report.md for tokens"
        )
    if not is_usable:
        raise UsageError(f"{option} {shown}: expected an address to write to, such as {EXAMPLES[kind]}")
    return SinkAddress(kind, url)
