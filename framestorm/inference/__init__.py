"""What is claimed of differences, whether they are regressions, and the words for it; knows neither runs nor files."""
