"""The pipelines over whole clusters: in this process, or on Spark. Both give the same tables."""
