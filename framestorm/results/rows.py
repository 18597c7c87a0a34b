"""Rows of samples.csv: those that wait to be written, and the file, with a column for each figure."""

from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from framestorm.model.sample import COMMON, ORIGIN
from framestorm.results.cells import inert
from framestorm.results.users import Indices


class RowBuffer:
    """Rows of samples.csv. A further figure that comes later than the first row is a further column of all rows."""

    def __init__(self, body: IO[bytes]) -> None:
        self._body = body
        self._columns = dict.fromkeys([*COMMON, *ORIGIN])
        self._header: list[str] = []

    def add(self, samples: pl.DataFrame, names: Iterable[str]) -> None:
        """Add samples with host, thread and source; `names` are their fields as they first came."""
        self._columns |= dict.fromkeys(name for name in names if name in samples.columns)
        self._header = self._header or self._begin()
        cells = [pl.col(name) if name in samples.columns else pl.lit(None).alias(name) for name in self._columns]
        texts = samples.select(cells).with_columns(pl.col(pl.String).replace("", None))
        texts.with_columns(inert()).write_csv(self._body, include_header=False)

    def save(self, table: Path) -> None:
        """Make the rows the file `table`."""
        header = self._header or self._begin()
        self._body.flush()
        if len(header) == len(self._columns):
            Path(self._body.name).replace(table)
        else:
            # The rows before the further columns are shorter.
            schema = dict.fromkeys(self._columns, pl.String)
            rows = pl.scan_csv(self._body.name, has_header=False, skip_rows=1, schema=schema, missing_columns="insert")
            rows.sink_csv(table)

    def _begin(self) -> list[str]:
        self._body.write(",".join(self._columns).encode() + b"\n")
        return list(self._columns)


class Waiting:
    """Samples of the journal that are not written yet, in the order of their lines: the user and index of each."""

    def __init__(self) -> None:
        # By their numbers.
        self.users: Indices = np.empty(0, np.int32)
        self.indices: Indices = np.empty(0, np.int32)
        self.samples: list[pl.DataFrame] = []

    def __len__(self) -> int:
        return self.users.size

    def add(self, users: Indices, indices: Indices, samples: pl.DataFrame) -> None:
        """Add samples, with the user and the index of each."""
        self.users = np.concatenate([self.users, users])
        self.indices = np.concatenate([self.indices, indices])
        self.samples.append(samples)

    def take(self, is_taken: NDArray[np.bool_]) -> tuple[Indices, Indices, pl.DataFrame]:
        """Take samples out, those of a user together: user and index of each, and their fields."""
        chosen = np.flatnonzero(is_taken)
        chosen = chosen[np.argsort(self.users[chosen], kind="stable")]
        samples = pl.concat(self.samples, how="diagonal_relaxed") if len(self.samples) > 1 else self.samples[0]
        taken = self.users[chosen], self.indices[chosen], samples[chosen]
        left = ~is_taken
        self.users, self.indices = self.users[left], self.indices[left]
        self.samples = [samples.filter(pl.Series(left))] if self.users.size else []
        return taken
