"""Questions about many logs, each a plain function over Arrow tables that Spark distributes."""
