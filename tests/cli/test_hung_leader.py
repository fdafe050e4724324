"""A leader that hangs, which its sockets do not tell: the commands find the one that the others elect."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.loopback import free_ports
from tests.api.nodes import CLUSTER_ID, voters
from tests.cli.conftest import Ran, RunningCommand

Start = Callable[..., RunningCommand]
Run = Callable[..., Ran]


@pytest.mark.parametrize(
    ("words", "is_controller", "code", "expected"),
    [
        (("topic", "delete", "t"), True, 2, "the controller refuses: UNKNOWN_TOPIC_OR_PARTITION"),
        (("topic", "list"), True, 0, ""),
        (("append", "--value", "x"), False, 0, ""),
        (("read", "--from-offset", 1), False, 0, ""),
    ],
    ids=["a change", "a look", "an append", "a read"],
)
def test_a_leader_that_hangs_is_looked_for_again(
    fastquorum: Run,
    running: Start,
    tmp_path: Path,
    words: tuple[object, ...],
    is_controller: bool,
    code: int,
    expected: str,
) -> None:
    ports = free_ports(3)
    kind = ("--controller",) if is_controller else ()
    nodes = {}
    for number in (1, 2, 3):
        data = tmp_path / f"n{number}"
        who = ("--node-id", number, "--voters", voters(ports), "--cluster-id", CLUSTER_ID)
        assert fastquorum("format", "--data", data, *who, *kind).code == 0
        nodes[number] = running(data, *kind)
    everybody = ",".join(f"127.0.0.1:{port}" for port in ports)
    described = fastquorum("quorum", "describe", "--status", "--format", "json", "--bootstrap", everybody)
    leader = json.loads(described.out)["leaderId"]
    if not is_controller:
        assert fastquorum("append", "--value", "before", "--bootstrap", everybody).code == 0
    nodes[leader].process.send_signal(signal.SIGSTOP)
    others = ",".join(f"127.0.0.1:{port}" for number, port in enumerate(ports, 1) if number != leader)
    ran = fastquorum(*words, "--bootstrap", others, "--timeout", 15)
    assert ran.code == code, ran.err
    assert expected in ran.err
