"""The data pipeline on Spark: what a read costs beside the same without Spark, and how it grows with cores, logs and
bytes. Needs the extra `spark`."""
