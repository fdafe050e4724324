"""format, run, append, read and quorum describe against a running node, as their users meet them."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Ran, RunningCommand, environment, files_of, free_port, in_process

Start = Callable[..., RunningCommand]
Run = Callable[..., Ran]


def address(data: Path) -> str:
    """Where a quorum of one listens: its only voter."""
    text = (data / "fastquorum.properties").read_text()
    port = next(line for line in text.splitlines() if line.startswith("voters=")).replace("\\", "").split(":")[1]
    return f"127.0.0.1:{port}"


def test_a_quorum_of_one_appends_reads_and_describes(fastquorum: Run, running: Start, data: Path) -> None:
    node = running(data)
    assert "node 1 of cluster" in node.line
    at = ("--bootstrap", address(data))
    first = fastquorum("append", *at, "--value", "hello", "--value", "wörld")
    assert (first.code, first.err) == (0, "")
    offset = int(first.out.split()[1])
    assert first.out == f"offset {offset}\noffset {offset + 1}\n"
    piped = in_process("append", *at, "--format", "json", stdin="a\nb\nc")
    report = [json.loads(line) for line in piped.out.splitlines()]
    assert report[0]["baseOffset"] == offset + 2
    assert sum(each["records"] for each in report) == 3
    binary = in_process("append", *at, "--encoding", "hex", "--value", "ff00")
    assert binary.code == 0
    read = fastquorum("read", *at)
    assert (
        read.out
        == "".join(f"{offset + number}\t{text}\n" for number, text in enumerate(("hello", "wörld", "a", "b", "c")))
        + f'{offset + 5}\t{{"value":{{"base64":"/wA="}}}}\n'
    )
    assert fastquorum("read", *at, "--from-offset", offset + 1, "--max", 2).out.splitlines()[-1].endswith("\ta")
    shown = [json.loads(line) for line in fastquorum("read", *at, "--format", "json").out.splitlines()]
    assert shown[0]["value"] == "hello"
    assert shown[0]["epoch"] == 1
    status = fastquorum("quorum", "describe", *at, "--status").out.splitlines()
    assert [line[:24].strip() for line in status] == [
        "ClusterId:",
        "LeaderId:",
        "LeaderEpoch:",
        "HighWatermark:",
        "MaxFollowerLag:",
        "MaxFollowerLagTimeMs:",
        "CurrentVoters:",
        "CurrentObservers:",
        "LastLeaderChange:",
    ]
    assert status[3] == f"HighWatermark:          {offset + 6}"
    assert status[6] == f'CurrentVoters:          [{{"id": 1, "endpoints": ["CONTROLLER://{address(data)}"]}}]'
    rows = fastquorum("quorum", "describe", *at, "--replication").out.splitlines()
    assert rows[1].split("\t")[0:4] == ["1     ", f"{22 * 'A'}", f"{offset + 6:<12}", "0  "]
    described = json.loads(fastquorum("quorum", "describe", *at, "--status", "--format", "json").out)
    assert described["leaderId"] == 1
    assert described["lastChange"]["cause"] == "sole_voter"
    assert status[-1] == "LastLeaderChange:       sole_voter: " + described["lastChange"]["reason"]
    assert node.end(signal.SIGTERM).code == 0
    verified = fastquorum("log", "verify", data)
    assert (verified.code, verified.out.split()[:2]) == (0, ["SOUND", str(data)])


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_every_address_is_none_that_others_can_reach(fastquorum: Run, data: Path, host: str) -> None:
    ran = fastquorum("run", "--data", data, "--advertise", f"{host}:{free_port()}")
    assert (ran.code, ran.out) == (2, "")
    assert f"advertise: no other machine can reach {host.strip('[]')}" in ran.err


@pytest.mark.parametrize("text", ["-1", "５", "2147483648"])
def test_a_node_id_is_a_whole_number(fastquorum: Run, tmp_path: Path, text: str) -> None:
    ran = fastquorum("format", "--data", tmp_path / "new", "--node-id", text, "--voters", "1@h:1")
    assert ran.code == 2
    assert f"{text!r} is not a whole number from 0 to 2147483647" in ran.err
    assert not (tmp_path / "new").exists()


def test_voters_are_apart(fastquorum: Run, tmp_path: Path) -> None:
    words = ("format", "--data", tmp_path / "n1", "--node-id", 1, "--cluster-id", "c", "--voters")
    place = fastquorum(*words, "1@h:9093,2@H:9093")
    assert place.code == 2
    assert "voters 1 and 2 are both at H:9093" in place.err
    number = "AAAAAAAAAAAAAAAAAAAAAQ"
    directory = fastquorum(*words, f"1@h1:9093:{number},2@h2:9093:{number}")
    assert directory.code == 2
    assert f"voters 1 and 2 have the same directory id {number}" in directory.err
    assert not (tmp_path / "n1").exists()


def test_formatting_again_without_a_cluster_id_names_the_one_that_is_there(fastquorum: Run, data: Path) -> None:
    voters = fastquorum("format", "--data", data, "--node-id", 1, "--voters", "1@h:1").err
    assert "it is formatted already, with voters 1@127.0.0.1:" in voters, "and no id that nobody typed"
    before = files_of(data)
    words = ("format", "--data", data, "--node-id", 1, "--voters", f"1@{address(data)}")
    again = fastquorum(*words)
    cluster_id = (data / "meta.properties").read_text().partition("cluster.id=")[2].split()[0]
    assert (again.code, files_of(data)) == (0, before)
    assert again.err == (
        f"{data} is formatted already, with cluster id {cluster_id}: nothing is changed; to start over, name another "
        "directory\n"
    )
    assert fastquorum(*words, "--cluster-id", cluster_id) == again
    other = fastquorum(*words, "--cluster-id", "other")
    assert (other.code, files_of(data)) == (2, before)
    assert f"it is formatted already, with cluster id {cluster_id}, not other; use it as it is, or " in other.err


def test_offset_out_of_range_and_oversize_records_are_refused(fastquorum: Run, running: Start, data: Path) -> None:
    running(data)
    at = ("--bootstrap", address(data))
    assert fastquorum("append", *at, "--value", "x").code == 0
    ran = fastquorum("read", *at, "--from-offset", 1000)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "fastquorum read: offset 1000 lies outside 0..2\n"
    big = in_process("append", *at, stdin="before\n" + "y" * (9 * 1024 * 1024))
    assert (big.code, big.out) == (1, "offset 2\n")  # not 2, by which nothing is changed
    assert big.err.startswith("1 record is committed\nfastquorum append: a line is longer than 8388608 bytes")
    alone = in_process("append", *at, stdin="y" * (9 * 1024 * 1024))
    assert (alone.code, alone.out) == (2, "")
    some = fastquorum("append", *at, "--encoding", "hex", "--value", "6161", "--value", "zz")
    assert (some.code, some.out) == (1, "offset 3\n")
    assert some.err.startswith("1 record is committed\nfastquorum append: record 2, 'zz', is not hex: expected")
    almost = in_process("append", *at, stdin="y" * (8 * 1024 * 1024))
    assert (almost.code, almost.out) == (2, "")
    assert "do not fit into one batch" in almost.err
    for encoding, line in (("hex", "zz"), ("hex", "é"), ("hex", "abc"), ("base64", "a"), ("base64", "é")):
        bad = fastquorum("append", *at, "--encoding", encoding, "--value", line)
        assert bad.code == 2
        assert f"is not {encoding}: expected" in bad.err
    assert fastquorum("read", *at).out == "1\tx\n2\tbefore\n3\taa\n"


def test_a_metadata_log_takes_metadata_records_only(fastquorum: Run, running: Start, tmp_path: Path) -> None:
    data = tmp_path / "n1"
    port = free_port()
    ran = fastquorum("format", "--data", data, "--node-id", 1, "--voters", f"1@127.0.0.1:{port}", "--log", "metadata")
    assert ran.code == 0
    running(data)
    at = ("--bootstrap", f"127.0.0.1:{port}")
    refused = fastquorum("append", *at, "--value", "hello")
    assert refused.code == 2
    assert "the quorum refuses the records" in refused.err
    assert fastquorum("append", *at, "--encoding", "hex", "--value", "01140000").code == 0
    assert '"type":"NO_OP_RECORD"' in fastquorum("read", *at).out


def test_an_idle_leader_of_a_metadata_log_appends_no_ops(fastquorum: Run, running: Start, tmp_path: Path) -> None:
    data, config = tmp_path / "n1", tmp_path / "n1.properties"
    port = free_port()
    fastquorum("format", "--data", data, "--node-id", 1, "--voters", f"1@127.0.0.1:{port}", "--log", "metadata")
    config.write_text("metadata.max.idle.interval.ms=20\n")
    running(data, "--config", str(config))
    at = ("--bootstrap", f"127.0.0.1:{port}")
    until = time.monotonic() + 30
    while fastquorum("read", *at).out.count('"type":"NO_OP_RECORD"') < 3:
        assert time.monotonic() < until


def test_interrupting_a_node_loses_nothing(fastquorum: Run, running: Start, data: Path) -> None:
    node = running(data)
    at = ("--bootstrap", address(data))
    assert fastquorum("append", *at, "--value", "kept").code == 0
    ended = node.end(signal.SIGINT)
    assert (ended.code, ended.err) == (130, "")
    again = running(data)
    assert fastquorum("read", *at).out == "1\tkept\n"
    again.end(signal.SIGTERM)


def test_watching_a_quorum_prints_again_until_it_is_interrupted(running: Start, data: Path) -> None:
    running(data)
    watching = subprocess.Popen(
        [*COMMAND, "quorum", "describe", "--status", "--watch", "--bootstrap", address(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert watching.stdout is not None
    seen = 0
    while seen < 2:
        line = watching.stdout.readline()
        assert line, "the watch ended by itself"
        seen += line.lstrip().startswith(b"ClusterId:")
    watching.send_signal(signal.SIGINT)
    assert watching.communicate(timeout=10)[1] == b""
    assert watching.returncode == 130


def test_replication_for_people_tells_ages(fastquorum: Run, running: Start, data: Path) -> None:
    running(data)
    ran = fastquorum("quorum", "describe", "--replication", "--human-readable", "--bootstrap", address(data))
    assert ran.code == 0
    assert " ms ago" in ran.out


def test_a_verbose_node_that_advertises_tells_who_leads_and_where(data: Path) -> None:
    port = address(data).rpartition(":")[2]
    words = [*COMMAND, "run", "--data", str(data), "--verbose", "--advertise", f"localhost:{port}"]
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        try:
            assert node.stdout is not None
            assert node.stderr is not None
            assert f"CONTROLLER://localhost:{port}" in node.stdout.readline()
            assert any("node 1 leads epoch 1" in line for line in node.stderr)
            node.send_signal(signal.SIGTERM)
            assert node.wait(timeout=10) == 0
        finally:
            node.kill()


@pytest.mark.parametrize("is_ready_before", [True, False])
def test_a_node_may_be_told_to_stop_in_good_order_when_its_stdin_ends(data: Path, is_ready_before: bool) -> None:
    words = [*COMMAND, "run", "--data", str(data), "--until-stdin-ends", "--log-format", "json"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as node:
        try:
            assert node.stdin is not None
            assert node.stdout is not None
            assert node.stderr is not None
            node.stdin.write(b"is not looked at")
            node.stdin.flush()
            assert b"started" in node.stdout.readline()
            if is_ready_before:
                node.send_signal(signal.SIGTERM)
                assert any(b'"stopping"' in line for line in node.stderr)
            node.stdin.close()
            assert b'"stopped"' in node.stderr.read()
            assert node.wait(timeout=10) == 0
        finally:
            node.kill()


def test_an_append_that_cannot_be_printed_says_that_it_is_committed(running: Start, data: Path) -> None:
    running(data)
    words = [*COMMAND, "append", "--bootstrap", address(data), "--value", "kept"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[0] == "1 record is committed"
    assert "No space left on device" in ran.stderr.splitlines()[1]
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], capture_output=True, timeout=60, check=False)
    assert closed.returncode == 1
    assert closed.stderr.splitlines()[0] == b"1 record is committed"
    assert closed.stderr.splitlines()[1].startswith(b"fastquorum: stdout is closed")


def test_interrupting_a_reader_is_quiet(fastquorum: Run, running: Start, data: Path) -> None:
    running(data)
    at = ("--bootstrap", address(data))
    assert fastquorum("append", *at, "--value", "x").code == 0
    reader = subprocess.Popen(
        [*COMMAND, "read", *at, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"1\tx\n"
    reader.send_signal(signal.SIGINT)
    out, err = reader.communicate(timeout=10)
    assert (reader.returncode, out, err) == (130, b"", b"")


# --- what users get wrong ---------------------------------------------------------------------------------------------


def test_two_processes_on_one_directory(fastquorum: Run, running: Start, data: Path) -> None:
    running(data)
    second = in_process("run", "--data", data)
    assert second.code == 2
    assert "is in use by another process" in second.err
    assert len(second.err.splitlines()) == 1
    trimmed = fastquorum("log", "trim", data)
    assert trimmed.code == 2
    assert "is in use by another process" in trimmed.err


def test_a_taken_port(data: Path) -> None:
    host, _, port = address(data).partition(":")
    with socket.socket() as held:
        held.bind((host, int(port)))
        held.listen()
        before = files_of(data)
        ran = in_process("run", "--data", data)
    assert ran.code == 2
    assert f"{host}:{port} is taken" in ran.err
    assert files_of(data) == before


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    ran = in_process("run", "--data", tmp_path / "typo")
    assert ran.code == 2
    assert f"{tmp_path / 'typo'}: the directory is not formatted" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "typo").exists()


def test_a_misspelt_failpoint_is_named(data: Path) -> None:
    before = files_of(data)
    words = [*COMMAND, "run", "--data", str(data)]
    armed = {**environment(), "FASTQUORUM_FAILPOINTS": "before-election-sav=crash"}
    ran = subprocess.run(words, env=armed, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert "FASTQUORUM_FAILPOINTS (environment): 'before-election-sav' is not a failpoint" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert files_of(data) == before


def test_a_foreign_directory(fastquorum: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    before = files_of(tmp_path)
    words = ("--data", tmp_path, "--node-id", 1, "--voters", "1@127.0.0.1:9093")
    formatted = fastquorum("format", *words)
    assert formatted.code == 2
    assert "holds thesis.tex" in formatted.err
    ran = in_process("run", "--data", tmp_path)
    assert ran.code == 2
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--node-id", 4, "--voters", "1@h:1,2@h:2,3@h:3", "--cluster-id", "c"), "node 4 is not among the voters"),
        (("--node-id", 1, "--voters", "1@h:1", "--observer"), "leave out --observer for a voter"),
        (("--node-id", 1, "--voters", "1@h:1:AAAAAAAAAAAAAAAAAAAAAA"), "the directory id is all zeros"),
        (("--node-id", 1, "--voters", "1@h:1,2@h:2"), "--cluster-id is required with more than one voter"),
        (
            ("--node-id", 1, "--voters", "1@h"),
            "'1@h' is not a voter: expected ID@HOST:PORT or ID@HOST:PORT:DIRECTORY_ID; the port is missing",
        ),
        (("--node-id", 1, "--voters", "h:1"), "; the id is missing"),
        (("--node-id", 1, "--voters", "1@h:1,1@h:2", "--cluster-id", "c"), "voter id 1 occurs twice"),
        (("--node-id", 1, "--voters", "1@h:1:nonsense"), "'nonsense' is not a uuid: expected 22"),
        (("--node-id", 1, "--voters", ""), "--voters is empty"),
        (("--node-id", 1, "--voters", ",".join(f"{n}@h:{n}" for n in range(1, 9)), "--cluster-id", "c"), "8 voters"),
        (("--node-id", 1, "--voters", "1@h:1:MzGshnxlQ8CWUREFNVsnEw,2@h:2", "--cluster-id", "c"), "no directory id"),
        (("--node-id", 1, "--voters", "1@h:1", "--topic-name", "no good"), "'no good' is not a topic name"),
        (("--node-id", 1, "--voters", "1@h:1", "--log", "metadata", "--topic-name", "t"), "--topic-name is for user"),
        (("--node-id", 1, "--voters", "1@h:1", "--cluster-id", "a b"), "'a b' is not a cluster id"),
        (
            ("--node-id", 1, "--voters", "0x@h:1"),
            "'0x@h:1' is not a voter: expected ID@HOST:PORT or ID@HOST:PORT:DIRECTORY_ID; id '0x' is not",
        ),
    ],
)
def test_bad_formats_make_nothing(fastquorum: Run, tmp_path: Path, words: tuple[object, ...], complaint: str) -> None:
    ran = fastquorum("format", "--data", tmp_path / "new", *words)
    assert ran.code == 2
    assert complaint in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_formatting_again_the_same_way_changes_nothing_and_another_way_is_refused(
    fastquorum: Run, tmp_path: Path
) -> None:
    data = tmp_path / "n1"
    words = ("format", "--data", data, "--node-id", 1, "--voters", "1@h:1,2@h:2", "--cluster-id")
    assert fastquorum(*words, "first").code == 0
    before = files_of(data)
    assert fastquorum(*words, "first").code == 0
    assert fastquorum(*words[:-1]).code == 0, "nobody asks for another one"
    assert files_of(data) == before
    other = fastquorum(*words, "second")
    assert other.code == 2
    assert "formatted already, with cluster id first, not second" in other.err
    assert files_of(data) == before


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("cluster.id=another", "not to cluster another"),
        ("node.id=7", "not to node 7"),
        ("controller.quorum.fetch.timeout=5", "did you mean"),
        ("controller.quorum.fetch.timeout.ms=soon", "controller.quorum.fetch.timeout.ms"),
        ("controller.quorum.voters=2@h:9", "node 1 is not among the voters"),
    ],
)
def test_settings_that_cannot_be(data: Path, tmp_path: Path, setting: str, complaint: str) -> None:
    config = tmp_path / "n1.properties"
    config.write_text(setting + "\n")
    before = files_of(data)
    ran = in_process("run", "--data", data, "--config", config)
    assert ran.code == 2
    assert complaint in ran.err
    assert len(ran.err.splitlines()) == 1
    assert files_of(data) == before


def test_a_newer_disk_format_is_refused(data: Path) -> None:
    own = data / "fastquorum.properties"
    own.write_text(own.read_text().replace("format.version=1", "format.version=2"))
    ran = in_process("run", "--data", data)
    assert ran.code == 2
    assert "on-disk format version 2" in ran.err


def test_damaged_records_stop_a_node_with_the_code_of_corruption(fastquorum: Run, running: Start, data: Path) -> None:
    node = running(data)
    at = ("--bootstrap", address(data))
    for value in ("a" * 500, "b" * 500):
        assert fastquorum("append", *at, "--value", value).code == 0
    node.end(signal.SIGTERM)
    log = data / "__cluster_metadata-0" / f"{0:020}.log"
    damaged = bytearray(log.read_bytes())
    damaged[damaged.index(b"aaaa") + 9] ^= 1
    log.write_bytes(damaged)
    before = files_of(data)
    for words in (("run", "--data", data), ("log", "verify", data), ("log", "trim", data), ("log", "dump", data)):
        ran = in_process(*words)
        assert ran.code == 4, words
        assert "Traceback" not in ran.err
    assert files_of(data) == before


def test_no_node_and_no_majority_are_retriable(fastquorum: Run, running: Start, tmp_path: Path) -> None:
    ports = [free_port() for _ in range(3)]
    at = ("--bootstrap", ",".join(f"127.0.0.1:{port}" for port in ports), "--timeout", "0.6")
    nobody = fastquorum("append", *at, "--value", "x")
    assert nobody.code == 3
    assert "cannot be reached: Connection refused" in nobody.err
    lines = fastquorum("read", *at[:2], "--timeout", "1.5").err.splitlines()
    assert lines[0].startswith("no leader yet (")
    assert lines[1].startswith("fastquorum read: the quorum is not ready: ")
    for line in lines:
        assert all(f"127.0.0.1:{port} cannot be reached" in line for port in ports)
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports, 1))
    data = tmp_path / "n1"
    assert fastquorum("format", "--data", data, "--node-id", 1, "--voters", voters, "--cluster-id", "c").code == 0
    running(data)
    at = (*at[:2], "--timeout", "3")  # whoever is reached must have the time to answer, on a busy machine too
    for words in (("append", *at, "--value", "x"), ("read", *at), ("quorum", "describe", *at, "--status")):
        ran = fastquorum(*words)
        assert ran.code == 3, words
        assert "knows no leader" in ran.err
        assert "Traceback" not in ran.err


@pytest.mark.parametrize("bootstrap", ["h", "h:", ":1", "h:0", "h:70000", "h:1,,h:2", "h:x"])
def test_bad_bootstraps_are_wrong_usage(fastquorum: Run, bootstrap: str) -> None:
    ran = fastquorum("read", "--bootstrap", bootstrap)
    assert ran.code == 2
    assert "is not HOST:PORT" in ran.err


def test_a_server_that_is_none_of_ours_is_named(fastquorum: Run) -> None:
    with socket.socket() as strange:
        strange.bind(("127.0.0.1", 0))
        strange.listen()
        ran = fastquorum("read", "--bootstrap", f"127.0.0.1:{strange.getsockname()[1]}", "--timeout", "0.3")
    assert ran.code == 3
    assert "did not answer" in ran.err


def test_debug_shows_the_traceback(fastquorum: Run, tmp_path: Path) -> None:
    for words in (("--debug", "log", "verify", tmp_path), ("log", "verify", tmp_path, "--debug")):
        ran = fastquorum(*words)
        assert ran.code == 2
        assert "Traceback" in ran.err
    assert "Traceback" not in fastquorum("log", "verify", tmp_path).err


def test_a_disk_that_fails_ends_a_node_with_the_code_of_a_fatal_error(data: Path) -> None:
    command = [*COMMAND, "run", "--data", str(data)]
    failing = environment(FASTQUORUM_FAILPOINTS="before-election-save=eio")
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, env=failing)
    assert ran.returncode == 5
    assert len(ran.stderr.splitlines()) == 1
    assert "the replica stops" in ran.stderr
