"""What a write may be told, and which columns it takes: everything else is refused by name."""

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from fastquorum.errors import UsageError
from fastquorum.kernels import BATCH_BYTES_MAX
from fastquorum.spark.source import FastQuorumSource
from fastquorum.spark.stored import arrow
from fastquorum.spark.write.write_options import WriteOptions, check_columns, parse_write_options
from fastquorum.types import LISTENER_NAME, Endpoint

H1 = Endpoint(LISTENER_NAME, "h1", 9093)
H2 = Endpoint(LISTENER_NAME, "::1", 9094)


def test_what_is_not_said_is_as_it_is_meant_to_be() -> None:
    # Spark gives names in lower case, its own among them.
    given = {"bootstrap": "h1:9093, [::1]:9094", "checkpointlocation": "/c", "path": ""}
    assert parse_write_options(given) == WriteOptions((H1, H2), None, 60.0, BATCH_BYTES_MAX)
    given = {"BOOTSTRAP": "h1:9093", "writer": " orders ", "timeout": "2.5", "batchbytes": "4096"}
    assert parse_write_options(given) == WriteOptions((H1,), "orders", 2.5, 4096)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"no quorum is named to write to; option\(\"bootstrap\", \"HOST:PORT"),
        ({"bootstrap": " "}, "no quorum is named"),
        ({"bootstrap": "h1"}, "option bootstrap: 'h1' is not HOST:PORT"),
        ({"bootstrap": "h1:1", "acks": "1"}, "has no option 'acks'; .* are batchBytes, bootstrap, timeout, writer"),
        ({"bootstrap": "h1:1", "path": "/logs"}, "has no option 'path'"),
        ({"bootstrap": "h1:1", "timeout": "soon"}, "option timeout is 'soon'; it is a number of seconds"),
        ({"bootstrap": "h1:1", "timeout": "0"}, "option timeout is '0'"),
        ({"bootstrap": "h1:1", "timeout": "nan"}, "option timeout is 'nan'"),
        ({"bootstrap": "h1:1", "batchBytes": "1023"}, "option batchBytes is '1023'; it is a number of bytes, 1024 to"),
        ({"bootstrap": "h1:1", "batchBytes": str(BATCH_BYTES_MAX + 1)}, "option batchBytes is '8388609'"),
        ({"bootstrap": "h1:1", "writer": ""}, "option writer is empty"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_there_is(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_write_options(given)


@pytest.mark.parametrize("text", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
def test_records_have_a_value_and_may_have_a_key_and_headers(text: pa.DataType) -> None:
    check_columns(pa.schema([("value", text)]))
    pair = pa.struct([("key", text), ("value", text)])
    check_columns(pa.schema([("key", text), ("headers", pa.list_(pair)), ("value", text)]))
    check_columns(pa.schema([("value", text), ("headers", arrow.HEADERS)]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("key", pa.binary())], "there is no column 'value'"),
        ([("value", pa.binary()), ("offset", pa.int64())], "no column 'offset'; the columns are value, key, headers"),
        ([("value", pa.int64())], "column 'value' is int64; it must be string or binary"),
        ([("value", pa.string()), ("key", pa.list_(pa.string()))], "column 'key' is list<"),
        ([("value", pa.string()), ("headers", pa.string())], "column 'headers' is string; it must be array<struct<key"),
        ([("value", pa.string()), ("headers", pa.list_(pa.struct([("key", pa.string())])))], "column 'headers' is"),
        ([("value", pa.string()), ("value", pa.string())], "there are two columns 'value'"),
    ],
)
def test_other_columns_are_refused_by_name(fields: list[tuple[str, pa.DataType]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_columns(pa.schema(fields))


VALUES = StructType([StructField("value", StringType())])


@pytest.mark.parametrize(
    ("options", "schema", "overwrite", "message"),
    [
        ({"acks": "1"}, VALUES, False, "a write has no option 'acks'"),
        ({}, StructType([StructField("value", IntegerType())]), False, "column 'value' is int32"),
        ({}, VALUES, True, r"nothing in it can be overwritten; mode\(\"append\"\) and outputMode\(\"append\"\)"),
    ],
    ids=["option", "column", "mode"],
)
def test_a_write_is_refused_before_it_begins(
    options: dict[str, str], schema: StructType, overwrite: bool, message: str
) -> None:
    source = FastQuorumSource({"bootstrap": "h1:9093", **options})
    for writer in (source.writer, source.streamWriter):
        with pytest.raises(UsageError, match=message):
            writer(schema, overwrite)


def test_a_query_takes_no_name_and_a_job_may() -> None:
    source = FastQuorumSource({"bootstrap": "h1:9093", "writer": "orders"})
    source.writer(VALUES, False)
    with pytest.raises(UsageError, match="takes no option writer; it is known by the id that is in its checkpoint"):
        source.streamWriter(VALUES, False)
