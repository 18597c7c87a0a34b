"""The header by which a tracing system finds a request: W3C Trace Context, as in jmx/java/plan/Traceparent.java."""

import os
import re
from collections.abc import Mapping

NAME = "traceparent"
NEW = "new"  # as --trace has it
_WRITTEN = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*", re.DOTALL)


class Traceparent:
    """The header of one user or connection, by the headers that it was given.

    trace_id: that of the last request; None if it has none.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        value = next((value for name, value in headers.items() if name.lower() == NAME), "")
        self._is_new = value == NEW
        self.trace_id = _id_of(value)

    def renewed(self) -> dict[str, str]:
        """Return the header of the next request; nothing if all have the same, or none."""
        if not self._is_new:
            return {}
        value = f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"
        self.trace_id = _id_of(value)
        return {NAME: value}

    @property
    def figures(self) -> dict[str, str]:
        """What a sample has of it."""
        return {"trace_id": self.trace_id} if self.trace_id else {}


def _id_of(value: str) -> str | None:
    written = _WRITTEN.fullmatch(value)
    return written[1] if written else None
