"""What names and addresses do to a quorum, case by case. Run inside a namespace: `python -m tests.process.names.cases
NAME DIRECTORY`; it prints the seconds that each step took as JSON."""

import contextlib
import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fastquorum.client.connection import Connection, Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import NotReady
from fastquorum.kernels import load
from fastquorum.types import LISTENER_NAME, Endpoint
from fastquorum.wire.messages.metadata import MetadataRequest
from tests.process.names.name_server import FAILING, SILENT, UNKNOWN, Entry
from tests.process.names.odd_names import embedded_deadline, joined_later, loaded_later, refused_names
from tests.process.names.rig import (
    CLOSING,
    COMMIT_S,
    DEAF,
    PORT,
    TIMEOUT_S,
    Rig,
    Steps,
    add_address,
    all_of,
    bind_file,
    in_time,
    rig,
)

Case = Callable[[Rig], Steps]
VOTERS: Final = {1: "q1.test", 2: "q2.test", 3: "q3.test"}
LOOK_UP_S: Final = 10.0
"""How long the system's resolver waits for a silent name server, by its defaults."""
_NOBODY: Final = "127.0.0.99"
"""An address where nobody listens."""


def _at(node_id: int) -> str:
    return f"127.0.0.{node_id}"


def _known(rig: Rig, *node_ids: int) -> None:
    rig.zone.update({VOTERS[node_id]: Entry((_at(node_id),)) for node_id in node_ids})


def _survives(rig: Rig, *, start_first: bool = True) -> Steps:
    """Nodes 1 and 2, with 3 gone, commit; and again after their leader was killed and started anew."""
    if start_first:
        rig.format(VOTERS, 1, 2)
        rig.start(1, _at(1))
        rig.start(2, _at(2))
    first = rig.commit()
    killed = rig.leader()
    rig.kill(killed)
    rig.start(killed, _at(killed))
    return {"first commit": first, "after the leader was started again": rig.commit()}


def silent_for_one(rig: Rig) -> Steps:
    """The name server says nothing of a dead voter's name."""
    _known(rig, 1, 2)
    rig.zone["q3.test"] = SILENT
    return _survives(rig)


def failing_for_one(rig: Rig) -> Steps:
    """The name server fails on a dead voter's name."""
    _known(rig, 1, 2)
    rig.zone["q3.test"] = FAILING
    return _survives(rig)


def unknown_one(rig: Rig) -> Steps:
    """A dead voter's name does not exist any more."""
    _known(rig, 1, 2)
    rig.zone["q3.test"] = UNKNOWN
    return _survives(rig)


def slow_for_all(rig: Rig) -> Steps:
    """Every name takes a second."""
    for node_id in (1, 2, 3):
        rig.zone[VOTERS[node_id]] = Entry((_at(node_id),), delay_s=1.0)
    return _survives(rig)


def slow_beyond_requests(rig: Rig) -> Steps:
    """Every name takes longer than a request may."""
    for node_id in (1, 2, 3):
        rig.zone[VOTERS[node_id]] = Entry((_at(node_id),), delay_s=2.5)
    return _survives(rig)


def late(rig: Rig) -> Steps:
    """Names that exist only some seconds after the nodes, as an orchestrator publishes them."""
    rig.format(VOTERS, 1, 2)
    rig.start(1, _at(1))
    rig.start(2, _at(2))
    rig.wait_reported(1, "started")
    time.sleep(3)  # the case itself
    _known(rig, 1, 2)
    return _survives(rig, start_first=False)


def silent_for_all_later(rig: Rig) -> Steps:
    """The name server falls silent for good while the quorum runs, and its leader dies."""
    _known(rig, 1, 2)
    rig.zone["q3.test"] = SILENT
    return _survives_silence(rig)


def _survives_silence(rig: Rig) -> Steps:
    rig.format(VOTERS, 1, 2)
    rig.start(1, _at(1))
    rig.start(2, _at(2))
    first = rig.commit()
    rig.names.is_silent = True
    killed, epoch = rig.leader(), rig.epoch()
    rig.kill(killed)
    began = time.monotonic()
    rig.start(killed, _at(killed))
    # What was started anew knows no address of the other one, which has to find it.
    rig.wait_led_after(epoch)
    return {"first commit": first, "led again": time.monotonic() - began}


def changing(rig: Rig) -> Steps:
    """A voter is started again at another address, and its name follows."""
    _known(rig, 1, 2)
    rig.zone["q3.test"] = UNKNOWN
    rig.format(VOTERS, 1, 2)
    rig.start(1, _at(1))
    rig.start(2, _at(2))
    first = rig.commit()
    rig.kill(2)
    rig.zone["q2.test"] = Entry(("127.0.0.22",))
    rig.start(2, "127.0.0.22")
    return {"first commit": first, "at the other address": rig.commit()}


def dead_address_first(rig: Rig) -> Steps:
    """Each name has two addresses, and nobody listens at the first."""
    for node_id in (1, 2):
        rig.zone[VOTERS[node_id]] = Entry((_NOBODY, _at(node_id)))
    return _survives(rig)


def deaf_address_first(rig: Rig) -> Steps:
    """Each name has two addresses, and the first one never answers."""
    for node_id in (1, 2):
        rig.deaf(PORT + node_id)
        rig.zone[VOTERS[node_id]] = Entry((DEAF, _at(node_id)))
    return _survives(rig)


def closing_address_first(rig: Rig) -> Steps:
    """Each name has two addresses, and the first one accepts connections only to close them."""
    for node_id in (1, 2):
        rig.closing(PORT + node_id)
        rig.zone[VOTERS[node_id]] = Entry((CLOSING, _at(node_id)))
    return _survives(rig)


def one_name_for_all(rig: Rig) -> Steps:
    """The bootstrap server's name is all the voters, the first of which is no node."""
    _known(rig, 1)
    rig.closing(PORT + 1)
    rig.format({1: "q1.test"}, 1)
    rig.start(1, _at(1))
    rig.commit()
    rig.zone["all.test"] = Entry((CLOSING, _at(1)))
    began = time.monotonic()
    with QuorumClient([Endpoint(LISTENER_NAME, "all.test", PORT + 1)], load("native")) as client:
        client.append([b"x"], Deadline(TIMEOUT_S))
    return {"commit": in_time(time.monotonic() - began, TIMEOUT_S)}


def other_family_first(rig: Rig) -> Steps:
    """Each name is ::1 and an IPv4 address, and the nodes listen on IPv4 only."""
    for node_id in (1, 2):
        rig.zone[VOTERS[node_id]] = Entry(("::1", _at(node_id)))
    return _survives(rig)


def ipv6_only(rig: Rig) -> Steps:
    """Each name has an IPv6 address and no other."""
    rig.zone.update({VOTERS[node_id]: Entry(("::1",)) for node_id in (1, 2)})
    rig.format(VOTERS, 1, 2)
    rig.start(1, "[::1]")
    rig.start(2, "[::1]")
    return {"first commit": rig.commit()}


def trailing_dot(rig: Rig) -> Steps:
    """The voters' names end in a dot, as absolute names do."""
    _known(rig, 1, 2)
    rig.format({node_id: f"{host}." for node_id, host in VOTERS.items()}, 1, 2)
    rig.start(1, _at(1))
    rig.start(2, _at(2))
    return _survives(rig, start_first=False)


def own_name_is_loopback(rig: Rig) -> Steps:
    """Each host takes its own name for 127.0.1.1, as Debian's installer has it, and nothing is said of listening."""
    rig.format(VOTERS, 1, 2)
    for node_id in (1, 2):
        add_address(f"198.51.100.{node_id}", node_id)
        others = "".join(f"198.51.100.{other} {VOTERS[other]}\n" for other in VOTERS if other != node_id)
        hosts = rig.root / f"hosts{node_id}"
        hosts.write_text(f"127.0.0.1 localhost\n127.0.1.1 {VOTERS[node_id]}\n{others}")
        script = f'mount --bind {hosts} /etc/hosts && exec "$@"'
        rig.start(node_id, None, reached=f"198.51.100.{node_id}", prefix=("unshare", "-m", "sh", "-c", script, "sh"))
    bind_file(rig.root / "hosts-all", "".join(f"198.51.100.{n} {host}\n" for n, host in VOTERS.items()), "/etc/hosts")
    first = rig.commit()
    for node_id in (1, 2):
        assert "loopback" in rig.reported(node_id, "listening")[0]["note"]
    return {"first commit": first}


def own_name_is_unknown(rig: Rig) -> Steps:
    """A node's own name exists only once it is ready, and nothing is said of listening."""
    rig.format(VOTERS, 1, 2)
    rig.start(1, None, reached=_at(1))
    rig.start(2, None, reached=_at(2))
    for node_id in (1, 2):
        assert "unknown here" in rig.wait_reported(node_id, "listening")["note"]
    _known(rig, 1, 2)
    return {"first commit": rig.commit()}


def behind_a_proxy(rig: Rig) -> Steps:
    """Nodes listen on loopback, and the voters name their proxies."""
    rig.format({1: "127.1.0.1", 2: "127.1.0.2"}, 1, 2)
    for node_id in (1, 2):
        rig.pass_on((f"127.1.0.{node_id}", PORT + node_id), (_at(node_id), PORT + node_id))
        rig.start(node_id, _at(node_id), reached=f"127.1.0.{node_id}")
    first = rig.commit()
    for node_id in (1, 2):
        known = {each["endpoint"] for each in rig.reported(node_id, "leadership")} - {None}
        assert known <= {f"127.1.0.{each}:{PORT + each}" for each in (1, 2)}, known
    return {"first commit": first}


def clients_deadline(rig: Rig) -> Steps:
    """A client's deadline covers the look-up and the connection, whatever becomes of them."""
    rig.deaf(PORT)
    rig.zone |= {"silent.test": SILENT, "deaf.test": Entry((DEAF,)), "slow.test": Entry((_NOBODY,), delay_s=60)}
    steps = {}
    for host in ("silent.test", "deaf.test", "slow.test", "unknown.test", DEAF):
        endpoint = Endpoint(LISTENER_NAME, host, PORT)
        began = time.monotonic()
        with QuorumClient([endpoint], load("native")) as client, pytest.raises(NotReady, match=host):
            client.append([b"x"], Deadline(TIMEOUT_S))
        steps[host] = all_of(time.monotonic() - began, TIMEOUT_S)
    return steps


def client_asks_the_others(rig: Rig) -> Steps:
    """A client's first bootstrap servers cannot be found."""
    _known(rig, 1, 2)
    rig.format(VOTERS, 1, 2)
    rig.start(1, _at(1))
    rig.start(2, _at(2))
    rig.zone["silent.test"] = SILENT
    rig.commit()
    lost = [Endpoint(LISTENER_NAME, "silent.test", PORT), Endpoint(LISTENER_NAME, "unknown.test", PORT)]
    began = time.monotonic()
    with QuorumClient([*lost, *rig.bootstrap.values()], load("native")) as client:
        client.append([b"x"], Deadline(TIMEOUT_S))
    return {"commit": in_time(time.monotonic() - began, TIMEOUT_S)}


def sniffer_dials_as_a_node_does(rig: Rig) -> Steps:
    """A sniffer's target has a deaf address first; then its name server is silent, and it is stopped meanwhile."""
    _known(rig, 1)
    rig.format({1: "q1.test"}, 1)
    rig.start(1, _at(1))
    rig.commit()
    rig.deaf(PORT + 1)
    rig.zone |= {"both.test": Entry((DEAF, _at(1))), "silent.test": SILENT}
    with (
        rig.sniffer(f"both.test:{PORT + 1}"),
        contextlib.closing(Connection(Endpoint(LISTENER_NAME, _at(1), PORT), Deadline(COMMIT_S))) as connection,
    ):
        began = time.monotonic()
        connection.request(MetadataRequest(topics=None), 12, Deadline(COMMIT_S))
        answered_s = in_time(time.monotonic() - began, COMMIT_S)
    with rig.sniffer(f"silent.test:{PORT + 1}") as sniffer, socket.create_connection((_at(1), PORT)):
        rig.names.wait_queried("silent.test", COMMIT_S)
        began = time.monotonic()
        sniffer.terminate()
        assert sniffer.wait(COMMIT_S) == 0
        stopped_s = time.monotonic() - began
    assert stopped_s < LOOK_UP_S, stopped_s
    return {"an answer": answered_s, "the end": stopped_s}


def all_at_once(rig: Rig) -> Steps:
    """The short version of most: one voter dead and its name silent, the others' first addresses dead and deaf; then
    the name server falls silent, and the leader is started again."""
    rig.deaf(PORT + 2)
    rig.zone |= {"q1.test": Entry(("::1", _at(1))), "q2.test": Entry((DEAF, _at(2))), "q3.test": SILENT}
    return _survives_silence(rig)


CASES: Final[dict[str, Case]] = {
    case.__name__: case
    for case in (
        silent_for_one,
        failing_for_one,
        unknown_one,
        slow_for_all,
        slow_beyond_requests,
        late,
        silent_for_all_later,
        changing,
        dead_address_first,
        deaf_address_first,
        closing_address_first,
        one_name_for_all,
        other_family_first,
        ipv6_only,
        trailing_dot,
        own_name_is_loopback,
        own_name_is_unknown,
        behind_a_proxy,
        clients_deadline,
        client_asks_the_others,
        sniffer_dials_as_a_node_does,
        refused_names,
        embedded_deadline,
        joined_later,
        loaded_later,
        all_at_once,
    )
}


def main() -> int:
    name, directory = sys.argv[1:]
    with rig(Path(directory)) as made:
        print(json.dumps(CASES[name](made)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
