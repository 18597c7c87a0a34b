"""Statistics of studies and comparisons: pure functions over numbers, each with the source of its formula.

All intervals are two-sided and of 95 % unless `level` says otherwise; an end that the data cannot give is None.
"""
