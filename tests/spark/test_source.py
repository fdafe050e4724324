"""The data source in a real session: the same rows as without Spark, and errors that say what there is."""

import functools
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fastquorum.controller.image.view import sections_view
from fastquorum.kernels import load
from fastquorum.spark.scan import read_table
from fastquorum.spark.tables import TABLES
from fastquorum.storage.images import fold_snapshot
from fastquorum.storage.io.opening import open_offline
from tests.guide.documents import block_of
from tests.spark.tables.test_records import dumped
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KERNELS = load("native")


def read(spark: "SparkSession", table: str, path: Path = CLUSTER, **options: Any) -> "DataFrame":
    return spark.read.format("fastquorum").options(table=table, **options).load(str(path))


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_is_in_spark_what_it_is_without(spark: "SparkSession", name: str) -> None:
    found = read(spark, name).toArrow()
    expected = read_table(str(CLUSTER), name)
    assert found.schema.names == expected.schema.names
    key = [(column, "ascending") for column in ("directory", *(set(expected.schema.names) & {"offset", "base_offset"}))]
    assert found.sort_by(key).to_pylist() == expected.cast(found.schema).sort_by(key).to_pylist()


def test_sql_over_records_agrees_with_kafkas_dump_record_for_record(spark: "SparkSession") -> None:
    read(spark, "records", splitBytes=40_000).createOrReplaceTempView("records")
    query = "select offset, epoch, unix_millis(timestamp) time, length(value) bytes, is_control, type, version, data "
    rows = spark.sql(query + ", node_id from records order by node_id, offset").toArrow().to_pylist()
    found: dict[int, list[dict[str, Any]]] = {1: [], 2: [], 3: []}
    for row in rows:
        found[row.pop("node_id")].append(row | {"data": json.loads(row["data"])})
    of_most, of_last_leader = (list(dumped(f"dump-{name}.txt.gz")) for name in ("c1", "c2"))
    assert found == {1: of_most, 2: of_last_leader, 3: of_most}


def test_the_image_at_each_real_checkpoints_offset_is_that_checkpoint(spark: "SparkSession") -> None:
    log = open_offline(str(CLUSTER / "c1"), KERNELS)
    images = [read(spark, "image", CLUSTER / "c1", asOfOffset=each.offset) for each in log.checkpoints]
    rows = functools.reduce(lambda one, other: one.union(other), images).collect()
    found = Counter((row["end_offset"], row["section"], row["key"] or "", row["data"]) for row in rows)
    assert found == Counter(
        (each.offset, section, key, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        for each in log.checkpoints
        for section, things in sections_view(fold_snapshot(log, KERNELS, each).image)
        for key, value in things
    )


def test_metadata_can_be_asked_as_a_variant(spark: "SparkSession") -> None:
    read(spark, "records", CLUSTER / "c1", types="TOPIC_RECORD").createOrReplaceTempView("topics")
    query = "select variant_get(parse_json(data), '$.name', 'string') name from topics order by offset"
    names = [row["name"] for row in spark.sql(query).collect()]
    assert names == [each["data"]["name"] for each in dumped("dump-c1.txt.gz") if each["type"] == "TOPIC_RECORD"]


def test_a_schema_of_ones_own_reads_only_its_columns(spark: "SparkSession") -> None:
    found = spark.read.format("fastquorum").schema("type string, offset bigint").load(str(CLUSTER / "c1"))
    assert found.columns == ["type", "offset"]
    assert found.where("type = 'LEADER_CHANGE'").count() == 2


def test_an_explain_tells_which_columns_are_read(spark: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    """Spark asks a Python source for its whole schema, whatever is selected; option `columns` makes that smaller."""
    read(spark, "records", CLUSTER / "c1", columns="offset,type").select("offset").explain("formatted")
    output = capsys.readouterr().out
    assert "ReadSchema: struct<offset:bigint,type:string>" in output
    read(spark, "records", CLUSTER / "c1").select("offset").explain("formatted")
    assert "value:binary" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "recods"}, "there is no table 'recods'; the tables are base, batches, "),
        ({"table": "records", "fromOfset": "1"}, "there is no option 'fromofset'; the options are "),
    ],
    ids=["table", "option"],
)
def test_what_nobody_knows_is_refused_with_what_there_is(
    spark: "SparkSession", options: dict[str, str], message: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=message):
        read(spark, **options)


def test_a_list_of_paths_is_read(spark: "SparkSession") -> None:
    found = spark.read.format("fastquorum").load([str(CLUSTER / "c1"), str(CLUSTER / "c3")])
    assert {row["node_id"] for row in found.select("node_id").distinct().collect()} == {1, 3}


def test_structs_can_be_asked_by_name(spark: "SparkSession") -> None:
    found = read(spark, "records", CLUSTER / "c1", typed="true", types="PARTITION_CHANGE_RECORD,TOPIC_RECORD")
    found.createOrReplaceTempView("typed")
    query = "select partition_change_record.isr from typed where size(partition_change_record.isr) < 3"
    expected = [
        each["data"]["isr"]
        for each in dumped("dump-c1.txt.gz")
        if each["type"] == "PARTITION_CHANGE_RECORD" and len(each["data"].get("isr", [1, 2, 3])) < 3
    ]
    assert [row["isr"] for row in spark.sql(query + " order by offset").collect()] == expected


def test_queries_over_one_load_do_not_share_their_filters(spark: "SparkSession") -> None:
    """Up to Spark 4.3 the scans of one load share what the last one pushed down: nothing is."""
    loaded = read(spark, "records", CLUSTER / "c1")
    counts = [loaded.where(each).count() for each in ("offset < 10", "offset >= 3000", "true")]
    assert counts == [10, 836, 3836]
    assert loaded.where("offset < 10").union(loaded.where("offset >= 3000")).count() == 846
    with pytest.raises(ValueError, match="option pushdown is gone"):
        read_table(str(CLUSTER / "c1"), pushdown=True)


def test_the_guides_examples_run(spark: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    example = block_of("analyze", "from fastquorum.spark import session\n")
    exec(example.replace("/var/lib/controllers/*", f"{CLUSTER}/*"), {})
    assert "|    1| 2440|" in capsys.readouterr().out
    example = block_of("analyze", "from fastquorum.spark import plain_errors")
    exec(example.replace("/var/lib/controllers/*", f"{CLUSTER}/c1"), {})
    batches = read_table(str(CLUSTER / "c1"), "batches").num_rows
    assert capsys.readouterr().out.splitlines()[-1] == str(batches)
