"""A CSV file that grows while a run goes on, on a disk that may be full for a while."""

import csv
import errno
import io
import os
from collections.abc import Sequence
from pathlib import Path

from framestorm.plain import note


class RowLog:
    """Appends rows to a file; those that cannot be written are left out, which is said once.

    unknown: what is not known then, in words.
    """

    def __init__(self, path: Path, fields: Sequence[str], unknown: str) -> None:
        self._path, self._fields, self._unknown = path, fields, unknown
        self._is_said = False

    def append(self, rows: Sequence[tuple[object, ...]]) -> bool:
        """Append rows, all or none, because a part of one would make the next one wrong; returns whether they are."""
        try:
            self._write(rows)
        except OSError as error:
            if not self._is_said:
                note(f"{self._path.name}: {error.strerror}; {self._unknown} will not be known for that time")
            self._is_said = True
            return False
        return True

    def _write(self, rows: Sequence[tuple[object, ...]]) -> None:
        with self._path.open("ab", buffering=0) as file:
            size, text = file.tell(), io.StringIO(newline="")
            csv.writer(text).writerows(rows if size else [self._fields, *rows])
            content = text.getvalue().encode()
            if file.write(content) != len(content):
                file.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
