"""Framestorm's conductor: sets a run up, drives JMeter, watches it, reads the results, judges them and shows them."""

import os

__version__ = "0.1.0"

# Polars reads it as it is loaded. Its allocator otherwise keeps freed memory for seconds: the report of 10,000,000
# samples then takes more than 1 GB. To give it back at once costs a third more CPU time.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:200,muzzy_decay_ms:0")
