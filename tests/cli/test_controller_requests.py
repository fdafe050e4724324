"""What the commands for brokers and topics say when no controller decides, or nobody knows what it decided."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.api.nodes import Trio, stalled, trio
from tests.cli.conftest import COMMAND, free_port, wait_until
from tests.cli.controllers import Controller, Run, controller

CHANGES = (
    ("broker", "unregister", 1),
    ("topic", "create", "t"),
    ("topic", "delete", "t"),
)
LOOKS = (
    ("broker", "list"),
    ("broker", "describe", 1),
    ("broker", "fence", 1),
    ("topic", "list"),
    ("topic", "describe"),
    ("topic", "reassign", "--status"),
    ("image",),
)


@contextmanager
def controllers(root: Path) -> Iterator[Trio]:
    """Three of them."""
    with trio(root, log="metadata", controller=True, idle_us_max=0) as nodes:
        yield nodes


def addresses(nodes: Trio) -> tuple[str, str]:
    return "--bootstrap", ",".join(f"127.0.0.1:{port}" for port in nodes.ports)


def leading(nodes: Trio) -> Controller:
    leader = nodes.leader
    return Controller(leader, nodes.ports[leader._node.identity.node_id - 1])


# --- nobody decides ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [*CHANGES, *LOOKS], ids=lambda words: " ".join(map(str, words)))
def test_nobody_listens(fastquorum: Run, words: tuple[object, ...]) -> None:
    ran = fastquorum(*words, "--bootstrap", f"127.0.0.1:{free_port()}", "--timeout", 0.2)
    assert (ran.code, ran.out) == (3, "")
    assert "the quorum is not ready: " in ran.err
    assert "cannot be reached: Connection refused" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("words", [CHANGES[1], LOOKS[0]], ids=lambda words: " ".join(map(str, words)))
def test_nobody_leads(fastquorum: Run, tmp_path: Path, words: tuple[object, ...]) -> None:
    nodes = Trio(tmp_path, log="metadata", controller=True)
    try:
        nodes.open(1)
        ran = fastquorum(*words, "--bootstrap", f"127.0.0.1:{nodes.ports[0]}", "--timeout", 0.5)
    finally:
        nodes.close()
    assert (ran.code, ran.out) == (3, "")
    assert "knows no leader" in ran.err


@pytest.mark.parametrize("words", CHANGES, ids=lambda words: " ".join(map(str, words)))
def test_a_leader_that_is_no_controller(fastquorum: Run, tmp_path: Path, words: tuple[object, ...]) -> None:
    with controller(tmp_path, controller=False) as node:
        end = node.end_offset
        ran = fastquorum(*words, *node.at)
        assert (ran.code, ran.out) == (2, "")
        assert f"{node.address} leads, and does not serve " in ran.err
        assert "it is not a controller; run every node of the quorum with --controller" in ran.err
        assert node.end_offset == end
        assert fastquorum("topic", "list", *node.at).code == 0


@pytest.mark.parametrize("words", LOOKS, ids=lambda words: " ".join(map(str, words)))
def test_a_user_log_has_no_brokers_and_topics(fastquorum: Run, tmp_path: Path, words: tuple[object, ...]) -> None:
    with controller(tmp_path, controller=False, log="user") as node:
        ran = fastquorum(*words, *node.at)
    assert (ran.code, ran.out) == (2, "")
    assert "this quorum keeps a user log; only a metadata log has an image" in ran.err


def test_the_active_controller_is_found_through_any(fastquorum: Run, tmp_path: Path) -> None:
    with controllers(tmp_path) as nodes:
        follower = nodes.followers[0]._node.identity.node_id
        at = ("--bootstrap", f"127.0.0.1:{nodes.ports[follower - 1]}")
        ran = fastquorum("topic", "delete", "t", *at)
        assert ran.code == 2
        assert "the controller refuses: UNKNOWN_TOPIC_OR_PARTITION" in ran.err


# --- nobody knows -----------------------------------------------------------------------------------------------------


def test_an_answer_that_does_not_come_is_no_failure(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11)
        with stalled(cluster.quorum):
            ran = fastquorum("topic", "create", "t", *cluster.at, "--timeout", 0.5)
        assert (ran.code, ran.out) == (3, "")
        assert ran.err.startswith("fastquorum topic create: it is not known whether topic t was created (")
        assert "check with `fastquorum topic describe t` before you try again" in ran.err
        wait_until(lambda: fastquorum("topic", "describe", "t", *cluster.at).code == 0)


def test_nor_is_an_answer_that_too_much_waits(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path, append_queue_records_max=3) as cluster:
        cluster.join(11)
        with stalled(cluster.quorum):
            fastquorum("topic", "create", "t", *cluster.at, "--timeout", 0.2)
            ran = fastquorum("topic", "create", "u", *cluster.at)
        assert (ran.code, ran.out) == (3, "")
        assert f"it is not known whether topic u was created ({cluster.address} answered REQUEST_TIMED_OUT)" in ran.err


def test_a_controller_that_loses_the_lead_over_it_leaves_it_open(fastquorum: Run, tmp_path: Path) -> None:
    with controllers(tmp_path) as nodes:
        leading(nodes).join(11)
        for each in nodes.followers:
            nodes.crash(each._node.identity.node_id)
        ran = fastquorum("topic", "create", "t", *addresses(nodes), "--timeout", 2)
        assert (ran.code, ran.out) == (3, "")
        assert "it is not known whether topic t was created (" in ran.err
        assert "answered NOT_CONTROLLER; " in ran.err
        nodes.open(*({1, 2, 3} - nodes.nodes.keys()))
        again = fastquorum("topic", "create", "t", *addresses(nodes))
        assert again.code == 0 or "TOPIC_ALREADY_EXISTS" in again.err
        assert fastquorum("topic", "describe", "t", *addresses(nodes)).code == 0


def test_an_interrupted_change_says_what_is_not_known(tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11)
        end = cluster.end_offset
        with stalled(cluster.quorum):
            asking = subprocess.Popen(
                [*COMMAND, "topic", "create", "t", *cluster.at],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            wait_until(lambda: cluster.end_offset > end)
            asking.send_signal(signal.SIGINT)
            out, err = asking.communicate(timeout=10)
        assert (asking.returncode, out) == (130, "")
        assert err == (
            "interrupted: it is not known whether topic t was created: check with `fastquorum topic describe t`\n"
        )


def test_interrupting_a_look_is_quiet(tmp_path: Path) -> None:
    asking = subprocess.Popen(
        [*COMMAND, "topic", "list", "--bootstrap", f"127.0.0.1:{free_port()}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert asking.stderr is not None
    assert asking.stderr.readline().startswith("no leader yet (")
    asking.send_signal(signal.SIGINT)
    assert asking.communicate(timeout=10) == ("", "")
    assert asking.returncode == 130


# --- nobody else writes its log ---------------------------------------------------------------------------------------


def test_a_controllers_log_takes_no_appends(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        end = cluster.end_offset
        ran = fastquorum("append", "--value", "x", *cluster.at)
        assert (ran.code, ran.out) == (2, "")
        assert "node 1 takes no appends: the log is the controller's" in ran.err
        assert cluster.end_offset == end
