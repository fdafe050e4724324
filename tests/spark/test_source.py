"""The data source in a real session: the same rows as without Spark, and errors that say what there is."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fastquorum.spark.scan import read_table
from fastquorum.spark.tables import TABLES
from tests.conftest import ROOT
from tests.spark.tables.test_records import dumped
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: "SparkSession", table: str, path: Path = CLUSTER, **options: Any) -> "DataFrame":
    return spark.read.format("fastquorum").options(table=table, **options).load(str(path))


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_is_in_spark_what_it_is_without(spark: "SparkSession", name: str) -> None:
    found = read(spark, name).toArrow()
    expected = read_table(str(CLUSTER), name)
    assert found.schema.names == expected.schema.names
    key = [(column, "ascending") for column in ("directory", *(set(expected.schema.names) & {"offset", "base_offset"}))]
    assert found.sort_by(key).to_pylist() == expected.cast(found.schema).sort_by(key).to_pylist()


@pytest.mark.parametrize("replica", ["c1", "c2"])
def test_sql_over_records_agrees_with_kafkas_dump_record_for_record(spark: "SparkSession", replica: str) -> None:
    read(spark, "records", CLUSTER / replica, splitBytes=40_000).createOrReplaceTempView("records")
    query = "select offset, epoch, unix_millis(timestamp) time, length(value) bytes, is_control, type, version, data "
    rows = spark.sql(query + "from records order by offset").collect()
    assert [row.asDict() | {"data": json.loads(row["data"])} for row in rows] == list(dumped(f"dump-{replica}.txt.gz"))


def test_metadata_can_be_asked_as_a_variant(spark: "SparkSession") -> None:
    read(spark, "records", CLUSTER / "c1", types="TOPIC_RECORD").createOrReplaceTempView("topics")
    query = "select variant_get(parse_json(data), '$.name', 'string') name from topics order by offset"
    names = [row["name"] for row in spark.sql(query).collect()]
    assert names == [each["data"]["name"] for each in dumped("dump-c1.txt.gz") if each["type"] == "TOPIC_RECORD"]


def test_a_schema_of_ones_own_reads_only_its_columns(spark: "SparkSession") -> None:
    found = spark.read.format("fastquorum").schema("type string, offset bigint").load(str(CLUSTER / "c1"))
    assert found.columns == ["type", "offset"]
    assert found.where("type = 'LEADER_CHANGE'").count() == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "recods"}, "there is no table 'recods'; the tables are base, batches, "),
        ({"table": "records", "fromOfset": "1"}, "there is no option 'fromofset'; the options are "),
    ],
    ids=["table", "option"],
)
def test_what_nobody_knows_is_refused_with_what_there_is(
    spark: "SparkSession", options: dict[str, str], said: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=said):
        read(spark, **options)


def test_the_readmes_example_runs(spark: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"```python\n(from fastquorum\.spark import session\n.*?)```", text, re.DOTALL)
    exec(example.replace("/var/lib/controllers/*", f"{CLUSTER}/*"), {})
    assert "|    1| 2440|" in capsys.readouterr().out
