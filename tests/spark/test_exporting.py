"""Tables as streams and files: the same rows as at once, in the order of the log, with bounded memory."""

import importlib
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from bench.spark.logs import user_log
from fastquorum import tables
from fastquorum.cli.main import main
from fastquorum.errors import UsageError
from fastquorum.spark.scan import read_table
from tests.privileges import missing
from tests.spark.damage import make_log
from tests.wire.golden import CLUSTER

C1 = str(CLUSTER / "c1")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_stream_has_the_rows_of_the_whole_in_their_order(tmp_path: Path, threads: int) -> None:
    root = str(make_log(tmp_path / "n1", 200, roll=5))
    with tables.open(root, threads=threads, splitBytes=400) as reader:
        assert reader.read_all() == read_table(root)
    with tables.open(C1, "batches", threads=threads, columns="base_offset,epoch") as reader:
        assert reader.read_all() == read_table(C1, "batches", columns="base_offset,epoch")


def test_several_logs_are_given_as_a_list(tmp_path: Path) -> None:
    roots = [make_log(tmp_path / name, 20, roll=5) for name in ("n1", "n2")]
    with tables.open(roots) as several, tables.open(",".join(map(str, roots))) as as_one:
        assert several.read_all() == as_one.read_all()
    with tables.open(tuple(map(str, roots[:1]))) as one:
        assert one.read_all() == read_table(str(roots[0]))
    for wrong in ([5], {"n1"}, None):
        with pytest.raises(UsageError, match="neither a path nor a list of paths"):
            tables.open(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_there", [False, True])
def test_a_path_with_a_comma_is_refused_where_a_list_names_each_by_itself_and_where_it_is_there(
    tmp_path: Path, is_there: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = tmp_path / "a,b"
    if is_there:
        make_log(odd, 3)
    text = f"{str(odd)!r} has a comma in it, which stands between paths; name it by a glob, with ? for the comma"
    for several in ([odd], [str(odd)], (C1, odd), odd):
        with pytest.raises(UsageError) as caught:
            tables.open(several)
        assert str(caught.value) == text
    for words, code in ((["log", "export", "--out", str(tmp_path / "out")], 2), (["audit", "replicas"], 1)):
        assert main([*words, C1, str(odd)]) == (2 if is_there else code)
        output = capsys.readouterr()
        assert (text if is_there else f"{tmp_path}/a: is not there") in output.out + output.err
    with pytest.raises(UsageError) as caught:
        read_table(paths=json.dumps([str(odd)]))
    assert str(caught.value) == text
    if is_there:
        assert tables.open(str(tmp_path / "a?b")).read_all() == read_table(str(tmp_path / "a?b"))


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("records", {"columns": "offset,timestamp,type"}),
        ("batches", {}),
        ("control", {}),
        ("epochs", {}),
        ("voters", {}),
    ],
)
def test_polars_and_duckdb_read_what_pyarrow_reads(table: str, options: dict[str, str]) -> None:
    polars, duckdb = needed("polars"), needed("duckdb")
    expected = tables.open(C1, table, **options).read_all()
    assert expected.num_rows > 0
    with tables.open(C1, table, threads=2, **options) as reader:
        frame = polars.from_arrow(reader)
    assert frame.to_dicts() == expected.to_pylist()
    with tables.open(C1, table, threads=2, **options) as reader, duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        session.register("log", reader)
        found = session.sql("SELECT * FROM log").to_arrow_table()
    assert found.column_names == expected.column_names
    assert found.cast(expected.schema) == expected


def needed(name: str) -> Any:
    """A package of the extra `test`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"{name} is not installed")


def test_duckdb_asks_a_stream_in_sql_without_the_whole_of_it() -> None:
    duckdb = needed("duckdb")
    with tables.open(C1, columns="offset,type") as reader, duckdb.connect() as session:
        session.register("log", reader)
        found = session.sql("SELECT type, count(*) FROM log GROUP BY type ORDER BY 2 DESC, 1").fetchall()
    counts = Counter(tables.open(C1, columns="type").read_all()["type"].to_pylist())
    assert found == sorted(counts.items(), key=lambda each: (-each[1], each[0] is None, each[0] or ""))


MEMORY = """
import resource, sys
from fastquorum import tables
small, large, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])

def peak(path):
    rows = size = 0
    with tables.open(path, threads=threads, splitBytes=1 << 20) as reader:
        for batch in reader:
            rows += batch.num_rows
            size += batch.nbytes
    print(rows, size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)

peak(small)
peak(large)
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_than_some_tasks_rows_are_in_memory(tmp_path: Path, threads: int) -> None:
    """The log is some times as large as what may be in memory: by so much the peak may grow from a log of a few
    tasks."""
    sizes = (8 << 20, 160 << 20)
    counts = [
        user_log(tmp_path / name, size, segment_bytes=32 << 20)
        for name, size in zip(("small", "large"), sizes, strict=True)
    ]
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "small"), str(tmp_path / "large"), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (few, _, before), (many, arrow_bytes, after) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert ([few, many], arrow_bytes > sizes[1]) == (counts, True)
    assert after - before < 40 << 20, f"{(after - before) >> 20} MiB more for {arrow_bytes >> 20} MiB of rows"


def test_a_stream_that_is_left_leaves_no_thread(tmp_path: Path) -> None:
    root = str(make_log(tmp_path / "n1", 200, roll=5))
    before = threading.active_count()
    reader = tables.open(root, threads=3, splitBytes=400)
    assert reader.read_next_batch().num_rows > 0
    reader.close()
    del reader
    assert threading.active_count() == before


def test_what_does_not_fit_is_told_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="there is no table 'recods'"):
        tables.open(C1, "recods")
    with pytest.raises(UsageError, match="there is no option 'fromOfset'"):
        tables.open(C1, fromOfset=3)
    for threads in (0, True, "two", 1.5):
        with pytest.raises(UsageError, match=f"threads is {threads!r}"):
            tables.open(C1, threads=threads, columns=["offset"])  # type: ignore[arg-type]


def test_columns_may_be_a_list() -> None:
    assert (
        tables.open(C1, columns=["epoch", "offset"]).schema.names
        == tables.open(C1, columns="epoch,offset").schema.names
    )


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_have_the_rows_of_the_table(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    root, out = str(make_log(tmp_path / "n1", 200, roll=5)), tmp_path / "out"
    words = ["log", "export", root, "--to", form, "--out", str(out), "--option", "splitBytes=400", "--threads", "2"]
    assert main(words) == 0
    names = sorted(str(each) for each in out.iterdir())
    assert f"in {len(names)} files" in capsys.readouterr().out
    assert len(names) > 3
    found = pyarrow.dataset.dataset(names, format="ipc" if form == "arrow" else form).to_table()
    assert found.cast(read_table(root).schema) == read_table(root)
    assert main(words) == 2
    assert main(["log", "export", root, "--out", str(tmp_path / "x"), "--option", "splitBytes"]) == 2
    capsys.readouterr()
    assert not (tmp_path / "x").exists()
