"""Users that are processes: what tree.xml and the journals say about each, and which of its samples they have."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from framestorm.model.cause import TIMEOUTS, user_cause
from framestorm.model.sample import INDEX_LIMIT, Line

Indices = NDArray[np.signedinteger]
ByteFlags = NDArray[np.uint8]
INPUT, INPUT_CHARACTERS = "video", 12  # in a user's last line, the beginning of its SHA-256 (client/user.py)
LONGEST_CAUSE = 200  # as of samples in jmx/java/plan/ClientSample.java
IN_TREE, IN_JOURNAL, IN_BOTH = 1, 2, 3
_TO_BOTH = bytes.maketrans(bytes([IN_JOURNAL]), bytes([IN_BOTH]))
_NOT_IN_TREE = bytes.maketrans(bytes([IN_TREE, IN_BOTH]), bytes([0, IN_JOURNAL]))


@dataclass(slots=True)
class UserHistory:
    """What is known about one user; elapsed_ms is JMeter's (the whole process) or, without it, the client's own.

    thread: JMeter's; planned_samples, samples: how many it said it would have, and how many it had.
    input: how the SHA-256 of what it sent begins.
    in_tree: JMeter's sample of the user is; places: which of the tree's users it is.
    tree_samples, tree_ok: how many samples the tree has of it, and how many of them without error; journal_ok: how many
        without error the journal has; is_repeated: whether the journal has a sample twice.
    is_known: which of its samples the tree has was looked up, line by line.
    """

    user: str
    host: str
    number: int
    thread: str = ""
    start_ms: float | None = None
    elapsed_ms: float | None = None
    ok: bool | None = None
    cause: str | None = None
    causes: tuple[str, ...] = ()
    input: str | None = None
    planned_samples: int = 0
    samples: int | None = None
    in_tree: bool = False
    has_last_line: bool = False
    places: list[int] = field(default_factory=list)
    tree_samples: int = 0
    tree_ok: int = 0
    journal_ok: int = 0
    has_journal_end: bool = False
    is_repeated: bool = False
    is_known: bool = False
    # For each of its samples, by index: IN_TREE, IN_JOURNAL, both flags, or 0.
    sources: bytearray = field(default_factory=bytearray)

    def append(self, first: int, n: int, source: int) -> bool:
        """Record n samples from that index on in a source; returns False if the samples before are not all known."""
        if first != len(self.sources):
            return False
        self.sources += bytes([source]) * n
        return True

    def add(self, indices: Indices, source: int) -> ByteFlags:
        """Record that the samples with those indices are in that source; returns the sources recorded before each."""
        self.sources.extend(bytes(max(0, int(indices.max()) + 1 - len(self.sources))))
        sources = np.frombuffer(self.sources, np.uint8)
        before: ByteFlags = sources[indices]
        if (indices[1:] <= indices[:-1]).any():
            is_repeated = np.ones(indices.size, bool)
            is_repeated[np.unique(indices, return_index=True)[1]] = False
            before[is_repeated] |= source
        sources[indices] |= np.uint8(source)
        self.is_repeated |= source == IN_JOURNAL and bool((before & IN_JOURNAL).any())
        return before

    def are_in_tree(self, indices: Indices) -> NDArray[np.bool_]:
        """Return whether the tree has each of the samples with those indices."""
        is_there: NDArray[np.bool_] = np.frombuffer(self.sources, np.uint8)[indices] & IN_TREE != 0
        return is_there

    @property
    def is_equal(self) -> bool:
        """Whether tree and journal have the same samples of the user.

        They have if both have as many, which are the first ones, and all that the user says there are.
        """
        n = len(self.sources)
        has_others = self.is_repeated or 0 in self.sources or IN_TREE in self.sources
        return self.tree_samples == n and self.samples in (None, n) and not has_others

    @property
    def is_complete(self) -> bool:
        """Whether it is known which samples of the user the tree has, before the end of the journal."""
        return not self.tree_samples or self.is_known or (self.has_journal_end and self.is_equal)

    def take_tree_as_journal(self) -> None:
        """Record that the tree has the samples that the journal has."""
        self.sources = self.sources.translate(_TO_BOTH)

    def forget_tree(self) -> None:
        """Record that the tree has none of its samples: they are looked up."""
        self.sources = self.sources.translate(_NOT_IN_TREE)

    @property
    def ended(self) -> bool:
        return self.in_tree or self.has_last_line

    @property
    def was_killed(self) -> bool:
        """Whether a client ended without a word of its own, and not by its timeout."""
        cut_off = self.in_tree and not self.has_last_line and self.planned_samples > 0
        return cut_off and (self.cause or "").startswith("exit-")

    @property
    def censored(self) -> bool:
        """Whether the elapsed time is only a lower bound: the user, or each of its failed samples, timed out."""
        if not self.ended or self.ok:
            return False
        return self.cause == "user-timeout" or (bool(self.causes) and TIMEOUTS.issuperset(self.causes))

    def end_by_tree(self, attributes: dict[str, str], last_line: Line) -> None:
        """Take what JMeter's sample of the user says: its attributes, and the last line of its output."""
        self.in_tree = True
        self.start_ms = finite(attributes.get("ts"))
        self.elapsed_ms = finite(attributes.get("t"))
        self.ok = attributes.get("s") == "true"
        if last_line:
            self._end(last_line)
        if not self.ok:
            # The cause set by the plan has priority over the client's last one, and that over an exit status alone.
            cause = user_cause(attributes.get("rc", ""), attributes.get("rm", ""))
            self.cause = self.cause if last_line and self.cause and cause.startswith("exit-") else cause
            self.causes = self.causes or (self.cause,)

    def take_journal_line(self, line: Line) -> None:
        """Take the first or the last line of the user in the journal; what the tree says has priority."""
        if self.start_ms is None:
            self.start_ms = finite(line.get("start_ms"))
        if line["type"] == "start":
            self.planned_samples = int(min(finite(line.get("samples")) or 0, INDEX_LIMIT + 1))
            return
        self.has_journal_end = True
        if not self.in_tree:
            self.elapsed_ms = finite(line.get("duration_ms"))
            self.ok = line.get("ok") is True
            self._end(line)

    def _end(self, last_line: Line) -> None:
        self.has_last_line = True
        causes, cause, digest, samples = (last_line.get(name) for name in ("causes", "cause", INPUT, "samples"))
        self.samples = samples if isinstance(samples, int) else None
        self.input = digest[:INPUT_CHARACTERS] if isinstance(digest, str) else None
        self.cause = " ".join(cause.split())[:LONGEST_CAUSE] if isinstance(cause, str) else None
        self.causes = tuple(causes) if isinstance(causes, dict) and causes else (self.cause,) if self.cause else ()


def finite(value: object) -> float | None:
    """Return a value as a finite number; None if it is none."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
