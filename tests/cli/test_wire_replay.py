"""`wire replay` against nodes that answer as recorded, nearly so, not at all; and against a real one."""

import base64
import gzip
import json
import os
import pty
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastquorum.cli.wire.batches import inside_batches
from fastquorum.cli.wire.compare import DEFAULT_IGNORED, FieldDifference, Ignored, differences
from fastquorum.kernels import load
from fastquorum.wire import (
    ApiKey,
    decode_response,
    encode_request,
    encode_response,
    find_api,
    from_json,
    request_header,
    to_json,
)
from fastquorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from fastquorum.wire.messages.produce import ProduceRequest
from tests.cli.conftest import COMMAND, Ran, RunningCommand, free_port, in_process
from tests.cli.sniffing import LOCAL, FakeServer, Sniffer, framed, read_lines, receive_frame
from tests.wire.golden import GOLDEN

Run = Callable[..., Ran]
Start = Callable[..., RunningCommand]
RECORDING = GOLDEN / "wire.jsonl.gz"


def golden() -> list[dict[str, Any]]:
    with gzip.open(RECORDING, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Node(FakeServer):
    """Answers by a function; None is no answer, b"" closes the connection."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self._answer = answer
        super().__init__(self._serve_frames)

    def _serve_frames(self, connection: socket.socket) -> None:
        self.connections += 1
        while frame := receive_frame(connection):
            self.requests.append(frame)
            answer = self._answer(frame)
            if answer == b"":
                return
            if answer is not None:
                connection.sendall(framed(answer))


@pytest.fixture
def node() -> Iterator[Callable[..., Node]]:
    started: list[Node] = []

    def start(answer: Callable[[bytes], bytes | None]) -> Node:
        started.append(Node(answer))
        return started[-1]

    yield start
    for each in started:
        each.close()


Serve = Callable[[Callable[[bytes], bytes | None]], Node]


def as_recorded(lines: list[dict[str, Any]]) -> Callable[[bytes], bytes]:
    """Gives the recorded answers, each once, in order."""
    answers: dict[bytes, list[bytes]] = {}
    for line in lines:
        answers.setdefault(bytes.fromhex(line["request"]), []).append(bytes.fromhex(line["response"]))
    return lambda frame: answers[frame].pop(0)


def metadata_line(number: int, **more: Any) -> dict[str, Any]:
    """A recorded Metadata exchange."""
    request = encode_request(request_header(MetadataRequest(), 12, number, "test"), MetadataRequest(topics=None))
    return {"request": request.hex(), "response": metadata_answer(request).hex(), **more}


def metadata_answer(request: bytes, **fields: Any) -> bytes:
    body = MetadataResponse(**{"cluster_id": "one", **fields})
    return encode_response(int.from_bytes(request[4:8], "big"), ApiKey.METADATA, 12, body)


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# --- a real node ------------------------------------------------------------------------------------------------------


def test_a_fresh_node_of_the_same_quorum_answers_as_the_recorded_one(
    fastquorum: Run, running: Start, tmp_path: Path
) -> None:
    out = tmp_path / "frames.jsonl"
    real, seen = free_port(), free_port()
    cluster_id = fastquorum("random-uuid").out.strip()
    for name in ("n1", "n2"):
        words = ("--node-id", 1, "--cluster-id", cluster_id, "--voters", f"1@{LOCAL}:{seen}")
        assert fastquorum("format", "--data", tmp_path / name, *words).code == 0
    first = running(tmp_path / "n1", "--listen", f"{LOCAL}:{real}")
    sniffer = Sniffer("--listen", f"{LOCAL}:{seen}", "--to", f"{LOCAL}:{real}", "--out", out)
    try:
        at = ("--bootstrap", f"{LOCAL}:{seen}")
        assert fastquorum("append", *at, "--value", "hello", "--value", "again").code == 0
        assert fastquorum("read", *at).out == "1\thello\n2\tagain\n"
        assert fastquorum("quorum", "describe", *at, "--status").code == 0
        assert sniffer.end().code == 130
    finally:
        sniffer.kill()
    assert first.end(signal.SIGTERM).code == 0

    running(tmp_path / "n2", "--listen", f"{LOCAL}:{real}")
    again = fastquorum("append", "--bootstrap", f"{LOCAL}:{real}", "--value", "x", "--timeout", "0.2")
    assert again.code == 3  # its voters' address is nobody's now: nothing was appended, so the logs are alike
    ran = fastquorum("wire", "replay", out, "--to", f"{LOCAL}:{real}")
    assert (ran.code, ran.err) == (0, ""), ran.out
    assert ran.out.startswith(f"{len(read_lines(out))} exchanges: ")
    assert fastquorum("wire", "replay", out, "--to", f"{LOCAL}:{real}", "--only", "metadata").code == 0
    appended = fastquorum("wire", "replay", out, "--to", f"{LOCAL}:{real}", "--only", "Produce")
    assert appended.code == 1
    assert "responses[0].partitionResponses[0].baseOffset: 1 was recorded, now 3\n" in appended.out
    ignoring = ("--ignore", "Produce:baseOffset")
    assert fastquorum("wire", "replay", out, "--to", f"{LOCAL}:{real}", "--only", "Produce", *ignoring).code == 0


# --- recorded by Kafka ------------------------------------------------------------------------------------------------


def test_a_node_that_answers_as_recorded_is_the_same(fastquorum: Run, node: Serve) -> None:
    kafka = node(as_recorded(golden()))
    ran = fastquorum("wire", "replay", RECORDING, "--to", kafka.address)
    assert (ran.code, ran.out, ran.err) == (0, "117 exchanges: 117 same\n", "")
    assert kafka.requests == [bytes.fromhex(line["request"]) for line in golden()]
    assert kafka.connections == len({line["server"] for line in golden()})
    one = node(as_recorded(golden()))
    assert fastquorum("wire", "replay", RECORDING, "--to", one.address, "--one-connection").code == 0
    assert one.connections == 1


@pytest.mark.parametrize("packed", [True, False])
def test_a_recording_may_come_by_stdin(node: Serve, packed: bool) -> None:
    data = RECORDING.read_bytes()
    command = [*COMMAND, "wire", "replay", "-", "--to", node(as_recorded(golden())).address]
    done = subprocess.run(command, input=data if packed else gzip.decompress(data), capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"117 exchanges: 117 same\n", b"")


def test_every_answer_with_another_time_is_the_same_but_for_that(fastquorum: Run, node: Serve) -> None:
    """Written again with every field that may differ, differing."""
    recorded = as_recorded(golden())

    def later(frame: bytes) -> bytes:
        key, version = (int.from_bytes(frame[at : at + 2], "big") for at in (0, 2))
        correlation_id, body = decode_response(recorded(frame), key, version)
        changed = from_json(find_api(key, version).response, version, shifted(to_json(body, version)))
        return encode_response(correlation_id, key, version, changed)

    kafka = node(later)
    ran = fastquorum("wire", "replay", RECORDING, "--to", kafka.address, "--format", "json")
    assert ran.code == 0
    *_, last = (json.loads(line) for line in ran.out.splitlines())
    assert last["summary"]["same"] + last["summary"]["ignored"] == 117
    assert last["summary"]["ignored"] > 80
    strict = fastquorum("wire", "replay", RECORDING, "--to", node(lambda frame: frame[4:8]).address, "--strict")
    assert strict.code == 1


def shifted(value: Any) -> Any:
    names = {name.rpartition(":")[2] for name in DEFAULT_IGNORED} - {"sessionId"}
    if isinstance(value, dict):
        return {name: inner + 1 if name in names else shifted(inner) for name, inner in value.items()}
    return [shifted(each) for each in value] if isinstance(value, list) else value


# --- answers that differ ----------------------------------------------------------------------------------------------


def test_a_difference_is_named_by_its_path(fastquorum: Run, node: Serve, tmp_path: Path) -> None:
    path = write(tmp_path / "f", [metadata_line(1), metadata_line(2), metadata_line(3)])
    broker = MetadataResponse.MetadataResponseBroker(node_id=4, host="h", port=1)

    def answer(frame: bytes) -> bytes:
        return {
            1: metadata_answer(frame, throttle_time_ms=5),
            2: metadata_answer(frame, cluster_id="two", brokers=[broker]),
            3: metadata_answer(frame),
        }[frame[7]]

    ran = fastquorum("wire", "replay", path, "--to", node(answer).address)
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "line 2: Metadata v12: different",
        '  brokers[0]: nothing was recorded, now {"nodeId": 4, "host": "h", "port": 1, "rack": null}',
        '  clusterId: "one" was recorded, now "two"',
        "3 exchanges: 1 same; 1 same but for ignored fields; 1 different",
    ]
    ran = fastquorum("wire", "replay", path, "--to", node(answer).address, "--format", "json", "--ignore", "brokers")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line.get("verdict") for line in lines] == ["ignored", "different", "same", None]
    assert lines[1]["differences"] == [{"path": "clusterId", "recorded": "one", "now": "two"}]
    both = ("--ignore", "Metadata:brokers[]", "--ignore", "clusterId")
    assert fastquorum("wire", "replay", path, "--to", node(answer).address, *both).code == 0
    assert fastquorum("wire", "replay", path, "--to", node(answer).address, *both, "--strict").code == 1


def test_bytes_that_are_no_message_or_only_a_hidden_tag_differ_too(
    fastquorum: Run, node: Serve, tmp_path: Path
) -> None:
    path = write(tmp_path / "f", [metadata_line(1), metadata_line(2)])

    def answer(frame: bytes) -> bytes:
        return frame[4:8] + b"?" if frame[7] == 1 else metadata_answer(frame, unknown_tags=((77, b"x"),))

    ran = fastquorum("wire", "replay", path, "--to", node(answer).address)
    assert ran.code == 1
    first, second = (line for line in ran.out.splitlines() if line.startswith("  "))
    assert "bytes were recorded, now 5, which differ from byte 4 on; ResponseHeader v1" in first
    assert second.endswith("in tagged fields that are not declared")


def test_an_answer_that_does_not_come_is_one_that_differs(fastquorum: Run, node: Serve, tmp_path: Path) -> None:
    path = write(tmp_path / "f", [metadata_line(number) for number in (1, 2, 3)])

    def answer(frame: bytes) -> bytes | None:
        return {1: b"", 2: None, 3: metadata_answer(frame)}[frame[7]]

    silent = node(answer)
    ran = fastquorum("wire", "replay", path, "--to", silent.address, "--timeout", "0.5")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "line 1: Metadata v12: not answered",
        f"  {silent.address} did not answer: it closed the connection",
        "line 2: Metadata v12: not answered",
        f"  {silent.address} did not answer: nothing within 0.5 s",
        "3 exchanges: 1 same; 2 not answered",
    ]
    assert silent.connections == 3


def test_what_has_no_recorded_answer_is_asked_and_not_compared(fastquorum: Run, node: Serve, tmp_path: Path) -> None:
    produce = encode_request(request_header(ProduceRequest(), 9, 5, "test"), ProduceRequest(acks=0)).hex()
    unanswered = metadata_line(6)
    del unanswered["response"]
    lines = [
        {"request": produce, "unanswered": "acks=0: it is not answered"},
        unanswered,
        {"request_part": "0003", "request_error": "a frame of 9 bytes: the connection ended inside it"},
        {"response": "00", "response_error": "no pending request has its correlation id"},
        metadata_line(7),
    ]
    kafka = node(lambda frame: None if frame[:2] == b"\0\0" else metadata_answer(frame))
    ran = fastquorum("wire", "replay", write(tmp_path / "f", lines), "--to", kafka.address)
    assert ran.code == 0
    assert ran.out == (
        "5 exchanges: 1 same; 2 not compared, since no answer was recorded; "
        "2 not sent, since no whole request was recorded\n"
    )
    assert [frame[7] for frame in kafka.requests] == [5, 6, 7]


def test_each_recorded_connection_is_one_again(fastquorum: Run, node: Serve, tmp_path: Path) -> None:
    lines = [metadata_line(number, server=f"s{number % 2}", connection=number % 6) for number in range(24)]
    path = write(tmp_path / "f", lines)
    kafka = node(metadata_answer)
    assert fastquorum("wire", "replay", path, "--to", kafka.address).code == 0
    assert (kafka.connections, len(kafka.requests)) == (6, 24)
    half = node(metadata_answer)
    assert fastquorum("wire", "replay", path, "--to", half.address, "--server", "s1").code == 0
    assert (half.connections, len(half.requests)) == (3, 12)


@pytest.mark.parametrize(
    ("lines", "words", "out", "why"),
    [
        ([], (), "0 exchanges", "holds no exchange; record some: `fastquorum wire sniff`"),
        (
            [metadata_line(1)] * 2,
            ("--only", "Fetch,18"),
            "0 exchanges",
            "--only and --server leave out all 2 exchanges",
        ),
        ([{"error": "cut"}], (), "1 exchange: 1 not sent, since no whole", "no whole request was recorded"),
    ],
)
def test_a_replay_that_asks_nothing_has_found_nothing_out(
    fastquorum: Run, tmp_path: Path, lines: list[dict[str, Any]], words: tuple[str, ...], out: str, why: str
) -> None:
    path = write(tmp_path / "f", lines)
    ran = fastquorum("wire", "replay", path, "--to", "127.0.0.1:1", *words)
    assert (ran.code, ran.out.startswith(out)) == (2, True)
    assert ran.err.startswith(f"fastquorum wire replay: {path}: nothing was sent: ")
    assert why in ran.err
    assert len(ran.err.splitlines()) == 1
    shown = fastquorum("wire", "replay", path, "--to", "127.0.0.1:1", "--format", "json", *words)
    assert (shown.code, json.loads(shown.out.splitlines()[-1]).keys()) == (2, {"summary"})


def test_what_cannot_be_replayed_is_told_by_its_name_and_nothing_else_is(fastquorum: Run, tmp_path: Path) -> None:
    path = tmp_path / "f"
    words = ("wire", "replay", path, "--to", "127.0.0.1:1")
    assert fastquorum(*words) == Ran(
        2, "", f"fastquorum wire replay: {path} cannot be read: No such file or directory\n"
    )
    mistyped = fastquorum(*words, "--only", "Fetc")
    assert (mistyped.code, mistyped.out) == (2, "")
    assert "--only: 'Fetc' is not an API; `fastquorum wire spec` lists them" in mistyped.err


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_bad_lines_are_named_and_the_others_go_on(fastquorum: Run, node: Serve, tmp_path: Path) -> None:
    path = tmp_path / "f"
    good = json.dumps(metadata_line(1))
    bad = [
        "not json",
        "{}",
        '{"request": "xyz"}',
        '{"request": ""}',
        '{"request_json": {}}',
        json.dumps(metadata_line(2, connection="x")),
    ]
    path.write_text("\n".join([good, *bad, "", good]))
    kafka = node(metadata_answer)
    ran = fastquorum("wire", "replay", path, "--to", kafka.address)
    assert ran.code == 2
    assert ran.out == "2 exchanges: 2 same; 6 lines that could not be read\n"
    assert [line.split(":")[0] for line in ran.err.splitlines()] == [f"line {number}" for number in range(2, 8)]
    assert "let `fastquorum wire encode` add its bytes" in ran.err


def test_a_node_that_is_not_there_is_try_again_later(fastquorum: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "f", [metadata_line(1)])
    ran = fastquorum("wire", "replay", path, "--to", f"{LOCAL}:{free_port()}")
    assert ran.code == 3
    assert "cannot be reached: Connection refused" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_damaged_recording_is_replayed_as_far_as_it_goes(fastquorum: Run, node: Serve, tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(RECORDING.read_bytes()[:-2000])
    kafka = node(as_recorded(golden()))
    ran = fastquorum("wire", "replay", path, "--to", kafka.address)
    assert ran.code == 2
    assert ran.err.startswith(f"fastquorum wire replay: {path} is damaged: ")
    assert f"{len(kafka.requests)} exchanges: {len(kafka.requests)} same" in ran.out
    assert 0 < len(kafka.requests) < 117


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nowhere.jsonl", "--to", "h:1"), "nowhere.jsonl cannot be read: No such file or directory"),
        (("/", "--to", "h:1"), "/ cannot be read: Is a directory"),
        (("-", "--to", "h"), "--to: 'h' is not HOST:PORT"),
        (("-", "--to", "h:1", "--ignore", "a..b"), "--ignore: 'a..b' is not a path of fields"),
        (("-", "--to", "h:1", "--ignore", "errorCod"), "there is no field 'errorCod' in any answer"),
        (("-", "--to", "h:1", "--ignore", "Vote:brokers"), "there is no field 'brokers' in the response of Vote"),
        (("-", "--to", "h:1", "--ignore", "Veto:topics"), "--ignore: 'Veto' is not an API"),
        (("-", "--to", "h:1", "--only", "Veto"), "'Veto' is not an API"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[str, ...], expected: str) -> None:
    ran = in_process("wire", "replay", *words)
    assert ran.code == 2
    assert expected in ran.err
    assert len(ran.err.splitlines()) == 1


def test_an_interrupt_tells_what_was_compared_until_then(node: Serve, tmp_path: Path) -> None:
    path = write(tmp_path / "f", [metadata_line(1), metadata_line(2)])
    waiting = threading.Event()

    def answer(frame: bytes) -> bytes | None:
        if frame[7] == 1:
            return metadata_answer(frame)
        waiting.set()
        return None

    replay = subprocess.Popen(
        [*COMMAND, "wire", "replay", str(path), "--to", node(answer).address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.wait(30)
    replay.send_signal(signal.SIGINT)
    out, err = replay.communicate(timeout=20)
    assert (replay.returncode, out, err) == (130, "1 exchange: 1 same\n", "")


def test_a_progress_bar_leaves_the_output_alone(node: Serve) -> None:
    """stderr is a terminal, stdout is not."""
    terminal, other_end = pty.openpty()
    command = [*COMMAND, "wire", "replay", str(RECORDING), "--to", node(as_recorded(golden())).address]
    command += ["--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=other_end, text=True) as replay:
        os.close(other_end)
        assert replay.stdout is not None
        out = replay.stdout.read()
        shown = b""
        while True:
            try:
                part = os.read(terminal, 1 << 16)
            except OSError:  # nobody has the other end any more
                break
            shown += part
    os.close(terminal)
    assert replay.returncode == 0
    assert Counter(json.loads(line).get("verdict") for line in out.splitlines()) == {"same": 117, None: 1}
    assert b"requests" in shown
    assert b"verdict" not in shown


# --- paths ------------------------------------------------------------------------------------------------------------


def test_differences_are_found_at_every_depth() -> None:
    recorded = {"a": 1, "b": [{"c": 1}, {"c": 2}], "d": None, "e": {"f": "x"}}
    now = {"a": 1, "b": [{"c": 1}, {"c": 3}, {"c": 4}], "e": None, "g": 0}
    assert [(each.path, each.as_json()) for each in differences(recorded, now)] == [
        ("b[1].c", {"path": "b[1].c", "recorded": 2, "now": 3}),
        ("b[2]", {"path": "b[2]", "now": {"c": 4}}),
        ("d", {"path": "d", "recorded": None}),
        ("e", {"path": "e", "recorded": {"f": "x"}, "now": None}),
        ("g", {"path": "g", "now": 0}),
    ]
    assert list(differences(recorded, recorded)) == []


def test_batches_are_compared_inside() -> None:
    kernels = load("pure")

    def records(*values: bytes, epoch: int = 1, at_ms: int = 5) -> str:
        data = kernels.encode_values(values, base_offset=7, leader_epoch=epoch, timestamp_ms=at_ms)
        return base64.b64encode(data).decode()

    def found(one: str, other: str) -> list[str]:
        return [each.path for each in inside_batches(FieldDifference("topics[0].records", one, other))]

    assert found(records(b"x"), records(b"x", epoch=2)) == ["topics[0].records[0].leaderEpoch"]
    assert found(records(b"x"), records(b"y")) == ["topics[0].records[0].records[0].value"]
    later = found(records(b"x"), records(b"x", at_ms=6))
    assert [path.rpartition(".")[2] for path in later] == ["baseTimestamp", "maxTimestamp", "timestamp"]
    assert all(Ignored(DEFAULT_IGNORED).matches(ApiKey.FETCH, path) for path in later)
    assert found(records(b"x"), records(b"x", b"y")) == [
        "topics[0].records[0].lastOffset",
        "topics[0].records[0].records[1]",
    ]
    cut = base64.b64encode(base64.b64decode(records(b"x"))[:-1]).decode()
    assert found(records(b"x"), cut) == ["topics[0].records"]
    damaged = base64.b64encode(base64.b64decode(records(b"x"))[:-2] + b"?\0").decode()
    assert "topics[0].records[0].isCrcValid" in found(records(b"x"), damaged)
    assert str(next(inside_batches(FieldDifference("name", "x", "y")))) == 'name: "x" was recorded, now "y"'


def test_long_texts_are_shown_where_they_differ() -> None:
    shown = str(FieldDifference("records", "A" * 500 + "B" * 500, "A" * 500 + "C" * 10))
    assert shown.startswith('records: ..."AAAAAAAABBBB')
    assert "(1000 characters) was recorded, now" in shown
    assert len(shown) < 250


@pytest.mark.parametrize(
    ("pattern", "key", "path", "is_ignored"),
    [
        ("errorCode", 3, "errorCode", True),
        ("errorCode", 3, "topics[0].partitions[12].errorCode", True),
        ("errorCode", 3, "topics[0].errorCodes", False),
        ("brokers", 3, "brokers[0].port", True),
        ("brokers[].port", 3, "brokers[10].port", True),
        ("brokers[1].port", 3, "brokers[10].port", False),
        ("brokers[1].port", 3, "brokers[1].port", True),
        ("brokers[]", 3, "brokers[1]", True),
        ("brokers[].port", 3, "other.brokers[1].port", False),
        ("Metadata:port", 3, "brokers[1].port", True),
        ("metadata:port", 60, "brokers[1].port", False),
    ],
)
def test_a_pattern_matches_its_fields_and_what_is_below(pattern: str, key: int, path: str, is_ignored: bool) -> None:
    assert Ignored([pattern]).matches(key, path) is is_ignored


def test_all_that_is_ignored_without_being_asked_exists() -> None:
    Ignored(DEFAULT_IGNORED)
