"""Raw files to frames.csv: one tidy row a frame, from the tree, and from the journal what the tree does not have."""

import csv
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framestorm.report.tree import TreeEnd, TreeSample, json_lines, read_tree

LINE_FIELDS = (
    "user", "index", "intended_ms", "start_ms", "rtt_ms", "handler_ms", "model_ms", "status", "ok", "cause", "censored",
    "sent_bytes", "received_bytes", "faces", "cold", "verified", "worker",
)  # fmt: skip
FRAME_FIELDS = (*LINE_FIELDS, "host", "thread", "source")
# Far beyond any video; a larger index is damage, and would cost memory.
INDEX_LIMIT = 10_000_000
IN_TREE, IN_JOURNAL = 1, 2
# Failures of frames in which time ran out.
TIME_CAUSES = frozenset({"timeout", "status-504"})
_CAUSE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(slots=True)
class User:
    """One user as far as known; elapsed_ms is JMeter's (the whole process) or, without it, the client's own."""

    user: str
    host: str
    start_ms: float | None = None
    elapsed_ms: float | None = None
    ok: bool | None = None
    cause: str | None = None
    causes: tuple[str, ...] = ()
    planned_frames: int | None = None
    in_tree: bool = False
    said_end: bool = False
    seen: bytearray = field(default_factory=bytearray)

    def mark(self, index: int, where: int) -> tuple[int, bool]:
        """Note that frame `index` was seen; returns where it had been seen before, and whether there just now."""
        if index >= len(self.seen):
            self.seen.extend(bytes(index + 1 - len(self.seen)))
        before = self.seen[index]
        self.seen[index] = before | where
        return before, bool(before & where)

    @property
    def ended(self) -> bool:
        return self.in_tree or self.said_end

    @property
    def censored(self) -> bool:
        """Whether the elapsed time is only a lower bound: time ran out, for the user or for frames and nothing else."""
        if not self.ended or self.ok:
            return False
        return self.cause == "user-timeout" or (bool(self.causes) and TIME_CAUSES.issuperset(self.causes))


@dataclass
class Merged:
    """What reading tree and journal gave beside frames.csv; all numbers are of frames unless they say otherwise."""

    users: dict[str, User] = field(default_factory=dict)
    tree: TreeEnd = field(default_factory=lambda: TreeEnd(None, 0))
    journal_problem: str | None = None
    journal_found: bool = False
    frames: int = 0
    from_tree: int = 0
    from_journal: int = 0
    from_killed_users: int = 0
    tree_duplicates: int = 0
    journal_duplicates: int = 0
    tree_bad_lines: int = 0
    journal_bad_lines: int = 0


def merge(run_dir: Path, table: Path) -> Merged:
    """Stream tree.xml and the journals of `run_dir` into the CSV file `table`.

    Memory grows by one byte a frame and some hundred bytes a user.
    """
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FRAME_FIELDS)
        merger = _Merger(writer)
        merger.merged.tree = read_tree(run_dir / "tree.xml", merger.tree_frame, merger.tree_user)
        for path in journals(run_dir):
            merger.journal(path)
    return merger.merged


def journals(run_dir: Path) -> list[Path]:
    """The journal of this machine and those fetched from other hosts."""
    return [path for path in [run_dir / "journal.jsonl", *sorted(run_dir.glob("journal-*.jsonl"))] if path.exists()]


class _Merger:
    def __init__(self, writer: Any) -> None:
        self.merged = Merged()
        self._write = writer.writerow
        self._unnamed = 0

    def tree_frame(self, text: str, outer: TreeSample) -> None:
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        self._tree_line(line, outer)

    def _tree_line(self, line: Any, outer: TreeSample) -> None:
        if not is_frame(line):
            self.merged.tree_bad_lines += 1
            return
        attributes = outer.attributes
        user = self._user(line["user"], attributes.get("hn"))
        # The user's own sample is not read yet: this is how it will know whose it is.
        attributes["user"] = user.user
        if user.mark(line["index"], IN_TREE)[1]:
            self.merged.tree_duplicates += 1
            return
        self.merged.from_tree += 1
        self._row(line, user, attributes.get("tn", ""), "tree")

    def tree_user(self, sample: TreeSample) -> None:
        text, attributes = "".join(sample.text), sample.attributes
        said: dict[str, Any] = {}
        # Lines of the process's output that the plan made no sub-results of are frames all the same.
        if text.count('"frame"') > sample.frames:
            for line in json_lines(text):
                if is_frame(line) and not self._in_tree(line):
                    self._tree_line(line, sample)
        for line in json_lines(text[text.rfind("\n{", 0, len(text.rstrip())) + 1 :]):
            if line.get("type") == "user" and isinstance(line.get("user"), str):
                said = line
        name = said.get("user") or attributes.get("user")
        if name is None:
            self._unnamed += 1
            name = f"unnamed-{self._unnamed}"
        user = self._user(name, attributes.get("hn"))
        user.in_tree = True
        user.start_ms = _number(attributes.get("ts"))
        user.elapsed_ms = _number(attributes.get("t"))
        user.ok = attributes.get("s") == "true"
        if said:
            self._said_end(user, said)
        if not user.ok:
            # The plans' own word goes before what the client said last, and that before a bare exit status.
            seen = exit_cause(attributes.get("rc", ""), attributes.get("rm", ""))
            user.cause = user.cause if said and user.cause and seen.startswith("exit-") else seen
            user.causes = user.causes or (user.cause,)

    def journal(self, path: Path) -> None:
        self.merged.journal_found = True
        with path.open("rb") as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    self.merged.journal_problem = f"{path.name} ends in the middle of a line; the line was left out"
                    break
                try:
                    line = json.loads(raw)
                except ValueError:
                    line = None
                self._journal_line(line)

    def _journal_line(self, line: Any) -> None:
        kind = line.get("type") if isinstance(line, dict) else None
        if kind == "frame" and is_frame(line):
            user = self._user(line["user"], None)
            before, again = user.mark(line["index"], IN_JOURNAL)
            if again:
                self.merged.journal_duplicates += 1
            elif not before:
                self.merged.from_journal += 1
                # Ended by JMeter before it could say so: what it still wrote to the journal is no loss on the way.
                self.merged.from_killed_users += user.in_tree and not user.said_end
                self._row(line, user, "", "journal")
        elif kind in ("start", "user") and isinstance(line.get("user"), str):
            user = self._user(line["user"], None)
            if user.start_ms is None:
                user.start_ms = _number(line.get("start_ms"))
            if kind == "start":
                user.planned_frames = int(_number(line.get("frames")) or 0)
            elif not user.in_tree:
                user.elapsed_ms = _number(line.get("duration_ms"))
                user.ok = line.get("ok") is True
                self._said_end(user, line)
        else:
            self.merged.journal_bad_lines += 1

    def _said_end(self, user: User, line: dict[str, Any]) -> None:
        user.said_end = True
        causes = line.get("causes")
        cause = line.get("cause")
        user.cause = cause if isinstance(cause, str) else None
        user.causes = tuple(causes) if isinstance(causes, dict) and causes else (user.cause,) if user.cause else ()

    def _in_tree(self, line: dict[str, Any]) -> bool:
        user = self.merged.users.get(line["user"])
        return user is not None and line["index"] < len(user.seen) and bool(user.seen[line["index"]] & IN_TREE)

    def _user(self, name: str, host: str | None) -> User:
        user = self.merged.users.get(name)
        if user is None:
            # The client names a user <host>-<pid>-<start in ms>.
            user = self.merged.users[name] = User(name, host or name.rsplit("-", 2)[0])
        return user

    def _row(self, line: dict[str, Any], user: User, thread: str, source: str) -> None:
        self.merged.frames += 1
        self._write([*(cell(line.get(name)) for name in LINE_FIELDS), user.host, thread, source])


def is_frame(line: Any) -> bool:
    """Whether a parsed line is a frame that can be counted: it has user, index and start, and its times are numbers."""
    return (
        isinstance(line, dict)
        and line.get("type") == "frame"
        and isinstance(line.get("user"), str)
        and type(line.get("index")) is int
        and 0 <= line["index"] < INDEX_LIMIT
        and _time(line.get("start_ms"))
        and (line.get("rtt_ms") is None or _time(line["rtt_ms"]))
    )


def _time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def cell(value: Any) -> Any:
    """A JSON value as a CSV cell: empty for null, true and false in lower case."""
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    return value


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def exit_cause(code: str, message: str) -> str:
    """Why a user failed: the plans' own word, or without it from JMeter's code and message (SystemSampler)."""
    if _CAUSE.fullmatch(message):
        return message
    words = message.lower()
    if "process timeout" in words or "timed out" in words:
        return "user-timeout"
    if "interrupted" in words:
        return "stopped"
    return "not-started" if code == "500" else f"exit-{code or 'unknown'}"
