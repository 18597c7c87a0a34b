"""The live view of a run: its progress, its figures so far and those of the last seconds, from growing files."""
