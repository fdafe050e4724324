"""A Spark session that works wherever it is started: its Java, its packages, its end."""
