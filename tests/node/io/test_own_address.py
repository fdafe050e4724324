"""Where a node listens and what it tells others, if only part of that was said."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.errors import ConfigError
from fastquorum.node.io.sockets import own_address
from fastquorum.node.io.sockets.listening import listen
from fastquorum.node.io.sockets.own_address import where_it_is_reached, where_to_listen
from fastquorum.storage.identity import _stored_voters, parse_voters
from fastquorum.types import LISTENER_NAME, Endpoint, VoterSet
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S
from tests.node.io.name_service import Names, name_service

THREE = "1@q1.test:9093,2@q2.test:9093,3@q3.test:9093"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    with name_service(monkeypatch) as made:
        yield made


def at(host: str, port: int = 9093) -> Endpoint:
    return Endpoint(LISTENER_NAME, host, port)


def test_it_listens_where_the_voters_know_it(names: Names) -> None:
    names.addresses["q1.test"] = ["192.0.2.11"]
    assert where_to_listen(None, 1, parse_voters(THREE)) == (at("q1.test"), "")
    assert where_to_listen(None, 7, parse_voters(THREE)) == (own_address.LOOPBACK, "")
    assert where_to_listen(at("h"), 1, parse_voters(THREE)) == (at("h"), "")


@pytest.mark.parametrize("others", [["192.0.2.12"], []])
def test_a_name_that_is_loopback_here_is_listened_on_everywhere_if_others_are_elsewhere(
    names: Names, others: list[str]
) -> None:
    names.addresses |= {"q1.test": ["127.0.1.1"], "q2.test": others, "q3.test": ["127.0.0.3"]}
    wanted, note = where_to_listen(None, 1, parse_voters(THREE))
    assert wanted == at("")
    assert "q1.test is 127.0.1.1 on this machine" in note
    assert "--listen HOST:9093" in note


def test_voters_that_are_all_on_this_machine_keep_their_loopback_addresses(names: Names) -> None:
    names.addresses |= {f"q{number}.test": [f"127.0.0.{number}"] for number in (1, 2, 3)}
    assert where_to_listen(None, 1, parse_voters(THREE)) == (at("q1.test"), "")
    alone = parse_voters("1@q1.test:9093")
    assert where_to_listen(None, 1, alone) == (at("q1.test"), "")


def test_a_name_that_nobody_knows_yet_is_listened_on_everywhere(names: Names) -> None:
    wanted, note = where_to_listen(None, 1, parse_voters(THREE))
    assert wanted == at("")
    assert "q1.test, where the voters expect this node, is unknown here" in note


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_whoever_listens_on_loopback_beside_voters_elsewhere_is_told(host: str) -> None:
    voters = parse_voters("1@192.0.2.11:9093,2@192.0.2.12:9093")
    wanted, note = where_to_listen(at(host), 1, voters)
    assert wanted == at(host)
    assert f"loopback address {host} only" in note


@pytest.mark.parametrize("bound", ["127.0.0.1", "10.0.0.1", "0.0.0.0", "", "::"])
def test_peers_are_told_what_the_voter_set_says_not_what_is_bound(bound: str) -> None:
    voters = parse_voters("1@h1:9093,2@h2:9093")
    assert where_it_is_reached(None, at(bound, 19093), 1, voters) == at("h1")
    assert where_it_is_reached(at("said"), at(bound, 19093), 1, voters) == at("said")


def test_the_only_voter_is_where_it_listens_if_its_address_was_drawn() -> None:
    drawn = parse_voters("1@127.0.0.1:40000")
    assert where_it_is_reached(None, at("127.0.0.1", 5), 1, drawn) == at("127.0.0.1", 5)
    behind_a_proxy = parse_voters("1@proxy:9093")
    assert where_it_is_reached(None, at("127.0.0.1", 5), 1, behind_a_proxy) == at("proxy")


@pytest.mark.parametrize("host", ["", "0.0.0.0", "a..b"])
@pytest.mark.parametrize("bound", ["", "0.0.0.0", "::"])
def test_an_address_that_nobody_can_be_told_is_replaced_by_the_machines_name(
    monkeypatch: pytest.MonkeyPatch, names: Names, host: str, bound: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "machine")
    names.addresses["machine"] = ["127.0.1.1"]
    voters = _stored_voters(f"1@{host}:9093", LISTENER_NAME)
    assert where_it_is_reached(None, at(bound, 5), 1, voters) == at("machine", 5)
    assert where_it_is_reached(None, at(bound, 5), 1, VoterSet()) == at("machine", 5)


@pytest.mark.parametrize("name", ["unknown", "a..b", "127.1"])
def test_a_machine_without_a_usable_name_is_told_by_an_address(
    monkeypatch: pytest.MonkeyPatch, names: Names, name: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    address = where_it_is_reached(None, at("", 5), 1, VoterSet())
    assert socket.getaddrinfo(address.host, 5, flags=socket.AI_NUMERICHOST)


def test_every_address_is_ipv4_and_ipv6() -> None:
    with listen(at("", 0)) as listening:
        port = listening.getsockname()[1]
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), WAIT_S).close()


def test_of_a_names_addresses_one_of_this_machine_is_listened_on(names: Names) -> None:
    names.addresses["h.test"] = ["192.0.2.1", "127.0.0.4"]
    with listen(at("h.test", 0)) as listening:
        assert listening.getsockname()[0] == "127.0.0.4"
    names.addresses["h.test"] = ["192.0.2.1"]
    with pytest.raises(ConfigError, match=r"h\.test:0 is not an address of this machine"):
        listen(at("h.test", 0))


@pytest.mark.parametrize("listening", [":0", "0.0.0.0:0", "[::]:0"])
def test_a_quorum_of_one_that_listens_everywhere_can_be_opened_again(tmp_path: Path, listening: str) -> None:
    for listen_on in (listening, "127.0.0.1:0"):
        with sync.open(tmp_path / "n", node_id=1, listen=listen_on, **QUICK) as quorum:
            quorum.wait_ready(WAIT_S)
            assert quorum.endpoint.host not in ("", "0.0.0.0", "::")
            assert quorum.endpoint.port


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_bad_host_in_what_a_directory_says_of_another_voter_ends_nobody(tmp_path: Path, kernels: str) -> None:
    path = tmp_path / "n"
    options = {**QUICK, "node_id": 1, "cluster_id": CLUSTER_ID, "kernels": kernels}
    with sync.open(path, voters="1@127.0.0.1:19591,2@h2:19592,3@h3:19593", listen="127.0.0.1:0", **options):
        pass
    properties = path / "fastquorum.properties"
    properties.write_text(properties.read_text().replace("h2", "q2..svc").replace("h3", "0.0.0.0"))
    with sync.open(path, listen="127.0.0.1:0", **options) as quorum:
        connections = quorum._node._replica.connections
        until = time.monotonic() + WAIT_S
        while len(found := connections.unreachable()) < 2:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert "an empty label" in found[0].reason
        assert "no other machine can reach 0.0.0.0" in found[1].reason
        assert quorum._node.error is None
        quorum._node.abort()  # its last words would wait for a majority
