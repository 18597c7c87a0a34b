"""Rows kept by column in a temporary file, so that each step reads only what it needs, and no text a second time."""

import tempfile

import polars as pl


def spooled(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The same rows from a temporary file without a name, which is gone when they are.

    Raises:
        OSError: the temporary file cannot be written.
    """
    with tempfile.TemporaryFile() as file:
        try:
            rows.sink_parquet(file, compression="lz4", statistics=False)
        except pl.exceptions.ComputeError as error:
            if "os error" not in str(error):
                raise  # the rows themselves cannot be read
            raise OSError(f"a temporary file in {tempfile.gettempdir()}: {error}") from error
        file.seek(0)
        return pl.scan_parquet(file)
