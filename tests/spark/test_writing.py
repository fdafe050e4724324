"""`df.write` and `df.writeStream` in a real session, to real nodes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fastquorum.kernels import Header
from tests.api.nodes import Trio, trio
from tests.guide.documents import block_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    with trio(tmp_path_factory.mktemp("quorum")) as found:
        yield found


def bootstrap(nodes: Trio) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in nodes.ports)


def writing(frame: "DataFrame", nodes: Trio, **options: Any) -> "DataFrameWriter":
    return frame.write.format("fastquorum").mode("append").options(bootstrap=bootstrap(nodes), **options)


def records(nodes: Trio, from_offset: int) -> list[Any]:
    return [record for item in nodes.leader.committed(from_offset, follow=False) for record in item.records]


def values(nodes: Trio, from_offset: int) -> list[str]:
    return sorted((record.value or b"").decode() for record in records(nodes, from_offset))


def numbers(spark: "SparkSession", start: int, end: int, partitions: int = 3) -> "DataFrame":
    return spark.range(start, end, 1, partitions).selectExpr("cast(id as string) value")


def test_a_job_appends_its_rows_with_keys_and_headers(spark: "SparkSession", nodes: Trio) -> None:
    before = nodes.leader.end_offset
    columns = (
        "array(struct('n' as key, cast(string(id) as binary) as value)) headers",
        "if(id % 2 = 0, string(id), null) value",
        "cast(string(id) as binary) key",
    )
    writing(spark.range(0, 10, 1, 1).selectExpr(*columns), nodes).save()
    found = sorted(records(nodes, before), key=lambda each: int(each.key))
    assert [(each.key, each.value, each.headers) for each in found] == [
        (b"%d" % n, None if n % 2 else b"%d" % n, (Header("n", b"%d" % n),)) for n in range(10)
    ]


def test_a_job_with_a_name_is_done_once_and_one_without_each_time(spark: "SparkSession", nodes: Trio) -> None:
    before = nodes.leader.end_offset
    for options in ({"writer": "named"}, {"writer": "named"}, {}, {}):
        writing(numbers(spark, 0, 20, 2), nodes, **options).save()
    assert values(nodes, before) == sorted(3 * [str(each) for each in range(20)])
    with pytest.raises(Exception, match="of batch 0 of writer 'named': its rows 0 to 9 are not those"):
        writing(numbers(spark, 1, 21, 2), nodes, writer="named").save()
    for partitions in (1, 4):
        with pytest.raises(Exception, match="of batch 0 of writer 'named': its rows"):
            writing(numbers(spark, 0, 20, partitions), nodes, writer="named").save()
    assert len(values(nodes, before)) == 60


def replayed(checkpoint: Path) -> None:
    """Undo the note that the last batch was done, as if the query had been killed before it."""
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)


def streaming(spark: "SparkSession", source: Path, checkpoint: Path) -> Any:
    rows = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).parquet(str(source))
    return rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)


def test_a_query_appends_every_row_once_though_its_last_batch_is_replayed(
    spark: "SparkSession", nodes: Trio, tmp_path: Path
) -> None:
    before = nodes.leader.end_offset
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    numbers(spark, 0, 30, 2).write.parquet(str(source))
    for _ in range(2):
        query = streaming(spark, source, checkpoint).format("fastquorum").option("bootstrap", bootstrap(nodes)).start()
        query.awaitTermination()
        assert values(nodes, before) == sorted(str(each) for each in range(30))
        replayed(checkpoint)


def test_a_named_job_of_each_batch_is_done_once_though_the_batch_is_replayed(
    spark: "SparkSession", nodes: Trio, tmp_path: Path
) -> None:
    before = nodes.leader.end_offset
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    numbers(spark, 0, 20, 2).write.parquet(str(source))

    def write(frame: "DataFrame", _: int) -> None:
        writing(frame, nodes, writer="each").save()

    for _ in range(2):
        streaming(spark, source, checkpoint).foreachBatch(write).start().awaitTermination()
        assert values(nodes, before) == sorted(str(each) for each in range(20))
        replayed(checkpoint)


def test_the_guides_copy_of_a_quorum_runs(spark: "SparkSession", nodes: Trio, tmp_path: Path) -> None:
    example = block_of("analyze", "from fastquorum.spark import lag, session\n")
    with trio(tmp_path / "west") as others:
        for named, found in (("east1:9093,east2:9093", nodes), ("west1:9093,west2:9093", others)):
            assert named in example
            example = example.replace(named, bootstrap(found))
        for value in (b"one", b"two"):
            nodes.leader.append(value)
        for directory in ('"copied"', '"copying"'):  # the JVM has another working directory
            assert directory in example
            example = example.replace(directory, repr(str(tmp_path / directory.strip('"'))))
        exec(example, {})
        whole = [record.value for record in records(nodes, 0)]
        assert whole[-2:] == [b"one", b"two"]
        assert [record.value for record in records(others, 0)] == whole
