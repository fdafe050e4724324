"""An address at which no Spark answers is told of before Spark asks for it."""

import io
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError

from fastquorum.cli.main import main
from fastquorum.errors import SparkEnvironmentError, UsageError
from fastquorum.spark.sessions import masters
from fastquorum.spark.sessions import running as running_module
from fastquorum.spark.sessions.jvm import Jvm
from fastquorum.spark.sessions.masters import check_master
from fastquorum.spark.sessions.running import running
from tests.wire.golden import CLUSTER


def test_where_nobody_listens_it_says_so_without_a_jvm() -> None:
    with socket.socket() as bound:  # bound, and not listening
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        for master in (
            f"spark://127.0.0.1:{port}",
            f"sc://127.0.0.1:{port}/;token=x",
            f"spark://127.0.0.1:{port},[::1]:{port}",
            f"k8s://https://127.0.0.1:{port}",
            f"k8s://127.0.0.1:{port}",
        ):
            with pytest.raises(UsageError, match="no Spark can be reached at") as caught, running(master):
                pytest.fail("it began")
            assert f"127.0.0.1:{port}: Connection refused" in str(caught.value)
    with pytest.raises(UsageError, match=r"nowhere\.invalid"):
        check_master("spark://nowhere.invalid:7077")


def test_one_of_several_masters_is_enough() -> None:
    with answering(b"\0") as port:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Somebody who takes one connection, hears one word, and says this much before hanging up."""

    def answer_one() -> None:
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1 << 10)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer_one)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("kind", ["spark://", "sc://", "k8s://https://"])
def test_who_takes_connections_and_says_nothing_is_no_spark(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert masters.TIMEOUT_S + masters.SILENCE_S < 20
    monkeypatch.setattr(masters, "SILENCE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert main(["audit", "replicas", str(CLUSTER), "--master", f"{kind}{place}"]) == 2
    assert capsys.readouterr().err == (
        f"fastquorum audit replicas: no Spark can be reached at {kind}{place}: {place}: it accepts connections, but "
        "sends nothing for 0.2 s; start it, or name another --master: local[*], or the URL of a Spark cluster that "
        "runs\n"
    )


@pytest.mark.parametrize("kind", ["spark://", "sc://", "k8s://https://"])
def test_who_hangs_up_or_answers_anything_is_left_to_spark(kind: str) -> None:
    for answer in (b"", b"\x15"):
        with answering(answer) as port:
            check_master(f"{kind}127.0.0.1:{port}")


def test_yarn_is_asked_for_only_where_something_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    assert main(["audit", "replicas", str(CLUSTER), "--master", "yarn"]) == 2
    assert capsys.readouterr().err == (
        "fastquorum audit replicas: --master yarn needs a configuration of Hadoop, and neither HADOOP_CONF_DIR nor "
        "YARN_CONF_DIR is set; set HADOOP_CONF_DIR to the directory of core-site.xml and yarn-site.xml, or name "
        "another --master\n"
    )
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(SparkEnvironmentError, match=r"YARN_CONF_DIR is .*nowhere, and there is no such directory"):
        check_master("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    check_master("yarn")


JAVA = """26/11/29 12:00:00 WARN StandaloneAppClient: Failed to connect to master
java.io.IOException: Connecting to /127.0.0.1:7077 timed out
\tat org.apache.spark.network.client.TransportClientFactory.createClient(TransportClientFactory.java:1)
26/11/29 12:01:00 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are unresponsive!
"""


@pytest.mark.parametrize("is_begun", [True, False])
def test_traces_of_java_are_heard_only_if_spark_begins(
    is_begun: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jvm = Jvm()

    def session(**_: object) -> str:
        jvm._say(JAVA.encode())
        if is_begun:
            return "a session"
        raise PySparkRuntimeError("x: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext")

    monkeypatch.setattr(running_module, "session", session)
    if is_begun:
        assert running_module._begun("spark://h:7077", jvm) == "a session"
        assert capfd.readouterr().err == JAVA
        return
    text = "Spark did not start with --master spark://h:7077: All masters are unresponsive; it is local"
    with pytest.raises(UsageError, match=re.escape(text)):
        running_module._begun("spark://h:7077", jvm)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("master", ["local[*]", "local-cluster[2,1,1024]", "mesos://h:5050"])
def test_what_names_no_master_is_left_to_spark(master: str) -> None:
    check_master(master)


def test_a_master_s_address_is_read_as_every_other_one() -> None:
    for place, words in {"q..svc:7077": "an empty label", "h1:0": "port '0'", "[::1:7077": "not closed"}.items():
        with pytest.raises(UsageError, match=words):
            check_master(f"spark://{place}")


class TerminalText(io.StringIO):
    """A stderr that somebody watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "replicas", str(CLUSTER)),
        ("spark", "timeline", str(CLUSTER)),
        ("spark", "sim-sweep", "--seeds", "0:1"),
        ("spark", "demo"),
    ],
    ids=" ".join,
)
def test_who_waits_for_spark_sees_that_it_starts(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", TerminalText())
    assert main([*words, "--master", "spark://127.0.0.1:1"]) == 2
    assert isinstance(sys.stderr, TerminalText)
    assert "Spark starts, which takes some seconds; then: " in sys.stderr.getvalue()
    assert "no Spark can be reached at" in sys.stderr.getvalue()
