"""Framestorm's conductor: sets a run up, drives JMeter, watches it, reads the results, judges them and shows them."""

__version__ = "0.1.0"
