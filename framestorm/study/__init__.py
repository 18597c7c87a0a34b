"""Studies: a matrix of runs from a study.yml, repeated and in random order, and what comes of them in one page."""
