"""What makes Spark find the data source by itself: it imports every module named `pyspark_...`, and registers its
`DefaultSource`. Source: pyspark/sql/worker/lookup_data_sources.py. Used by Spark alone.
"""

from fastquorum.spark.source import FastQuorumSource as DefaultSource

__all__ = ["DefaultSource"]
