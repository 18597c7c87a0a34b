"""How the body of an answer is compressed, although nobody asked for that."""

from collections.abc import Mapping

# What urllib3 takes off; in other codings, such as zstd, an answer stays as it came.
_CODINGS = {"identity", "gzip", "x-gzip", "deflate"}


def is_readable(headers: Mapping[str, str]) -> bool:
    """Return whether an answer is in no coding but those that are taken off."""
    return _CODINGS.issuperset(headers.get("Content-Encoding", "").lower().replace(",", " ").split())
