"""Streams and running quorums in a real session, and a stream through kills: of leaders, and of its own program."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fastquorum.spark
from fastquorum.spark.scan import read_table
from tests.api.nodes import CLUSTER_ID
from tests.cli.controllers import controller
from tests.spark.tables.directories import batch
from tests.spark.test_following_directories import Replicas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stream(spark: "SparkSession", **options: Any) -> "DataFrame":
    return spark.readStream.format("fastquorum").options(**options).load()


def test_a_running_quorum_is_read_and_streamed(spark: "SparkSession", tmp_path: Path) -> None:
    with controller(tmp_path) as running:
        running.join(11, 12)
        at = running.address
        now = read_table(bootstrap=at).num_rows  # it grows: nobody hears from the brokers any more
        for table in ("records", "brokers"):
            options = {"bootstrap": at, "table": table, "asOfOffset": now}
            found = spark.read.format("fastquorum").options(**options).load().toArrow()
            assert found.to_pylist() == read_table(**options).cast(found.schema).to_pylist()
        beyond = spark.read.format("fastquorum").option("bootstrap", at).option("fromOffset", 1_000_000)
        assert beyond.load().count() == 0
        frame = stream(spark, bootstrap=at, maxOffsetsPerTrigger=10).where("offset >= 2").select("offset", "type")
        sink = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))

        def run_out() -> Any:
            query = sink.option("path", str(tmp_path / "out")).trigger(availableNow=True).start()
            assert query.awaitTermination(120)
            return query

        query = run_out()
        ends = [json.loads(each.sources[0].endOffset)[CLUSTER_ID] for each in query.recentProgress]
        assert ends[0] == 10
        assert 10 < ends[-1] <= read_table(bootstrap=at).num_rows
        lags = [fastquorum.spark.lag(each) for each in query.recentProgress]
        assert lags[0][CLUSTER_ID] > 0  # type: ignore[index]
        running.join(13)
        (end,) = json.loads(run_out().lastProgress.sources[0].endOffset).values()  # it goes on from its checkpoint
        assert end > ends[-1]
        rows = spark.read.parquet(str(tmp_path / "out")).orderBy("offset").toArrow()
        expected = read_table(bootstrap=at, fromOffset=2, toOffset=end, columns="offset,type")
        assert rows.to_pylist() == expected.to_pylist()


def test_directories_are_followed_and_what_cannot_be_is_said(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    replicas = Replicas(tmp_path, 1, 2, 3)
    replicas.append(batch(0, 4), 1, 2, 3)
    frame = stream(spark, path=str(tmp_path), committed="majority").select("node_id", "offset")
    query = frame.writeStream.format("memory").queryName("followed").trigger(processingTime="100 milliseconds").start()
    query.processAllAvailable()
    replicas.append(batch(4, 2), 1, 2)
    replicas.append(batch(6, 1), 1)
    query.processAllAvailable()
    query.stop()
    found = spark.sql("select node_id, max(offset), count(*) from followed group by node_id order by node_id").collect()
    assert [tuple(row) for row in found] == [(1, 5, 6), (2, 5, 6), (3, 3, 4)]
    refused = stream(spark, path=str(tmp_path)).writeStream.format("memory").queryName("refused").start()
    with pytest.raises(StreamingQueryException, match=r"UsageError: nothing names the voters of cluster a-cluster"):
        refused.awaitTermination()
