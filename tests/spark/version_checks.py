"""What one version of Spark makes of the data source, in a process of its own:
`python -m tests.spark.version_checks PATH BOOTSTRAP DIRECTORY PART... [--delta JAR...]`.

Prints JSON: its version, and what each check came to: "same" as without Spark, or in which line it was refused.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import fastquorum.spark
from fastquorum.controller.planning import Limits
from fastquorum.errors import FastQuorumError
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.engines.spark_engine import SparkEngine
from fastquorum.spark.scan import read_table
from fastquorum.spark.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAME: Final = "same"
PARTS: Final = ("reads", "pipelines", "writes")
ROWS: Final = 200
"""Written by each way of writing."""
_DELTA: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class Checks:
    """Checks of one session."""

    def __init__(self, spark: "SparkSession", path: str, bootstrap: str, directory: Path) -> None:
        self.results: dict[str, str] = {}
        self._spark, self._path, self._bootstrap, self._directory = spark, path, bootstrap, directory

    def check(self, name: str, run: Callable[[], None]) -> None:
        """Run one; an error of ours is a refusal, any other one of the check's."""
        try:
            with fastquorum.spark.plain_errors():
                run()
        except FastQuorumError as error:
            self.results[name] = f"refused: {error}"
        else:
            self.results[name] = SAME

    # --- reads --------------------------------------------------------------------------------------------------------

    def reads(self) -> None:
        for table in TABLES:
            self.check(f"table {table}", lambda table=table: self._table(table))
        self.check("filters", self._filters)
        self.check("a quorum", self._quorum)

    def _table(self, name: str) -> None:
        frame, expected = self._read(path=self._path, table=name), read_table(self._path, name)
        check_same(frame.toArrow(), expected)
        assert frame.count() == expected.num_rows

    def _filters(self) -> None:
        expected = read_table(self._path)
        frame = self._read(path=self._path)
        for offset in (0, 17, 1000):
            some = expected.filter(pc.less(expected["offset"], offset))
            assert frame.where(f"offset < {offset}").count() == some.num_rows
        typed = expected.filter(pc.equal(expected["type"], "TOPIC_RECORD"))
        assert frame.where("type = 'TOPIC_RECORD'").count() == typed.num_rows > 0
        assert self._read(path=self._path, types="TOPIC_RECORD", columns="offset").count() == typed.num_rows

    def _quorum(self) -> None:
        check_same(self._read(bootstrap=self._bootstrap).toArrow(), read_table(bootstrap=self._bootstrap))

    def _read(self, **options: object) -> "DataFrame":
        return self._spark.read.format("fastquorum").options(**options).load()

    # --- pipelines ----------------------------------------------------------------------------------------------------

    def pipelines(self) -> None:
        here, there = LocalEngine(1), SparkEngine(self._spark)
        tables: Mapping[str, Callable[[Any], pa.Table]] = {
            "audit replicas": lambda engine: engine.audit_replicas(self._path),
            "audit invariants": lambda engine: engine.audit_invariants(self._path),
            "timelines": lambda engine: engine.timelines(self._path),
            "anomalies": lambda engine: engine.anomalies(self._path, 30.0),
            "placements": lambda engine: engine.placements(self._path, Limits(), keep_fenced=False, at=None),
            "image diff": lambda engine: engine.image_diff(self._path, 100, None),
        }
        for name, ask in tables.items():
            self.check(name, lambda ask=ask: check_same(ask(there), ask(here)))

    # --- streams and writes -------------------------------------------------------------------------------------------

    def writes(self) -> None:
        self.check("write", lambda: self._writes("batch", self._write))
        self.check("write a stream", lambda: self._writes("stream", self._write_stream))
        self.check("read a stream", lambda: self._read_stream("parquet"))

    def _writes(self, name: str, write: Callable[[str], None]) -> None:
        prefix = f"{self._spark.version} {name}"  # versions share a quorum
        write(prefix)
        values = read_table(bootstrap=self._bootstrap)["value"].to_pylist()
        found = [value.decode() for value in values if value and value.startswith(f"{prefix} ".encode())]
        assert sorted(found) == sorted(_values(prefix))

    def _write(self, prefix: str) -> None:
        frame = self._spark.range(0, ROWS, 1, 3).selectExpr(f"concat('{prefix} ', id) value")
        frame.write.format("fastquorum").mode("append").option("bootstrap", self._bootstrap).save()

    def _write_stream(self, prefix: str) -> None:
        source = self._directory / "source"
        source.mkdir()
        pq.write_table(pa.table({"value": _values(prefix)}), source / "rows.parquet")
        rows = self._spark.readStream.schema("value string").parquet(str(source))
        self._run_out(rows.writeStream.format("fastquorum").option("bootstrap", self._bootstrap), "written")

    def _read_stream(self, sink: str) -> None:
        frame = self._spark.readStream.format("fastquorum").option("bootstrap", self._bootstrap).load()
        frame = frame.select("offset", "key", "value")
        place = str(self._directory / f"streamed-{sink}")
        self._run_out(frame.writeStream.format(sink).option("path", place), f"streamed-{sink}")
        found = self._spark.read.format(sink).load(place)
        check_same(found.toArrow(), read_table(bootstrap=self._bootstrap, columns="offset,key,value"))

    def _run_out(self, writer: Any, name: str) -> None:
        """Run a query on all that is available now."""
        checkpoint = str(self._directory / f"{name}.checkpoint")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        assert query.awaitTermination(600)

    # --- Delta --------------------------------------------------------------------------------------------------------

    def delta(self) -> None:
        self.check("a log in Delta", self._delta)
        self.check("write from Delta", lambda: self._writes("delta", self._write_from_delta))
        self.check("stream into Delta", lambda: self._read_stream("delta"))

    def _delta(self) -> None:
        place, expected = str(self._directory / "log"), read_table(self._path)
        self._read(path=self._path).write.format("delta").save(place)
        found = self._spark.read.format("delta").load(place)
        check_same(found.toArrow(), expected)
        assert found.count() == expected.num_rows

    def _write_from_delta(self, prefix: str) -> None:
        place = str(self._directory / "rows")
        self._spark.range(0, ROWS, 1, 2).selectExpr(f"concat('{prefix} ', id) value").write.format("delta").save(place)
        frame = self._spark.read.format("delta").load(place)
        frame.write.format("fastquorum").mode("append").option("bootstrap", self._bootstrap).save()


def _values(prefix: str) -> list[str]:
    return [f"{prefix} {row}" for row in range(ROWS)]


def check_same(found: pa.Table, expected: pa.Table) -> None:
    """The same rows, in whatever order Spark brings them."""
    assert found.schema.names == expected.schema.names, found.schema.names
    same = sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.cast(found.schema).to_pylist()))
    assert same, f"{found.num_rows} rows, and {expected.num_rows} without Spark"


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("path", "bootstrap", "directory"):
        parser.add_argument(name)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--delta", nargs="+")
    arguments = parser.parse_args()
    config = {"spark.driver.memory": "768m", "spark.sql.shuffle.partitions": 1}
    if arguments.delta:
        config |= {**_DELTA, "spark.jars": ",".join(arguments.delta)}
    spark = fastquorum.spark.session("versions", "local[1]", config)
    checks = Checks(spark, arguments.path, arguments.bootstrap, Path(arguments.directory))
    parts = {"reads": checks.reads, "pipelines": checks.pipelines, "writes": checks.writes, "delta": checks.delta}
    for part in arguments.parts:
        parts[part]()
    print(json.dumps({"spark": spark.version, "results": checks.results}))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
