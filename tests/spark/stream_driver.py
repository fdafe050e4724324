"""A program that streams from a quorum to Parquet, in a process of its own:
`python -m tests.spark.stream_driver BOOTSTRAP DIRECTORY`.

It goes on from the checkpoint in the directory, if there is one. Says as JSON lines on stdout: started, batch (what was
read, from where to where), failed, stopped, dumped. Takes one command a line on stdin: `stop`, and `dump`, which writes
what the Parquet holds, as Spark reads it, into one file. It dies with whoever started it.
"""

import ctypes
import json
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet

import fastquorum.spark

_PR_SET_PDEATHSIG = 1
OFFSETS_MAX = 2000
"""Most offsets of a micro-batch, so that there are many of them."""


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


def _obey(commands: "queue.Queue[str]") -> None:
    for line in sys.stdin:
        commands.put(line.strip())
    commands.put("stop")


def start(spark: Any, bootstrap: str, directory: Path) -> Any:
    frame = (
        spark.readStream.format("fastquorum")
        .option("bootstrap", bootstrap)
        .option("maxOffsetsPerTrigger", OFFSETS_MAX)
        .option("columns", "offset,is_control,value")
        .load()
    )
    return (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .option("path", str(directory / "out"))
        .start()
    )


def follow(query: Any, commands: "queue.Queue[str]") -> None:
    """Until it is told to stop, or the query fails."""
    reported = -1
    while True:
        query.awaitTermination(0.05)
        for each in map(dict, query.recentProgress):
            if each["batchId"] > reported and each["numInputRows"]:
                reported = each["batchId"]
                (source,) = each["sources"]
                start, end = json.loads(source["startOffset"]), json.loads(source["endOffset"])
                say("batch", number=reported, start=start, end=end, rows=each["numInputRows"])
        if not commands.empty():
            return


def main(bootstrap: str, place: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    directory = Path(place)
    commands: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_obey, args=(commands,), daemon=True).start()
    spark = fastquorum.spark.session("stream", "local[1]", {"spark.driver.memory": "512m", "spark.log.level": "ERROR"})
    try:
        query = start(spark, bootstrap, directory)
        say("started")
        follow(query, commands)
        while (command := commands.get()) != "stop":
            if command == "dump":
                query.stop()
                table = spark.read.parquet(str(directory / "out")).selectExpr("*", "_metadata.file_name").toArrow()
                pyarrow.parquet.write_table(table, directory / "dump.parquet")
                say("dumped", rows=table.num_rows)
        query.stop()
    except Exception as error:
        say("failed", text=str(error))
        raise
    spark.stop()
    say("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
