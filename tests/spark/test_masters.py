"""An address at which no Spark answers is told of before Spark asks for it."""

import io
import socket
import sys

import pytest

from fastquorum.cli.main import main
from fastquorum.errors import UsageError
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
        ):
            with pytest.raises(UsageError, match="no Spark can be reached at") as caught, running(master):
                pytest.fail("it began")
            assert f"127.0.0.1:{port}: Connection refused" in str(caught.value)
    with pytest.raises(UsageError, match=r"nowhere\.invalid"):
        check_master("spark://nowhere.invalid:7077")


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["local[*]", "yarn", "k8s://https://10.0.0.1:443"])
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
    assert "Spark starts, which takes some seconds; then it is " in sys.stderr.getvalue()
    assert "no Spark can be reached at" in sys.stderr.getvalue()
