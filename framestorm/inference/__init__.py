"""The one way to judge: evidence for figures and differences, and the claims that are put to it.

A study's hypotheses and a comparison's contrasts and thresholds are questions to this room; it knows neither runs nor
files, only values of repetitions and samples.
"""
