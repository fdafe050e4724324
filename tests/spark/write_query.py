"""A driver in a process of its own: a streaming query from Parquet to a quorum, `python -m tests.spark.write_query`.

Says what happens as JSON lines on stdout: running, finished, failed. The line `finish` on stdin has it write all that
is there, and end.
"""

import argparse
import json
import sys
import threading
from typing import Any

import fastquorum.spark

BATCH_BYTES = 1024
"""A few rows each: a partition is many appends, so that whatever is killed is killed in the middle of them."""


def say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("source", "checkpoint", "bootstrap", "master"):
        parser.add_argument(name)
    arguments = parser.parse_args()
    config = {"spark.driver.memory": "768m", "spark.executor.memory": "512m"}
    spark = fastquorum.spark.session("write_query", arguments.master, config)
    rows = spark.readStream.schema("value string").option("maxFilesPerTrigger", 2).parquet(arguments.source)
    writer = rows.writeStream.format("fastquorum").option("checkpointLocation", arguments.checkpoint)
    query = writer.options(bootstrap=arguments.bootstrap, batchBytes=BATCH_BYTES).start()
    say("running", query=str(query.id))

    def watch() -> None:
        try:
            query.awaitTermination()
        except Exception as error:
            say("failed", error=str(error))
            raise

    threading.Thread(target=watch, daemon=True).start()
    for line in sys.stdin:
        if line.strip() == "finish":
            query.processAllAvailable()
            query.stop()
            say("finished")
            break
    spark.stop()


if __name__ == "__main__":
    main()
