"""`latency`: percentiles of commits and their stages over many runs, merged exactly; and what became slower.

From results of `fastquorum load`, HdrHistogram logs and traces. Histograms of one layout are added, count by count, so
that a percentile of many runs is what one histogram of them all would have said: never an average of percentiles.
Needs pyarrow and numpy, and no JVM.
"""
