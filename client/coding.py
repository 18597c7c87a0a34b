"""How the body of an answer is compressed, although nobody asked for that."""

from collections.abc import Mapping

# What urllib3 takes off; in other codings, such as zstd, an answer stays as it came.
_TAKEN_OFF = {"gzip", "x-gzip", "deflate"}


def codings(headers: Mapping[str, str]) -> list[str]:
    """Return the codings of an answer as they were applied, one after the other; `identity` is none."""
    named = headers.get("Content-Encoding", "").lower().replace(",", " ").split()
    return [name for name in named if name != "identity"]


def is_readable(headers: Mapping[str, str]) -> bool:
    """Return whether an answer is in no coding but those that are taken off."""
    return _TAKEN_OFF.issuperset(codings(headers))
